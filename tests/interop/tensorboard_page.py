"""The running TensorBoard, and a headless Chromium in front of it, show what towers writes."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from common import SMALL, FolderTest, towers
from events import HISTOGRAMS, SCALARS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page(FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        runs = os.path.join(cls.folder, "runs")
        towers("train", *SMALL, "--num_gpus=2", f"--train_dir={runs}/run1", "--max_steps=3", "--summary_every=1")
        log = open(os.path.join(cls.folder, "log"), "w+")
        cls.addClassCleanup(log.close)
        server = subprocess.Popen([sys.executable, "-W", "ignore", "-m", "tensorboard.main", "--host=127.0.0.1",
                                   "--port=0", f"--logdir={runs}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.terminate)
        for _ in range(600):
            log.seek(0)
            text = log.read()
            if found := re.search(r"http://127\.0\.0\.1:\d+/", text):
                cls.address = found.group()
                break
            if server.poll() is not None:
                raise AssertionError(f"TensorBoard ended:\n{text}")
            time.sleep(0.1)
        else:
            raise AssertionError(f"TensorBoard does not start:\n{text}")
        # It reads the runs in a thread of its own.
        for _ in range(300):
            if cls.get("data/plugin/scalars/tags") and cls.get("data/plugin/graphs/info"):
                return
            time.sleep(0.1)
        raise AssertionError("TensorBoard finds no run")

    @classmethod
    def get(cls, path, **query):
        with urllib.request.urlopen(cls.address + path + "?" + urllib.parse.urlencode(query)) as answer:
            body = answer.read()
        return json.loads(body) if answer.headers["Content-Type"].startswith("application/json") else body.decode()

    def test_every_dashboard_has_our_tags(self):
        listing = self.get("data/plugins_listing")
        for dashboard, tags in (("scalars", SCALARS), ("histograms", HISTOGRAMS), ("distributions", HISTOGRAMS)):
            self.assertTrue(listing[dashboard]["enabled"], dashboard)
            self.assertEqual(set(self.get(f"data/plugin/{dashboard}/tags")["run1"]), tags, dashboard)
        self.assertTrue(listing["graphs"]["enabled"])

    def test_values(self):
        points = self.get("data/plugin/scalars/scalars", run="run1", tag="total_loss")
        self.assertEqual([step for _, step, _ in points], [0, 1, 2])
        histograms = self.get("data/plugin/histograms/histograms", run="run1", tag="conv1/weights")
        self.assertEqual([step for _, step, _ in histograms], [0, 1, 2])
        count = sum(number for _, _, number in histograms[-1][2])
        self.assertAlmostEqual(count, 5 * 5 * 3 * 64, delta=1)

    def test_graph(self):
        self.assertTrue(self.get("data/plugin/graphs/info")["run1"]["run_graph"])
        graph = self.get("data/plugin/graphs/graph", run="run1", conceptual="false", limit_attr_size=1024,
                         large_attrs_key="_too_large_attrs")
        for name in ("tower_0/conv1", "tower_1/softmax_linear", "average_gradients"):
            self.assertIn(f'name: "{name}', graph)

    @unittest.skipUnless(CHROMIUM, "no Chromium on the PATH")
    def test_chromium_draws_our_tags(self):
        with tempfile.TemporaryDirectory() as profile:
            done = subprocess.run([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu",
                                   f"--user-data-dir={profile}", "--window-size=1280,2000",
                                   "--virtual-time-budget=30000", "--dump-dom", f"{self.address}#timeseries"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True, timeout=180)
        for tag in ("cross_entropy", "conv1/activations"):
            self.assertIn(tag, done.stdout)


if __name__ == "__main__":
    unittest.main()
