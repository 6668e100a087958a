"""What may be written to between an op and its backward: all that PyTorch allows.

Gradients of an op read some of its arguments and results again. To write to those is an error, so
a program that PyTorch runs must not find more of them here. Each op is run on arguments with a
history; then one argument, or the results, are written to, and backward runs.
"""

from functools import partial

import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

SQUARE, IMAGES = (3, 3), (2, 3, 4, 4)

UNARY_NAMES = """
    abs acos asin atan ceil cos cosh erf erfc erfinv exp exp2 expm1 floor frac lgamma log log10
    log1p log2 logit neg reciprocal round rsqrt sigmoid sign sin sinc sinh sqrt square tan tanh
    trunc digamma i0 nan_to_num asinh atanh relu
"""
BINARY_NAMES = """
    add sub mul div atan2 fmax fmin maximum minimum hypot logaddexp pow xlogy copysign fmod
    remainder float_power mm inner dist
"""
REDUCTION_NAMES = """
    sum mean prod std var logsumexp amax amin cumsum cumprod logcumsumexp nansum softmax log_softmax
"""
ACTIVATION_NAMES = """
    relu relu6 elu selu celu leaky_relu gelu silu mish softplus hardtanh hardswish hardsigmoid
    softsign softshrink hardshrink logsigmoid normalize
"""
LOSS_NAMES = """
    l1_loss mse_loss smooth_l1_loss huber_loss binary_cross_entropy
    binary_cross_entropy_with_logits kl_div poisson_nll_loss cosine_similarity pairwise_distance
"""


def functional(T, name):
    return getattr(T.nn.functional, name)


def layer(T, name, *sizes, **options):
    return getattr(T.nn, name)(*sizes, **options).double()


def each(names, run, *shapes, label="{}"):
    """The ops of several names, run by run(name, T, *arguments)."""
    return {label.format(name): (partial(run, name), *shapes) for name in names.split()}


def of_root(name, T, *arguments):
    return getattr(T, name)(*arguments)


def along_columns(name, T, x):
    return getattr(T, name)(x, 0)


def overwriting(name, T, x):
    return getattr(x.clone(), name + "_")()


def of_functional(name, T, *arguments, **options):
    return functional(T, name)(*arguments, **options)


def layer_on(name, T, x):
    return layer(T, name, 3, 2)(x)


# An op of the library T, and the shapes of its arguments.
CASES = {
    **each(UNARY_NAMES, of_root, SQUARE),
    **each(UNARY_NAMES, overwriting, SQUARE, label="{}_"),
    **each(BINARY_NAMES, of_root, SQUARE, SQUARE),
    **each(REDUCTION_NAMES, along_columns, SQUARE),
    **each(ACTIVATION_NAMES, of_functional, SQUARE, label="nn.{}"),
    **each(
        "relu relu6 elu leaky_relu silu hardtanh hardswish",
        lambda name, T, x: functional(T, name)(x.clone(), inplace=True),
        SQUARE,
        label="nn.{} in place",
    ),
    **each(LOSS_NAMES, of_functional, SQUARE, SQUARE, label="nn.{}"),
    "division by the sum": (lambda T, x: x / x.sum(1, keepdim=True), SQUARE),
    "number / tensor": (lambda T, x: 1 / x.clone(), SQUARE),
    "number ** tensor": (lambda T, x: 2**x, SQUARE),
    "cube": (lambda T, x: x**3, SQUARE),
    "addcdiv": (lambda T, x, y, z: T.addcdiv(x, y, z), SQUARE, SQUARE, SQUARE),
    "lerp": (lambda T, x, y: T.lerp(x, y, 0.25), SQUARE, SQUARE),
    "clamp": (lambda T, x: x.clamp(0.2, 0.6), SQUARE),
    "index": (lambda T, x: x[T.tensor([0, 2])], SQUARE),
    "cat": (lambda T, x, y: T.cat([x, y]), SQUARE, SQUARE),
    "linear": (lambda T, x, w, b: functional(T, "linear")(x, w, b), SQUARE, SQUARE, (3,)),
    "conv2d": (lambda T, x, w: functional(T, "conv2d")(x, w), IMAGES, (2, 3, 2, 2)),
    "batch_norm": (
        lambda T, x, w, b: functional(T, "batch_norm")(x, None, None, w, b, True),
        IMAGES,
        (3,),
        (3,),
    ),
    "layer_norm": (lambda T, x, w: functional(T, "layer_norm")(x, (4,), w), IMAGES, (4,)),
    "max_pool2d": (lambda T, x: functional(T, "max_pool2d")(x, 2), IMAGES),
    "interpolate": (lambda T, x: functional(T, "interpolate")(x, scale_factor=2), IMAGES),
    "dropout": (lambda T, x: functional(T, "dropout")(x, 0.25), SQUARE),
    "attention": (
        lambda T, q, k, v: functional(T, "scaled_dot_product_attention")(q, k, v),
        *[(1, 2, 3, 4)] * 3,
    ),
    "inv": (lambda T, x: T.linalg.inv(x), SQUARE),
    "solve": (lambda T, x, y: T.linalg.solve(x, y), SQUARE, SQUARE),
    **each("LSTM GRU RNN", layer_on, (4, 2, 3)),
    "bidirectional LSTM": (
        lambda T, x: layer(T, "LSTM", 3, 2, num_layers=2, bidirectional=True)(x),
        (4, 2, 3),
    ),
    **each("LSTMCell GRUCell RNNCell", layer_on, (2, 3)),
}


def tensors_of(result, T):
    if isinstance(result, T.Tensor):
        return [result] if result.requires_grad else []
    return [each for item in result for each in tensors_of(item, T)]


def refused(T, op, shapes):
    """Which writes backward refuses: one to each argument, and one to the results."""
    answers = []
    for written in range(len(shapes) + 1):
        T.manual_seed(0)
        leaves = [(T.rand(s, dtype=T.float64) * 0.8 + 0.1).requires_grad_() for s in shapes]
        arguments = [leaf * 1 for leaf in leaves]
        results = tensors_of(op(T, *arguments), T)
        for tensor in results if written == len(shapes) else [arguments[written]]:
            tensor.add_(0)
        try:
            sum(result.sum() for result in results).backward()
            answers.append(False)
        except RuntimeError:
            answers.append(True)
    return answers


@pytest.mark.parametrize("name", CASES)
def test_backward_refuses_no_write_that_pytorch_allows(name):
    op, *shapes = CASES[name]
    here, there = refused(torch, op, shapes), refused(pytorch, op, shapes)
    assert [ours for ours, theirs in zip(here, there, strict=True) if not theirs and ours] == []
