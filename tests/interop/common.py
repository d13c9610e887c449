"""What the interop tests share: the binary under test, folders and images of their own, the variables' names."""
import csv
import io
import os
import re
import subprocess
import tempfile
import unittest

import numpy as np

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


def data_folder(folder):
    """A folder with cifar-10-batches-bin: TOWERS_DATA's, or one of made-up images of ten kinds."""
    if given := os.environ.get("TOWERS_DATA"):
        return given
    generator = np.random.default_rng(1)
    # Each kind has blocks of colours, which a short training learns; some images show another kind than their label.
    kinds = generator.integers(60, 196, (10, 3, 4, 4), np.int16).repeat(8, 2).repeat(8, 3).reshape(10, 3072)
    batches = os.path.join(folder, "cifar-10-batches-bin")
    os.makedirs(batches)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        labels, others = generator.integers(0, 10, (2, 10000), np.int16)
        shown = np.where(generator.random(10000) < 0.3, others, labels)
        noise = generator.integers(-59, 60, (10000, 3072), np.int16)
        records = np.concatenate([labels[:, None], kinds[shown] + noise], axis=1)
        records.astype(np.uint8).tofile(os.path.join(batches, name + ".bin"))
    return folder


def test_images(folder):
    """The test set in such a folder: [10000, 32, 32, 3] bytes, and [10000] labels."""
    inside = os.path.join(folder, "cifar-10-batches-bin")
    file = os.path.join(inside if os.path.isdir(inside) else folder, "test_batch.bin")
    records = np.fromfile(file, np.uint8).reshape(-1, 3073)
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0]


def evaluation_input(images):
    """What the evaluator feeds its net: the central 24x24, standardized."""
    crop = images[:, 4:28, 4:28].astype(np.float64)
    mean = crop.mean(axis=(1, 2, 3), keepdims=True)
    deviation = np.maximum(crop.std(axis=(1, 2, 3), keepdims=True), 1 / np.sqrt(1728))
    return ((crop - mean) / deviation).astype(np.float32)


def our_table(data, checkpoint, *flags):
    """The rows of `towers predict --csv` for the test set, and the logits among them."""
    out = towers("predict", "--csv=-", "--logits", "--device=cpu", f"--data_dir={data}", "--nodownload",
                 f"--checkpoint_dir={checkpoint}", *flags).stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    logits = np.array([[float(v) for k, v in row.items() if k.startswith("logit_")] for row in rows])
    return rows, logits


def right_of_our_evaluation(data, checkpoint, eval_dir):
    """How many of the 10,000 test images `towers eval` counts as right."""
    err = towers("eval", "--device=cpu", f"--data_dir={data}", "--nodownload", "--run_once",
                 f"--checkpoint_dir={checkpoint}", f"--eval_dir={eval_dir}").stderr
    return int(re.search(r"(\d+) of 10000 right", err).group(1))


class FolderTest(unittest.TestCase):
    """A test class with a folder, removed at the end."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="towers interop ")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)
