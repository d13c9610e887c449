"""ONNX Runtime and the safetensors package on what `towers export` writes."""
import json
import os
import unittest

import numpy as np
import onnx
import onnxruntime
import safetensors
import safetensors.numpy
from PIL import Image

from common import (AVERAGE, SHAPES, FolderTest, data_folder, evaluation_input, our_table,
                    right_of_our_evaluation, test_images, towers)

# TOWERS_CHECKPOINT names a trained one; without it one is trained for a moment.
CHECKPOINT = os.environ.get("TOWERS_CHECKPOINT")


class Exchange(FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = data_folder(os.path.join(cls.folder, "data"))
        cls.images, cls.labels = test_images(cls.data)
        cls.run_dir = CHECKPOINT or os.path.join(cls.folder, "train")
        if not CHECKPOINT:
            towers("train", f"--data_dir={cls.data}", "--nodownload", "--device=cpu", "--batch_size=32",
                   "--max_steps=60", "--seed=3", f"--train_dir={cls.run_dir}")

    def export(self, name, *flags):
        path = self.path(name)
        towers("export", f"--checkpoint={self.run_dir}", f"--output={path}", *flags)
        return path

    def test_the_checker_accepts_every_model(self):
        for name, flags in (("a.onnx", ()), ("b.onnx", ("--preprocessing",)), ("c.onnx", ("--raw_weights",))):
            model = onnx.load(self.export(name, *flags))
            onnx.checker.check_model(model, full_check=True)
            self.assertEqual(model.opset_import[0].version, 17)
            properties = {p.key: p.value for p in model.metadata_props}
            self.assertEqual(properties["weights"], "variables" if flags == ("--raw_weights",)
                             else "moving_averages")
            self.assertEqual(len(properties["classes"].split(",")), 10)

    def compare(self, count, model, prepare, *flags):
        """How many of the first images ONNX Runtime classifies rightly, each as towers does."""
        rows, ours = our_table(self.data, self.run_dir, *flags)
        names = [key.removeprefix("logit_") for key in rows[0] if key.startswith("logit_")]
        session = onnxruntime.InferenceSession(model)
        worst = right = 0
        for first in range(0, count, 100):
            end = min(first + 100, count)
            logits, probabilities = session.run(None, {"images": prepare(self.images[first:end])})
            worst = max(worst, np.abs(logits - ours[first:end]).max())
            right += int((logits.argmax(axis=1) == self.labels[first:end]).sum())
            for i in range(first, end):
                self.assertEqual(names[logits[i - first].argmax()], rows[i]["class"], f"image {i}")
                self.assertAlmostEqual(probabilities[i - first].max(), float(rows[i]["probability"]),
                                       delta=1e-4)
        print(f"{os.path.basename(model)} {' '.join(flags)}: {count} images, "
              f"largest difference of a logit {worst:.2g}")
        self.assertLess(worst, 1e-4)
        return right

    def test_onnx_runtime_agrees_on_the_averages_on_all_images(self):
        right = self.compare(10000, self.export("bytes.onnx", "--preprocessing"), lambda x: x)
        self.assertEqual(right, right_of_our_evaluation(self.data, self.run_dir, self.path("eval")))

    def test_onnx_runtime_agrees_on_crops(self):
        self.compare(1000, self.export("crops.onnx"), evaluation_input)

    def test_onnx_runtime_agrees_on_the_variables(self):
        self.compare(1000, self.export("raw.onnx", "--raw_weights"), evaluation_input, "--raw_weights")

    def test_pictures_of_any_size_are_cropped_and_filtered_as_pillow_does(self):
        generator = np.random.default_rng(5)
        files, seen = [], []
        for i, (width, height, ending) in enumerate(((32, 32, "png"), (320, 200, "jpg"), (45, 90, "ppm"),
                                                     (20, 31, "png"), (641, 480, "jpg"))):
            # Few waves and some noise: something that changes when a crop is off by a pixel.
            y, x = np.mgrid[:height, :width] / min(width, height)
            waves = [np.sin(generator.uniform(4, 12) * x + generator.uniform(4, 12) * y) for _ in range(3)]
            picture = 128 + 90 * np.stack(waves, 2) + generator.normal(0, 8, (height, width, 3))
            picture = Image.fromarray(picture.clip(0, 255).astype(np.uint8))
            files.append(self.path(f"{i}.{ending}"))
            picture.save(files[-1])
            side = min(width, height)
            left, top = (width - side) // 2, (height - side) // 2
            square = Image.open(files[-1]).crop((left, top, left + side, top + side))
            seen.append(np.asarray(square.resize((32, 32), Image.Resampling.BILINEAR)))
        json_text = towers("predict", "--device=cpu", "--json", f"--checkpoint_dir={self.run_dir}", *files).stdout
        session = onnxruntime.InferenceSession(self.export("pictures.onnx", "--preprocessing"))
        _, probabilities = session.run(None, {"images": np.stack(seen)})
        names = session.get_modelmeta().custom_metadata_map["classes"].split(",")
        for picture, row, path in zip(json.loads(json_text)["pictures"], probabilities, files):
            for place, prediction in enumerate(picture["predictions"]):
                # Pillow rounds between its two passes.
                delta = 1e-5 if path.endswith("0.png") else 0.01
                self.assertAlmostEqual(prediction["probability"], row[names.index(prediction["class"])],
                                       delta=delta, msg=f"{path}, place {place}")

    def test_any_batch_size(self):
        session = onnxruntime.InferenceSession(self.export("any.onnx"))
        batch = np.random.default_rng(1).standard_normal((7, 24, 24, 3)).astype(np.float32)
        together, _ = session.run(None, {"images": batch})
        for i in range(7):
            alone, _ = session.run(None, {"images": batch[i:i + 1]})
            np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=1e-5)

    def test_safetensors_package_reads_ours(self):
        path = self.export("a.safetensors")
        tensors = safetensors.numpy.load_file(path)
        want = {name + suffix: shape for name, shape in SHAPES.items() for suffix in ("", AVERAGE)}
        want["global_step"] = ()
        self.assertEqual({name: value.shape for name, value in tensors.items()}, want)
        with safetensors.safe_open(path, "np") as file:
            metadata = file.metadata()
        self.assertEqual(float(metadata["global_step"]), tensors["global_step"])
        data = [name for name in os.listdir(self.run_dir) if ".data-" in name]
        if not CHECKPOINT:
            self.assertIn("--batch_size=32\n", metadata["flags"])
            self.assertEqual(len(data), 2)  # the first and the last step's
        # The net written out in plain numpy would be a third opinion; ONNX Runtime's is one: its
        # model holds the same averages.
        model = onnx.load(self.export("same.onnx"))
        inside = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
        np.testing.assert_array_equal(inside["local3/weights"], tensors["local3/weights" + AVERAGE])
        np.testing.assert_array_equal(inside["conv2/weights"].transpose(2, 3, 1, 0),
                                      tensors["conv2/weights" + AVERAGE])

    def test_towers_imports_what_the_package_writes(self):
        tensors = safetensors.numpy.load_file(self.export("ours.safetensors"))
        only = {name: tensors[name] for name in SHAPES}
        path = self.path("theirs.safetensors")
        safetensors.numpy.save_file(only, path, metadata={"global_step": "5"})
        towers("import", path, f"--train_dir={self.path('imported')}")
        _, logits = our_table(self.data, self.path("imported"))  # no averages there: they are the variables
        _, raw = our_table(self.data, self.run_dir, "--raw_weights")
        np.testing.assert_array_equal(logits, raw)


if __name__ == "__main__":
    unittest.main()
