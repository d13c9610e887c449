"""TensorFlow restores the checkpoints of `towers linear`, and reads its summary; towers restores TensorFlow's."""
import glob
import os
import unittest

import numpy as np
import tensorflow.compat.v1 as tf

from common import FolderTest, towers


def graph():
    """The variables of the original program."""
    return (tf.get_variable("weight", [1], tf.float32), tf.get_variable("biase", [1], tf.float32),
            tf.Variable(0, name="global_step", trainable=False))


class Linear(FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dir = os.path.join(cls.folder, "checkpoint")
        cls.out = towers("linear", "--max_steps=2000", "--learning_rate=0.01", "--seed=1",
                         f"--checkpoint_dir={cls.dir}").stdout

    def test_names_types_and_shapes(self):
        latest = tf.train.latest_checkpoint(self.dir)
        self.assertEqual(os.path.basename(latest), "model.ckpt-2000")
        reader = tf.train.load_checkpoint(latest)
        self.assertEqual(reader.get_variable_to_shape_map(), {"weight": [1], "biase": [1], "global_step": []})
        self.assertEqual(reader.get_variable_to_dtype_map(),
                         {"weight": tf.float32, "biase": tf.float32, "global_step": tf.int32})

    def test_the_reload_programs_saver_restores_it(self):
        with tf.Graph().as_default(), tf.Session() as session:
            variables = graph()
            tf.train.Saver().restore(session, tf.train.latest_checkpoint(self.dir))
            weight, biase, step = session.run(variables)
        self.assertEqual(step, 2000)
        values = [weight[0], biase[0]]
        np.testing.assert_allclose(values, [2, 10], atol=0.3)
        text = "weight: %f, biase: %f" % tuple(values)
        self.assertIn(f"step: 2000, {text}, loss: ", self.out)
        self.assertEqual(towers("linear", "--reload", f"--checkpoint_dir={self.dir}").stdout,
                         f"{self.dir}/model.ckpt-2000, global_step = 2000\n{text}\n")

    def test_summary(self):
        files = glob.glob(os.path.join(glob.escape(self.dir), "events.out.tfevents.*"))
        events = [(event.step, value.tag) for file in files for event in tf.train.summary_iterator(file)
                  for value in event.summary.value]
        self.assertEqual(events, [(2000, "cost")])

    def test_goes_on_from_tensorflows_checkpoint(self):
        folder = self.path("theirs")
        os.mkdir(folder)
        with tf.Graph().as_default(), tf.Session() as session:
            weight, _, step = graph()
            session.run(tf.global_variables_initializer())
            session.run([step.assign(990), weight.assign([2.5])])
            tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"), global_step=990)
        self.assertTrue(towers("linear", "--reload", f"--checkpoint_dir={folder}").stdout.startswith(
            f"{folder}/model.ckpt-990, global_step = 990\nweight: 2.500000, "))
        out = towers("linear", "--max_steps=1000", f"--checkpoint_dir={folder}").stdout
        self.assertTrue(out.startswith("step: 1000, weight: 2.4") or out.startswith("step: 1000, weight: 2.5"), out)


if __name__ == "__main__":
    unittest.main()
