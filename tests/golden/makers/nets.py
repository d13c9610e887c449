"""Whole nets: ../small_net.safetensors and ../curve.json."""
from .common import VERSION, tf, write_json, write_tensors
from .layers import conv2d, max_pool
import numpy as np


class Net:
    """The trainer's layers for any widths. Weights and biases by name; decay on local3 and local4."""
    DECAY = 0.004

    def __init__(self, widths, norm):
        c1, c2, l3, l4 = widths
        self.norm = norm
        self.shapes = {}
        for layer, shape in (("conv1", (5, 5, 3, c1)), ("conv2", (5, 5, c1, c2)),
                             ("local3", (36 * c2, l3)), ("local4", (l3, l4)),
                             ("softmax_linear", (l4, 10))):
            self.shapes[layer + "/weights"] = shape
            self.shapes[layer + "/biases"] = shape[-1:]

    def forward(self, v, x):
        """All layers' outputs by name; the convolutions and dense layers also before their relu."""
        o = {}

        def keep(name, linear):
            o[name + "/linear"] = linear
            o[name] = tf.nn.relu(linear)
            return o[name]

        def put(name, value):
            o[name] = value
            return value

        x = keep("conv1", conv2d(x, v["conv1/weights"], v["conv1/biases"]))
        x = put("norm1", tf.nn.lrn(put("pool1", max_pool(x, 3, 2)), *self.norm))
        x = keep("conv2", conv2d(x, v["conv2/weights"], v["conv2/biases"]))
        x = put("pool2", max_pool(put("norm2", tf.nn.lrn(x, *self.norm)), 3, 2))
        x = tf.reshape(x, [x.shape[0], -1])
        for name in ("local3", "local4"):
            x = keep(name, tf.matmul(x, v[name + "/weights"]) + v[name + "/biases"])
        put("softmax_linear", tf.matmul(x, v["softmax_linear/weights"]) + v["softmax_linear/biases"])
        return o

    def losses(self, v, logits, labels):
        """[weight loss of local3, of local4, cross-entropy], in the order of the trainer's summaries."""
        return [self.DECAY * tf.nn.l2_loss(v["local3/weights"]),
                self.DECAY * tf.nn.l2_loss(v["local4/weights"]),
                tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=labels, logits=logits))]

    def forward_backward(self, v, x, labels):
        given = {k: tf.constant(a) for k, a in v.items()}
        with tf.GradientTape() as tape:
            tape.watch(list(given.values()))
            outputs = self.forward(given, tf.constant(x))
            losses = self.losses(given, outputs["softmax_linear"], tf.constant(labels))
            total = tf.add_n([losses[2]] + losses[:2])
        gradients = {k: g.numpy() for k, g in tape.gradient(total, given).items()}
        return ({k: o.numpy() for k, o in outputs.items()},
                np.array([float(l) for l in losses], np.float32), float(total), gradients)


def margins(outputs):
    """Per example: how far the nearest relu or pool decision is from flipping, over the layer's maximum."""
    nearest = None
    for name in ("conv1", "conv2", "local3", "local4"):
        linear = np.abs(outputs[name + "/linear"]).reshape(len(outputs[name]), -1)
        margin = linear.min(1) / linear.max(1)
        nearest = margin if nearest is None else np.minimum(nearest, margin)
    for name in ("conv1", "norm2"):
        x = outputs[name]
        windows = tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
        shape = list(windows.shape[:3]) + [9, x.shape[3]]
        ranked = np.sort(windows.numpy().reshape(shape), axis=3)
        first, second = ranked[..., -1, :], ranked[..., -2, :]
        gap = np.where(first > 0, first - second, np.inf).reshape(len(x), -1)  # all zero: no gradient
        nearest = np.minimum(nearest, gap.min(1) / x.reshape(len(x), -1).max(1))
    return nearest


def make_small_net(out):
    """The trainer's net with a tenth of the width, on the 4 of 3000 random images widest of flips."""
    rng = np.random.default_rng(12)
    net = Net((8, 8, 24, 16), (2, 1.0, 0.05, 0.75))
    v = {k: (rng.standard_normal(s) * (0.1 if k == "conv1/weights" else 1.5 / np.prod(s[:-1])**0.5)
             if len(s) > 1 else rng.uniform(-0.2, 0.2, s)).astype(np.float32)
         for k, s in net.shapes.items()}
    # Smooth images, as photographs are: noise of 7 x 7 cells, enlarged.
    cells = rng.standard_normal((3000, 7, 7, 3)).astype(np.float32)
    x = tf.image.per_image_standardization(tf.image.resize(cells, (24, 24), "bicubic")).numpy()
    margin = margins({k: o.numpy() for k, o in net.forward(v, tf.constant(x)).items()})
    widest = np.sort(np.argsort(margin)[-4:])
    x, labels = x[widest], np.array([3, 0, 9, 3], np.int32)
    outputs, losses, total, gradients = net.forward_backward(v, x, labels)
    tensors = {"input": x, "labels": labels, "losses": losses, "total_loss": np.float32([total])}
    tensors.update(v)
    tensors.update({f"grad/{k}": g for k, g in gradients.items()})
    tensors.update({f"output/{k}": o for k, o in outputs.items() if not k.endswith("/linear")})
    write_tensors(out / "small_net.safetensors", tensors,
                  f"; smallest margin over layer maximum {margin[widest].min():.2e}")


def formula(count, stream):
    """`count` values in [-1, 1), exact in float32: a hash of (stream, index), simple enough to say twice."""
    h = np.arange(count, dtype=np.uint32) + np.uint32(stream * 0x9E3779B9 & 0xFFFFFFFF)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x7FEB352D)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x846CA68B)
    h ^= h >> np.uint32(16)
    return (h >> np.uint32(8)).astype(np.float32) / np.float32(2**23) - np.float32(1)


def make_curve(out):
    """Ten steps of the trainer's own net on one batch of 8: all that goes in comes from `formula`.

    Scales and images (4 x 4 cells and a little noise) are such that the loss falls smoothly: where it
    does not, rounding grows from step to step until two right answers differ."""
    net = Net((64, 64, 384, 192), (4, 1.0, 0.001 / 9, 0.75))
    v = {}
    for i, (name, shape) in enumerate(net.shapes.items()):
        scale = np.float32(0.08 if name.startswith("conv") else 0.04)
        v[name] = (formula(int(np.prod(shape)), i + 1) * scale).reshape(shape)
    average = {k: a.copy() for k, a in v.items()}
    cells = (formula(8 * 6 * 6 * 3, 101) * np.float32(1.5)).reshape(8, 6, 6, 3)
    noise = (formula(8 * 24 * 24 * 3, 100) * np.float32(0.3)).reshape(8, 24, 24, 3)
    x = cells.repeat(4, 1).repeat(4, 2) + noise
    labels = (np.arange(8) * 7 % 10).astype(np.int32)
    steps, first_gradients = [], None
    with tf.Graph().as_default(), tf.Session() as session:
        variables = {k: tf.Variable(a, name=k) for k, a in v.items()}
        outputs = net.forward(variables, tf.constant(x))
        losses = net.losses(variables, outputs["softmax_linear"], tf.constant(labels))
        total = tf.add_n([losses[2]] + losses[:2])
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        pairs = optimizer.compute_gradients(total, list(variables.values()))
        descend = optimizer.apply_gradients(pairs, global_step=step)
        ema = tf.train.ExponentialMovingAverage(0.9999, step)
        with tf.control_dependencies([descend]):
            update = ema.apply(list(variables.values()))
        session.run(tf.global_variables_initializer())
        for _ in range(10):
            gradients, values, t, _ = session.run([[g for g, _ in pairs], losses, total, update])
            first_gradients = first_gradients or dict(zip(variables, gradients))
            steps.append({"cross_entropy": float(values[2]), "weight_losses":
                          [float(values[0]), float(values[1])], "total_loss": float(t)})
        v = {k: session.run(a) for k, a in variables.items()}
        average = {k: session.run(ema.average(a)) for k, a in variables.items()}

    def brief(tensor):
        flat = tensor.ravel()
        picked = flat[np.linspace(0, flat.size - 1, min(flat.size, 12)).astype(int)]
        return {"norm": float(np.linalg.norm(flat.astype(np.float64))),
                "picked": [float(p) for p in picked]}

    write_json(out / "curve.json", {
        "about": VERSION + ". 'picked': up to 12 values, evenly spread from the first to the last: "
                 "index floor(i * (size - 1) / (n - 1)).",
        "batch_size": 8, "learning_rate": 0.1, "steps": steps,
        "first_gradients": {k: brief(g) for k, g in first_gradients.items()},
        "variables": {k: brief(a) for k, a in v.items()},
        "moving_averages": {k: brief(a) for k, a in average.items()}})
