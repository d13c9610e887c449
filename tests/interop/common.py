"""What the interop tests share: the binary under test, folders of their own, the variables' names."""
import os
import subprocess
import tempfile
import unittest

TOWERS = os.environ["TOWERS"]

SHAPES = {
    "conv1/weights": (5, 5, 3, 64), "conv1/biases": (64,),
    "conv2/weights": (5, 5, 64, 64), "conv2/biases": (64,),
    "local3/weights": (2304, 384), "local3/biases": (384,),
    "local4/weights": (384, 192), "local4/biases": (192,),
    "softmax_linear/weights": (192, 10), "softmax_linear/biases": (10,),
}
AVERAGE = "/ExponentialMovingAverage"
SMALL = ("--dataset=synthetic", "--device=cpu", "--batch_size=8")


def towers(*args):
    """Runs the binary to its end and returns what it printed; anything but exit code 0 is a failure."""
    done = subprocess.run([TOWERS, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"towers {' '.join(args)}: exit code {done.returncode}\n{done.stderr}")
    return done


class FolderTest(unittest.TestCase):
    """A test class with a folder, removed at the end."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="towers interop ")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)
