"""Each layer kind alone: ../layers.safetensors."""
from .common import tf, write_tensors
import numpy as np


def conv2d(x, w, b, stride=1):
    return tf.nn.bias_add(tf.nn.conv2d(x, w, [1, stride, stride, 1], "SAME"), b)


def max_pool(x, size, stride):
    return tf.nn.max_pool(x, [1, size, size, 1], [1, stride, stride, 1], "SAME")


def make_layers(out):
    """Each layer kind alone: x, parameters and dy go in; y and the gradients of sum(y * dy) come out."""
    rng = np.random.default_rng(11)
    tensors = {}

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def add(name, parameters, inputs, layer):
        given = {k: tf.constant(v) for k, v in inputs.items()}
        with tf.GradientTape() as tape:
            tape.watch(list(given.values()))
            y = layer(**given)
            dy = draw(*y.shape)
            total = tf.reduce_sum(y * dy)
        gradients = tape.gradient(total, given)
        tensors.update({f"{name}/{k}": v for k, v in inputs.items()})
        tensors.update({f"{name}/d{k}": g.numpy() for k, g in gradients.items()})
        tensors.update({f"{name}/y": y.numpy(), f"{name}/dy": dy, f"{name}/parameters": parameters})

    convolutions = [(4, 2, (7, 5, 3), 5), (5, 1, (6, 6, 5), 17), (3, 2, (6, 9, 1), 3),
                    (5, 1, (2, 3, 3), 4), (5, 3, (8, 8, 3), 2), (1, 1, (3, 3, 17), 1)]
    for i, (kernel, stride, extent, outputs) in enumerate(convolutions):
        add(f"convolution/{i}", np.array([kernel, stride], np.int32),
            dict(x=draw(2, *extent), w=draw(kernel, kernel, extent[2], outputs), b=draw(outputs)),
            lambda x, w, b, stride=stride: conv2d(x, w, b, stride))
    pools = [(3, 2, (7, 5, 3)), (2, 1, (4, 4, 2)), (5, 3, (8, 7, 1)), (3, 2, (1, 1, 3)),
             (2, 2, (5, 5, 4))]
    for i, (size, stride, extent) in enumerate(pools):
        add(f"max_pool/{i}", np.array([size, stride], np.int32), dict(x=draw(2, *extent)),
            lambda x, size=size, stride=stride: max_pool(x, size, stride))
    # Few different values, so that most windows hold ties.
    add("max_pool/ties", np.array([3, 2], np.int32),
        dict(x=rng.integers(-2, 1, (2, 6, 6, 4)).astype(np.float32)), lambda x: max_pool(x, 3, 2))
    norms = [(4, 1.0, 0.001 / 9, 0.75, (3, 2, 17)), (2, 2.0, 0.3, 0.5, (2, 2, 5)),
             (1, 1.0, 0.2, 1.0, (2, 2, 3)), (9, 1.5, 0.1, 0.75, (1, 3, 5))]
    for i, (radius, bias, alpha, beta, extent) in enumerate(norms):
        add(f"local_response_norm/{i}", np.array([radius, bias, alpha, beta], np.float32),
            dict(x=3 * draw(2, *extent)),
            lambda x, p=(radius, bias, alpha, beta): tf.nn.lrn(x, *p))
    write_tensors(out / "layers.safetensors", tensors)
