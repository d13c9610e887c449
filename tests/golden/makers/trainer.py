"""Schedule, histograms, event records and input: ../schedule.json and what follows."""
import os
import pathlib
import tempfile

from .common import VERSION, tf, write_json, write_tensors
import numpy as np


def make_schedule(out):
    """Learning rates around the drops; the moving average's decay and a walk of it."""
    rates = []
    for batch in (128, 100, 1024):
        decay_steps = int(50000 / batch * 350)
        steps = sorted({s for n in (1, 2, 3, 7) for s in range(n * decay_steps - 2, n * decay_steps + 3)}
                       | {0, 1, 1000})
        with tf.Graph().as_default(), tf.Session() as session:
            step = tf.placeholder(tf.float32, [])
            rate = tf.train.exponential_decay(0.1, step, decay_steps, 0.1, staircase=True)
            values = [float(session.run(rate, {step: s})) for s in steps]
        rates.append({"batch_size": batch, "decay_steps": decay_steps, "steps": steps,
                      "rates": values})
    walk = []
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.get_variable("step", [], tf.float32, tf.zeros_initializer())
        value = tf.get_variable("value", [], tf.float32, tf.ones_initializer())
        ema = tf.train.ExponentialMovingAverage(0.9999, step)
        update = ema.apply([value])
        session.run(tf.global_variables_initializer())
        for s in [1, 2, 3, 4, 5, 10, 100, 1000, 10000, 89980, 89981, 89982, 100000, 999999]:
            new = float(np.float32(np.sin(s)))
            session.run([step.assign(s), value.assign(new)])
            before = float(session.run(ema.average(value)))
            session.run(update)
            walk.append({"step": s, "value": new, "before": before,
                         "after": float(session.run(ema.average(value)))})
    write_json(out / "schedule.json", {
        "about": VERSION + ". learning_rate: exponential_decay(0.1, step, decay_steps, 0.1, "
                 "staircase=True), step float32 as in the trainer. moving_average: one variable under "
                 "ExponentialMovingAverage(0.9999, step), step already incremented.",
        "learning_rate": rates, "moving_average": walk})


def make_histograms(out):
    """What tf.summary.histogram encodes."""
    rng = np.random.default_rng(13)
    cases = {
        "mixed": [-2, -1, -0.5, 0, 0, 0.1, 0.5, 1, 3, 1000],
        "zeros": [0.0] * 5,
        "one": [0.25],
        "tiny and huge": [1e-13, -1e-13, 1e-12, 5e-12, 1e19, -1e19, 3e38, -3e38],
        "normal": [float(x) for x in rng.standard_normal(200).astype(np.float32)],
        "relu": [float(x) for x in np.maximum(rng.standard_normal(200), 0).astype(np.float32)],
    }
    result = []
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        encode = tf.summary.histogram("h", x)
        for name, values in cases.items():
            h = tf.Summary.FromString(session.run(encode, {x: values})).value[0].histo
            result.append({"name": name, "values": values, "min": h.min, "max": h.max, "num": h.num,
                           "sum": h.sum, "sum_squares": h.sum_squares,
                           "bucket_limit": list(h.bucket_limit), "bucket": list(h.bucket)})
    write_json(out / "histograms.json", {"about": VERSION, "histograms": result})


def make_events(out):
    """Event messages with a fixed time, each with the bytes of its record in an event file."""
    def scalar(tag, value):
        return tf.Summary.Value(tag=tag, simple_value=value)

    histogram = tf.HistogramProto(min=-1, max=2, num=3, sum=1, sum_squares=5,
                                  bucket_limit=[-0.9, 0.0, 1.9, 2.1], bucket=[1, 1, 0, 1])
    events = {
        "file_version": tf.Event(wall_time=1e9, file_version="brain.Event:2"),
        "scalars": tf.Event(wall_time=1000000000.5, step=100, summary=tf.Summary(
            value=[scalar("learning_rate", 0.1), scalar("total_loss", -2.5)])),
        "histogram": tf.Event(wall_time=1e9, step=3000000000, summary=tf.Summary(
            value=[tf.Summary.Value(tag="conv1/weights", histo=histogram)])),
        "session_start": tf.Event(wall_time=1e9, step=7, session_log=tf.SessionLog(
            status=tf.SessionLog.START)),
    }
    records = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, event in events.items():
            path = os.path.join(folder, name)
            with tf.io.TFRecordWriter(path) as writer:
                writer.write(event.SerializeToString(deterministic=True))
            records[name] = {"message": event.SerializeToString(deterministic=True).hex(),
                             "record": pathlib.Path(path).read_bytes().hex()}
    write_json(out / "events.json", {"about": f"TensorFlow {tf.__version__}", "events": records})


def make_input_ops(out):
    """Made 32 x 32 images and what the training and the evaluation input make of them."""
    rng = np.random.default_rng(14)
    row, column = np.mgrid[0:32, 0:32]
    smooth = np.stack([128 + 90 * np.sin(row / 5 + c) * np.cos(column / 7 - c) for c in range(3)], -1)
    images = np.stack([
        np.clip(smooth + 12 * rng.standard_normal(smooth.shape), 0, 255),  # like a photograph
        rng.integers(0, 256, (32, 32, 3)),                                # noise over the whole range
        np.full((32, 32, 3), 77),                                         # flat: stddev 0
        np.where((row == 9) & (column == 12), 78, 77)[..., None].repeat(3, 2),  # one pixel stands out
        np.where(column < 16, 0, 255)[..., None].repeat(3, 2),            # both ends of the range
    ]).astype(np.uint8)
    # top, left, flip; contrast; brightness, which standardization takes out again
    draws = [(0, 0, 0, 1.0, 0.0), (8, 8, 1, 0.2, 62.5), (4, 3, 1, 1.79, -63.0), (1, 7, 0, 0.7, 10.0)]
    evaluation, training = [], []
    for image in images:
        image = tf.cast(image, tf.float32)
        evaluation.append(tf.image.per_image_standardization(
            tf.image.resize_with_crop_or_pad(image, 24, 24)).numpy())
        for top, left, flip, contrast, brightness in draws:
            x = image[top:top + 24, left:left + 24]
            x = tf.image.flip_left_right(x) if flip else x
            x = tf.image.adjust_contrast(tf.image.adjust_brightness(x, brightness), contrast)
            training.append(tf.image.per_image_standardization(x).numpy())
    write_tensors(out / "input_ops.safetensors", {
        "images": np.ascontiguousarray(images.transpose(0, 3, 1, 2)),  # planes, as in a record
        "evaluation": np.stack(evaluation),
        "offsets_and_flip": np.array([d[:3] for d in draws], np.int32),
        "contrast": np.array([d[3] for d in draws], np.float32),
        "training": np.stack(training).reshape(len(images), len(draws), 24, 24, 3),
    })
