"""TensorFlow evaluates a checkpoint of towers, in a graph with the original's variable names, as towers does."""
import os
import unittest

import numpy as np
import tensorflow.compat.v1 as tf

from common import (SHAPES, FolderTest, data_folder, evaluation_input, our_table, right_of_our_evaluation,
                    test_images, towers)


def net(images):
    """The original's net, as its source has it; returns the logits."""
    def variable(layer, kind):
        return tf.get_variable(f"{layer}/{kind}", SHAPES[f"{layer}/{kind}"])

    def convolved(x, layer):
        y = tf.nn.conv2d(x, variable(layer, "weights"), [1, 1, 1, 1], padding="SAME")
        return tf.nn.relu(tf.nn.bias_add(y, variable(layer, "biases")))

    def pooled(x):
        return tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], padding="SAME")

    def normalized(x):
        return tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)

    def dense(x, layer):
        return tf.matmul(x, variable(layer, "weights")) + variable(layer, "biases")

    x = normalized(pooled(convolved(images, "conv1")))
    x = pooled(normalized(convolved(x, "conv2")))
    x = tf.reshape(x, [-1, 2304])
    return dense(tf.nn.relu(dense(tf.nn.relu(dense(x, "local3")), "local4")), "softmax_linear")


class Evaluation(FolderTest):
    def test_the_same_precision_and_logits(self):
        data = data_folder(self.path("data"))
        run = self.path("train")
        towers("train", f"--data_dir={data}", "--nodownload", "--device=cpu", "--batch_size=32",
               "--max_steps=60", "--seed=3", f"--train_dir={run}")
        _, ours = our_table(data, run)
        images, labels = test_images(data)
        worst = right = 0
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(tf.float32, [None, 24, 24, 3])
            logits = net(fed)
            restore = tf.train.ExponentialMovingAverage(0.9999).variables_to_restore()
            tf.train.Saver(restore).restore(session, tf.train.latest_checkpoint(run))
            for first in range(0, len(images), 500):
                some = slice(first, first + 500)
                theirs = session.run(logits, {fed: evaluation_input(images[some])})
                worst = max(worst, np.abs(theirs - ours[some]).max())
                right += int((theirs.argmax(axis=1) == labels[some]).sum())
        print(f"{right} of {len(images)} right, largest difference of a logit {worst:.2g}")
        self.assertLess(worst, 1e-4)
        # Two logits may be equal but for a rounding.
        self.assertAlmostEqual(right, right_of_our_evaluation(data, run, self.path("eval")), delta=1)
        self.assertGreater(right, 2000)  # it has learned something


if __name__ == "__main__":
    unittest.main()
