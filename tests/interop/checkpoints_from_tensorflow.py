"""towers resumes from checkpoints that TensorFlow writes: types of global_step, several shards."""
import os
import unittest

import numpy as np
import tensorflow.compat.v1 as tf

from common import AVERAGE, SHAPES, SMALL, FolderTest, towers

STEPS = 7  # updates made; the file's number is one less, as the original's is


def write(folder, step_type, shards):
    """A checkpoint with the trainer's variables and its state file; returns the values by name."""
    names = [name + suffix for name in SHAPES for suffix in ("", AVERAGE)]
    generator = np.random.default_rng(3)
    values = {name: generator.standard_normal(SHAPES[name.removesuffix(AVERAGE)]).astype(np.float32) * 0.01
              for name in names}
    os.makedirs(folder)
    config = tf.ConfigProto(device_count={"CPU": shards})
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        for i, name in enumerate(names):
            with tf.device(f"/cpu:{i % shards}"):
                tf.get_variable(name, initializer=values[name])
        with tf.device("/cpu:0"):
            tf.get_variable("global_step", initializer=tf.constant(STEPS, step_type), trainable=False)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(sharded=shards > 1)
        saver.save(session, os.path.join(folder, "model.ckpt"), global_step=STEPS - 1,
                   write_meta_graph=True)
    return values


class FromTensorFlow(FolderTest):
    def resumes(self, name, step_type, shards):
        folder = self.path(name)
        values = write(folder, step_type, shards)
        data_files = [f for f in os.listdir(folder) if ".data-" in f]
        self.assertEqual(len(data_files), shards)

        # A rate too small to move anything: the variables come back as TensorFlow wrote them.
        towers("train", *SMALL, f"--train_dir={folder}", "--resume", f"--max_steps={STEPS + 1}",
               "--learning_rate=1e-30")
        latest = tf.train.latest_checkpoint(folder)
        self.assertEqual(os.path.basename(latest), f"model.ckpt-{STEPS}")
        reader = tf.train.load_checkpoint(latest)
        self.assertEqual(reader.get_tensor("global_step"), STEPS + 1)
        decay = (1 + STEPS + 1) / (10 + STEPS + 1)
        for variable in SHAPES:
            value, shadow = values[variable], values[variable + AVERAGE]
            np.testing.assert_allclose(reader.get_tensor(variable), value, rtol=0, atol=1e-25)
            np.testing.assert_allclose(reader.get_tensor(variable + AVERAGE),
                                       shadow - (1 - decay) * (shadow - value), rtol=0, atol=1e-8)

    def test_float32_step(self):
        self.resumes("float32", tf.float32, 1)

    def test_int32_step(self):
        self.resumes("int32", tf.int32, 1)

    def test_int64_step(self):
        self.resumes("int64", tf.int64, 1)

    def test_several_shards(self):
        self.resumes("shards", tf.int64, 3)

    def test_evaluation_and_listing(self):
        folder = self.path("listed")
        write(folder, tf.int64, 2)
        out = towers("eval", *SMALL, f"--checkpoint_dir={folder}", f"--eval_dir={self.path('eval')}",
                     "--run_once", "--num_examples=200")
        self.assertRegex(out.stdout, r"precision @ 1 = 0\.\d{3}")
        listing = towers("inspect", os.path.join(folder, f"model.ckpt-{STEPS - 1}")).stdout
        for name in SHAPES:
            self.assertIn(name + AVERAGE, listing)


if __name__ == "__main__":
    unittest.main()
