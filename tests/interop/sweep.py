"""scripts/plot_sweep draws what `towers bench --csv` writes."""
import csv
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import unittest

from common import FolderTest, towers

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "plot_sweep")


def plot_sweep():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("plot_sweep", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("plot_sweep", loader))
    loader.exec_module(module)
    return module


class Sweep(FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.table = os.path.join(cls.folder, "sweep.csv")
        towers("bench", "--device=cpu", "--batch_size=4,8", "--compute_threads=1,2", "--warmup=1", "--repeats=2",
               f"--csv={cls.table}")

    def test_draws_a_picture_of_each_kind(self):
        for name, start in (("a.png", b"\x89PNG"), ("b.svg", b"<?xml")):
            for x in ("batch_size", "threads"):
                picture = self.path(x + name)
                subprocess.run([sys.executable, SCRIPT, self.table, picture, f"--x={x}"], check=True)
                with open(picture, "rb") as file:
                    self.assertTrue(file.read().startswith(start), picture)

    def test_a_line_for_what_differs(self):
        with open(self.table, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 4)
        for x, labels in (("batch_size", ("threads 1", "threads 2")), ("threads", ("batch_size 4", "batch_size 8"))):
            lines = plot_sweep().lines_of(rows, x)
            self.assertEqual(len(lines), 2, list(lines))
            for label, wanted in zip(sorted(lines), labels):
                self.assertTrue(label.startswith(wanted), label)
                self.assertEqual(len(lines[label]), 2, label)

    def test_threads_of_the_input_alone_are_one_line(self):
        table = self.path("input.csv")
        towers("bench", "--device=cpu", "--what=input", "--dataset=synthetic", "--input_threads=0,1,2", "--warmup=1",
               "--repeats=2", f"--csv={table}")
        with open(table, newline="") as file:
            rows = list(csv.DictReader(file))
        for x in ("threads", "input_threads"):
            self.assertEqual([len(points) for points in plot_sweep().lines_of(rows, x).values()], [3], x)
        subprocess.run([sys.executable, "-W", "error::UserWarning", SCRIPT, table, self.path("input.png"),
                        "--x=input_threads"], check=True)

    def test_every_setting_of_the_table_tells_lines_apart(self):
        with open(self.table, newline="") as file:
            columns = next(csv.reader(file))
        settings = [name for name in columns[:columns.index("examples_per_sec")] if name != "layer"]
        self.assertEqual(plot_sweep().SETTINGS, settings)

    def test_what_cannot_be_drawn_is_an_error_of_one_line(self):
        empty, other, binary, nothing = map(self.path, ("empty.csv", "other.csv", "binary.csv", "nothing.csv"))
        with open(self.table) as table, open(empty, "w") as file:
            file.write(table.readline())
        with open(other, "w") as file:
            file.write("step,loss\n0,4.68\n")
        with open(binary, "wb") as file:
            file.write(b"\x89PNG\r\n")
        picture = self.path("none.png")
        for table, drawn, said in (
                (empty, picture, f"{empty} has no row with batch_size"),
                (other, picture, f"{other} is not a table of"),
                (nothing, picture, f"cannot read {nothing}: "),
                (binary, picture, f"cannot read {binary}: "),
                (self.table, self.path("no_format.foo"), "cannot write"),
                (self.table, self.path("no_folder/a.png"), "cannot write")):
            done = subprocess.run([sys.executable, SCRIPT, table, drawn], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, said)
            self.assertTrue(done.stderr.startswith(f"plot_sweep: {said}"), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
