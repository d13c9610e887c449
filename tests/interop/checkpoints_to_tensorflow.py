"""TensorFlow reads and restores the checkpoints that towers writes."""
import os
import shutil
import unittest

import numpy as np
import safetensors.numpy
import tensorflow.compat.v1 as tf

from common import AVERAGE, SHAPES, SMALL, FolderTest, towers


class ToTensorFlow(FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train_dir = os.path.join(cls.folder, "train")
        towers("train", *SMALL, f"--train_dir={cls.train_dir}", "--max_steps=5", "--checkpoint_every=1")

    def test_names_types_and_shapes(self):
        reader = tf.train.load_checkpoint(os.path.join(self.train_dir, "model.ckpt-4"))
        want = {name + suffix: list(shape) for name, shape in SHAPES.items() for suffix in ("", AVERAGE)}
        want["global_step"] = []
        self.assertEqual(reader.get_variable_to_shape_map(), want)
        self.assertEqual(set(reader.get_variable_to_dtype_map().values()), {tf.float32})
        self.assertEqual(reader.get_tensor("global_step"), 5.0)  # updates made

    def test_values_agree_bit_for_bit(self):
        path = self.path("ours.safetensors")
        towers("export", f"--checkpoint={self.train_dir}", f"--output={path}")
        ours = safetensors.numpy.load_file(path)  # as our own reader has the checkpoint
        theirs = tf.train.load_checkpoint(self.train_dir)
        self.assertEqual(set(ours), set(theirs.get_variable_to_shape_map()))
        for name, value in ours.items():
            self.assertEqual(value.tobytes(), np.asarray(theirs.get_tensor(name)).tobytes(), name)

    def test_state_file(self):
        state = tf.train.get_checkpoint_state(self.train_dir)
        self.assertEqual([os.path.basename(p) for p in state.all_model_checkpoint_paths],
                         [f"model.ckpt-{step}" for step in range(5)])
        self.assertEqual(tf.train.latest_checkpoint(self.train_dir),
                         os.path.join(self.train_dir, "model.ckpt-4"))

    def test_a_moved_folder_still_works(self):
        moved = self.path("moved")
        shutil.copytree(self.train_dir, moved)
        self.assertEqual(tf.train.latest_checkpoint(moved), os.path.join(moved, "model.ckpt-4"))

    def test_the_evaluators_saver_restores_the_averages(self):
        reader = tf.train.load_checkpoint(self.train_dir)
        with tf.Graph().as_default(), tf.Session() as session:
            for name, shape in SHAPES.items():
                tf.get_variable(name, shape)
            restore = tf.train.ExponentialMovingAverage(0.9999).variables_to_restore()
            tf.train.Saver(restore).restore(session, tf.train.latest_checkpoint(self.train_dir))
            for variable in tf.trainable_variables():
                name = variable.op.name
                got = session.run(variable)
                np.testing.assert_array_equal(got, reader.get_tensor(name + AVERAGE), err_msg=name)
                self.assertGreater(np.abs(got - reader.get_tensor(name)).max(), 0, name)

    def test_the_trainers_saver_restores_everything(self):
        reader = tf.train.load_checkpoint(self.train_dir)
        with tf.Graph().as_default(), tf.Session() as session:
            for name, shape in SHAPES.items():
                tf.get_variable(name, shape)
            tf.get_variable("global_step", [], trainable=False)
            tf.train.ExponentialMovingAverage(0.9999).apply(tf.trainable_variables())
            tf.train.Saver(tf.global_variables()).restore(session, tf.train.latest_checkpoint(self.train_dir))
            self.assertEqual(len(tf.global_variables()), 2 * len(SHAPES) + 1)
            for variable in tf.global_variables():
                np.testing.assert_array_equal(session.run(variable), reader.get_tensor(variable.op.name))

    def test_the_averages_follow_the_formula(self):
        for step in range(1, 5):
            old, new = (tf.train.load_checkpoint(os.path.join(self.train_dir, f"model.ckpt-{s}"))
                        for s in (step - 1, step))
            updates = new.get_tensor("global_step")
            decay = (1 + updates) / (10 + updates)
            for name in SHAPES:
                shadow, value = old.get_tensor(name + AVERAGE), new.get_tensor(name)
                np.testing.assert_allclose(new.get_tensor(name + AVERAGE),
                                           shadow - (1 - decay) * (shadow - value),
                                           rtol=1e-5, atol=1e-7, err_msg=f"{name}, step {step}")


if __name__ == "__main__":
    unittest.main()
