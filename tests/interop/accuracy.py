"""Evaluates TensorFlow's checkpoint on CIFAR-10: as many right answers as TensorFlow counts.

TOWERS_CIFAR10 names the folder with the images, TOWERS_SHARED the one with TensorFlow's values.
"""
import json
import os
import re
import unittest

from common import FolderTest, towers


@unittest.skipUnless("TOWERS_CIFAR10" in os.environ and "TOWERS_SHARED" in os.environ,
                     "needs the data set and TensorFlow's values")
class Accuracy(FolderTest):
    def counts(self, *flags):
        """(right answers, images) for TensorFlow's checkpoint."""
        golden = os.path.join(os.environ["TOWERS_SHARED"], "golden")
        out = towers("eval", f"--data_dir={os.environ['TOWERS_CIFAR10']}", f"--checkpoint_dir={golden}",
                     f"--eval_dir={self.path('eval')}", "--run_once", "--device=cpu", *flags)
        right, images = map(int, re.search(r"(\d+) of (\d+) right", out.stderr).groups())
        self.assertIn(f"precision @ 1 = {right / images:.3f}", out.stdout)
        return right, images

    def test_as_many_right_as_tensorflow(self):
        with open(os.path.join(os.environ["TOWERS_SHARED"], "golden", "eval.json")) as file:
            golden = json.load(file)
        for flags, weights in ((), "averaged"), (("--raw_weights",), "raw"):
            right, images = self.counts(*flags)
            self.assertEqual(images, 10000)
            self.assertLessEqual(abs(right - golden[weights]["right"]), 2, weights)

    def test_each_image_once_for_any_batch(self):
        want = self.counts("--num_examples=1000")
        for batch in (1, 77, 1000):
            self.assertEqual(self.counts("--num_examples=1000", f"--batch_size={batch}"), want, batch)


if __name__ == "__main__":
    unittest.main()
