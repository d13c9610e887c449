"""TensorBoard's own readers on the event files that towers writes."""
import glob
import os
import signal
import subprocess
import time
import unittest

import numpy as np
import tensorflow.compat.v1 as tf
from tensorboard.backend.event_processing import event_accumulator, event_file_loader

from common import SHAPES, SMALL, TOWERS, FolderTest, towers

LAYERS = ("conv1", "conv2", "local3", "local4", "softmax_linear")
HISTOGRAMS = ({f"{layer}/activations" for layer in LAYERS} | set(SHAPES)
              | {f"{name}/gradients" for name in SHAPES})
SCALARS = ({f"{layer}/sparsity" for layer in LAYERS} | {"local3/weight_loss", "local4/weight_loss"}
           | {"cross_entropy", "total_loss", "learning_rate"})


def event_file(folder):
    files = glob.glob(os.path.join(glob.escape(folder), "events.out.tfevents.*"))
    assert len(files) == 1, files
    return files[0]


class Events(FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train_dir = os.path.join(cls.folder, "train")
        towers("train", *SMALL, "--num_gpus=2", f"--train_dir={cls.train_dir}", "--max_steps=5",
               "--summary_every=2")
        cls.loaded = event_accumulator.EventAccumulator(
            cls.train_dir, size_guidance={event_accumulator.HISTOGRAMS: 0, event_accumulator.SCALARS: 0})
        cls.loaded.Reload()

    def test_starts_as_a_writer_of_tensorflow_starts(self):
        first, second = list(tf.train.summary_iterator(event_file(self.train_dir)))[:2]
        self.assertEqual(first.file_version, "brain.Event:2")
        self.assertTrue(second.graph_def)

    def test_tags_and_steps(self):
        tags = self.loaded.Tags()
        self.assertEqual(set(tags["histograms"]), HISTOGRAMS)
        self.assertEqual(set(tags["scalars"]), SCALARS)
        for tag in SCALARS:
            self.assertEqual([e.step for e in self.loaded.Scalars(tag)], [0, 2, 4], tag)
        for tag in HISTOGRAMS:
            self.assertEqual([e.step for e in self.loaded.Histograms(tag)], [0, 2, 4], tag)

    def test_scalars(self):
        for tag, want in (("learning_rate", 0.1), ("cross_entropy", np.log(10))):
            self.assertAlmostEqual(self.loaded.Scalars(tag)[0].value, want, delta=0.3 * want)
        losses = [self.loaded.Scalars(tag)[0].value
                  for tag in ("cross_entropy", "local3/weight_loss", "local4/weight_loss", "total_loss")]
        self.assertAlmostEqual(sum(losses[:3]), losses[3], places=4)

    def test_histograms_are_bucketed_as_tensorflow_does(self):
        reader = tf.train.load_checkpoint(os.path.join(self.train_dir, "model.ckpt-4"))
        last = {}
        for event in tf.train.summary_iterator(event_file(self.train_dir)):
            last.update({value.tag: value.histo for value in event.summary.value})
        for name in SHAPES:
            tensor = reader.get_tensor(name)
            with tf.Graph().as_default(), tf.Session() as session:
                theirs = tf.Summary.FromString(session.run(tf.summary.histogram("h", tensor))).value[0].histo
            ours = last[name]
            self.assertEqual(list(ours.bucket_limit), list(theirs.bucket_limit), name)
            self.assertEqual(list(ours.bucket), list(theirs.bucket), name)
            for field in ("min", "max", "num"):
                self.assertEqual(getattr(ours, field), getattr(theirs, field), f"{name} {field}")
            for field in ("sum", "sum_squares"):
                np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), rtol=1e-6, atol=1e-6)

    def test_graph_shows_towers_layers_and_devices(self):
        nodes = self.loaded.Graph().node
        names = {node.name for node in nodes}
        self.assertEqual(len(names), len(nodes), "a node's name occurs twice")
        for tower in ("tower_0", "tower_1"):
            for layer in LAYERS:
                inside = [n for n in nodes if n.name.startswith(f"{tower}/{layer}")]
                self.assertTrue(inside, f"{tower}/{layer}")
                self.assertTrue(any("CPU:0" in n.device for n in inside), f"{tower}/{layer} has no device")
        for node in nodes:  # TensorBoard drops edges to nodes that are not there
            for edge in node.input:
                self.assertIn(edge.lstrip("^").split(":")[0], names, f"input of {node.name}")

    def test_a_resumed_run_starts_a_new_file(self):
        folder = self.path("resumed")
        for steps in (2, 4):
            towers("train", *SMALL, f"--train_dir={folder}", f"--max_steps={steps}", "--summary_every=1",
                   "--resume")
        loaded = event_accumulator.EventAccumulator(folder)
        loaded.Reload()
        self.assertEqual([e.step for e in loaded.Scalars("total_loss")], [0, 1, 2, 3])
        files = sorted(glob.glob(os.path.join(glob.escape(folder), "events.out.tfevents.*")))
        self.assertEqual(len(files), 2)
        logs = [(e.step, e.session_log.status) for e in tf.train.summary_iterator(files[1])
                if e.HasField("session_log")]
        self.assertEqual(logs, [(2, tf.SessionLog.START)])

    def test_readable_up_to_the_tear_after_kill(self):
        folder = self.path("killed")
        run = subprocess.Popen([TOWERS, "train", *SMALL, f"--train_dir={folder}", "--summary_every=1",
                                "--display_every=1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL, text=True)
        with run:
            for line in run.stdout:
                if "step 3," in line:
                    break
            time.sleep(6)  # longer than the time between flushes
            run.send_signal(signal.SIGKILL)
        steps = [event.step for event in event_file_loader.EventFileLoader(event_file(folder)).Load()]
        self.assertGreaterEqual(max(steps), 3)

    def test_the_evaluators_precision(self):
        eval_dir = self.path("eval")
        out = towers("eval", *SMALL, f"--checkpoint_dir={self.train_dir}", f"--eval_dir={eval_dir}",
                     "--run_once", "--num_examples=500")
        loaded = event_accumulator.EventAccumulator(eval_dir)
        loaded.Reload()
        (precision,) = loaded.Scalars("Precision @ 1")
        self.assertEqual(precision.step, 4)  # in the checkpoint's name, as TensorFlow's evaluator
        self.assertIn(f"precision @ 1 = {precision.value:.3f}", out.stdout)


if __name__ == "__main__":
    unittest.main()
