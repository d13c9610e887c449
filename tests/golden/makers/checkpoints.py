"""Checkpoints as TensorFlow's Saver writes them: ../checkpoints."""
import shutil

from .common import tf, write_json
import numpy as np


def checkpoint_values(step_type):
    """name -> array of a tiny set of variables with the trainer's names."""
    shapes = {"conv1/weights": (2, 2, 3, 4), "conv1/biases": (4,), "local3/weights": (6, 5),
              "local3/biases": (5,), "softmax_linear/weights": (5, 3), "softmax_linear/biases": (3,)}
    values, count = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        exact = (np.arange(count, count + size, dtype=np.float32).reshape(shape) - 50) / 8
        values[name] = exact
        values[name + "/ExponentialMovingAverage"] = exact / 2
        count += size
    values["global_step"] = np.array(100, step_type)
    return values


def save_checkpoint(folder, number, values, devices=1):
    """As the trainer's Saver writes it; with several devices one shard for each."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tf.Graph().as_default():
        variables = []
        for i, (name, value) in enumerate(values.items()):
            with tf.device(f"/cpu:{i % devices}"):
                variables.append(tf.Variable(value, name=name, use_resource=False))
        saver = tf.train.Saver(variables, sharded=devices > 1, save_relative_paths=True)
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": devices})) as session:
            session.run(tf.global_variables_initializer())
            saver.save(session, str(folder / "model.ckpt"), global_step=number,
                       write_meta_graph=False)


def save_partitioned(folder):
    """One variable in two slices along its first axis, as a partitioner makes it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tf.Graph().as_default():
        values = np.arange(12, dtype=np.float32).reshape(4, 3)

        def rows(shape, dtype, partition_info):
            first = partition_info.var_offset[0]
            return tf.constant(values[first:first + shape[0]], dtype)

        tf.get_variable("local3/weights", (4, 3), initializer=rows, use_resource=False,
                        partitioner=tf.fixed_size_partitioner(2))
        saver = tf.train.Saver(save_relative_paths=True)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            saver.save(session, str(folder / "model.ckpt"), global_step=1, write_meta_graph=False)


def make_checkpoints(out):
    out = out / "checkpoints"
    types = {
        "a_float32": np.array([1.5, -0.0, 3e38], np.float32),
        "b_float64": np.array([[1 / 3, 1e-300]], np.float64),
        "c_int32": np.array([-7, 2**31 - 1], np.int32),
        "d_int64": np.array([-2**40, 9], np.int64),
        "e_bfloat16": np.array([1.0, -2.5]).astype(tf.bfloat16.as_numpy_dtype),
        "f_float16": np.array([0.5, 65504.0], np.float16),
        "g_bool": np.array([True, False]),
        "h_uint8": np.array([0, 255], np.uint8),
        "i_string": np.array([b"one", b"", b"three"], object),
        "j_empty": np.zeros((0, 3), np.float32),
        "k_scalar": np.array(2.25, np.float32),
    }
    cases = {  # folder: (number in the file name, values, shards)
        "float32_step": (99, checkpoint_values(np.float32), 1),
        "int32_step_three_shards": (99, checkpoint_values(np.int32), 3),
        "int64_step": (99, checkpoint_values(np.int64), 1),
        "all_types": (0, types, 1),
    }
    expected = {"about": f"TensorFlow {tf.__version__}; values in row-major order"}
    for name, (number, values, devices) in cases.items():
        save_checkpoint(out / name, number, values, devices)
        expected[name] = {
            "prefix": f"model.ckpt-{number}", "shards": devices,
            "tensors": {k: {"type": "string" if v.dtype == object else str(v.dtype),
                            "shape": list(v.shape),
                            "values": [x.decode() if isinstance(x, bytes) else
                                       x if isinstance(x, (bool, int)) else float(x)
                                       for x in v.ravel().tolist()]}
                        for k, v in sorted(values.items())}}
    save_partitioned(out / "partitioned")
    # What a folder that was moved holds: TensorFlow's text of a state file with absolute paths.
    gone = "/home/somebody/cifar10_train/"
    state = tf.train.generate_checkpoint_state_proto(
        gone, gone + "model.ckpt-99", [gone + "model.ckpt-0", gone + "model.ckpt-99"])
    (out / "int64_step" / "checkpoint").write_text(str(state))
    write_json(out / "expected.json", expected)
    for name in cases:
        reader = tf.train.load_checkpoint(str(out / name / expected[name]["prefix"]))
        assert set(reader.get_variable_to_shape_map()) == set(expected[name]["tensors"]), name
