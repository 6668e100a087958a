"""Memory formats and strides of every kind give what they give in PyTorch: conversions, mixtures,
ops of networks, on images that have gaps, are expanded, or could lie in several orders.
"""

from __future__ import annotations

import copy
import math

import pytest
from compat.memory_orders import order_of

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

FORMATS = ["contiguous_format", "channels_last", "channels_last_3d", "preserve_format"]


def count(lib, *sizes):
    return lib.arange(float(math.prod(sizes))).reshape(*sizes)


def last(lib, *sizes):
    formats = {4: lib.channels_last, 5: lib.channels_last_3d}
    return count(lib, *sizes).contiguous(memory_format=formats[len(sizes)])


def forced(lib, sizes, strides):
    return lib.empty_strided(sizes, strides).fill_(1)


IMAGES = {
    "row-major": lambda lib: count(lib, 2, 3, 4, 5),
    "channels_last": lambda lib: last(lib, 2, 3, 4, 5),
    "volumes": lambda lib: last(lib, 2, 3, 4, 5, 2),
    "every second row": lambda lib: last(lib, 2, 3, 8, 5)[:, :, ::2],
    "first channels": lambda lib: last(lib, 2, 6, 4, 5)[:, :3],
    "last channels": lambda lib: last(lib, 2, 6, 4, 5).chunk(2, 1)[1],
    "every second sample": lambda lib: last(lib, 4, 3, 4, 5)[::2],
    "every second column, row-major": lambda lib: count(lib, 2, 3, 4, 10)[..., ::2],
    "first channels, row-major": lambda lib: count(lib, 2, 6, 4, 5)[:, :3],
    "every second channel of volumes": lambda lib: last(lib, 2, 6, 4, 5, 2)[:, ::2],
    "one sample": lambda lib: last(lib, 1, 3, 4, 5),
    "one channel": lambda lib: last(lib, 2, 1, 4, 5),
    "one channel, last": lambda lib: forced(lib, (2, 1, 4, 5), (20, 1, 5, 1)),
    "one pixel": lambda lib: last(lib, 2, 3, 1, 1),
    "one pixel, channels last": lambda lib: forced(lib, (2, 3, 1, 1), (3, 1, 3, 3)),
    "one column": lambda lib: last(lib, 2, 3, 4, 1),
    "one row": lambda lib: last(lib, 2, 3, 1, 4),
    "transposed": lambda lib: count(lib, 2, 3, 4, 5).transpose(1, 2),
    "transposed with gaps": lambda lib: count(lib, 2, 3, 4, 10).transpose(1, 2)[..., ::2],
    "expanded channels": lambda lib: count(lib, 2, 1, 4, 5).expand(2, 3, 4, 5),
    "expanded rows": lambda lib: last(lib, 2, 3, 1, 5).expand(2, 3, 4, 5),
    "one number": lambda lib: count(lib, 1).expand(2, 3, 4, 5),
    "matrix": lambda lib: count(lib, 3, 4).t(),
    "matrix with gaps": lambda lib: count(lib, 3, 8)[:, ::2].t(),
    "decoded image": lambda lib: count(lib, 4, 5, 3).permute(2, 0, 1),
}

CONVERSIONS = {
    "clone": lambda lib, x: x.clone(),
    "to dtype": lambda lib, x: x.to(lib.float64),
    "to copy": lambda lib, x: x.to(lib.float32, copy=True),
    "half": lambda lib, x: x.half(),
    "type_as": lambda lib, x: x.type_as(lib.zeros(1, dtype=lib.int32)),
    "detach": lambda lib, x: x.detach(),
    "deepcopy": lambda lib, x: copy.deepcopy(x),
    "empty_like": lambda lib, x: lib.empty_like(x),
    "zeros_like": lambda lib, x: lib.zeros_like(x),
    "ones_like of a dtype": lambda lib, x: lib.ones_like(x, dtype=lib.float64),
    "full_like": lambda lib, x: lib.full_like(x, 2),
    "rand_like": lambda lib, x: lib.rand_like(x),
    "randn_like": lambda lib, x: lib.randn_like(x),
    "randint_like": lambda lib, x: lib.randint_like(x, 3),
    "new_empty": lambda lib, x: x.new_empty(x.shape),
    "new_zeros": lambda lib, x: x.new_zeros(x.shape),
}
for _format in FORMATS:
    CONVERSIONS |= {
        f"clone {_format}": lambda lib, x, f=_format: x.clone(memory_format=getattr(lib, f)),
        f"contiguous {_format}": lambda lib, x, f=_format: x.contiguous(
            memory_format=getattr(lib, f)
        ),
        f"to {_format}": lambda lib, x, f=_format: x.to(memory_format=getattr(lib, f)),
        f"to dtype, {_format}": lambda lib, x, f=_format: x.to(
            lib.float64, memory_format=getattr(lib, f)
        ),
        f"to copy, {_format}": lambda lib, x, f=_format: x.to(
            lib.float32, copy=True, memory_format=getattr(lib, f)
        ),
        f"double {_format}": lambda lib, x, f=_format: x.double(memory_format=getattr(lib, f)),
        f"empty_like {_format}": lambda lib, x, f=_format: lib.empty_like(
            x, memory_format=getattr(lib, f)
        ),
        f"empty {_format}": lambda lib, x, f=_format: lib.empty(
            x.shape, memory_format=getattr(lib, f)
        ),
        f"is {_format}": lambda lib, x, f=_format: (
            None if f == "preserve_format" else x.is_contiguous(memory_format=getattr(lib, f))
        ),
    }


def channels(lib, x):
    """One number for each channel, in a shape that broadcasts."""
    return lib.ones(x.shape[1]).reshape(-1, *[1] * (x.dim() - 2))


MIXTURES = {
    "relu": lambda lib, x: x.relu(),
    "with a number": lambda lib, x: 1 - x,
    "with a 0-d tensor": lambda lib, x: lib.tensor(2.0) * x,
    "with itself": lambda lib, x: x + x,
    "with row-major": lambda lib, x: x + x.contiguous(),
    "row-major with it": lambda lib, x: x.contiguous() + x,
    "with channels": lambda lib, x: x * channels(lib, x),
    "channels with it": lambda lib, x: channels(lib, x) * x,
    "with means": lambda lib, x: x - x.mean(1, keepdim=True),
    "parts that broadcast": lambda lib, x: x[:, :, :1] + x[:, :1] if x.dim() > 2 else x,
    "where": lambda lib, x: lib.where(x > 1, x, 0.0),
    "where row-major": lambda lib, x: lib.where(x.contiguous() > 1, x, x),
    "lerp": lambda lib, x: lib.lerp(x, x.contiguous(), 0.5),
    "addcmul": lambda lib, x: lib.addcmul(x.contiguous(), x, x),
    "comparison": lambda lib, x: x.to(lib.int32) >= x,
    "masked_fill": lambda lib, x: x.masked_fill(x > 1, 0.0),
    "cat": lambda lib, x: lib.cat([x, x], 1),
    "cat with row-major": lambda lib, x: lib.cat([x, x.contiguous()], 1),
    "stack": lambda lib, x: lib.stack([x, x]),
    "stack along 1": lambda lib, x: lib.stack([x, x], 1),
    "stack along the last": lambda lib, x: lib.stack([x, x], -1),
    "flip": lambda lib, x: x.flip(1),
    "roll": lambda lib, x: x.roll(1, 1),
    "roll along two": lambda lib, x: x.roll((1, 1), (0, 1)),
    "rot90": lambda lib, x: lib.rot90(x, 1, (0, 1)),
    "repeat": lambda lib, x: x.repeat(*[2] * x.dim()),
    "some samples": lambda lib, x: x[lib.tensor([1, 0, 0])] if x.shape[0] > 1 else x,
    "some channels": lambda lib, x: x[:, lib.tensor([0, 0])],
    "index_select": lambda lib, x: x.index_select(0, lib.tensor([0, 0])),
    "gather": lambda lib, x: x.gather(1, lib.zeros(x.shape, dtype=lib.int64)),
    "scatter": lambda lib, x: x.scatter(1, lib.zeros(x.shape, dtype=lib.int64), 1.0),
    "sort": lambda lib, x: x.sort(1)[1],
    "topk": lambda lib, x: x.topk(1, 1)[0],
    "sum": lambda lib, x: x.sum(1),
    "amax": lambda lib, x: x.amax(1, keepdim=True),
    "softmax": lambda lib, x: x.softmax(1),
    "cumsum": lambda lib, x: x.cumsum(1),
    "reshape": lambda lib, x: x.reshape(x.shape[0], -1),
    "matmul": lambda lib, x: x @ lib.ones(x.shape[-1], 3),
}


def of_images(name, function):
    """A function of F for images of 4 dims only."""

    def call(lib, x):
        return function(lib, lib.nn.functional, x) if x.dim() == 4 else x

    return f"F.{name}", call


LAYERS = dict(
    of_images(name, function)
    for name, function in {
        "conv2d": lambda lib, F, x: F.conv2d(x, lib.ones(4, x.shape[1], 1, 1)),
        "conv2d by its weight": lambda lib, F, x: F.conv2d(
            x, last(lib, 4, x.shape[1], 3, 3), padding=1
        ),
        "conv2d, depthwise": lambda lib, F, x: F.conv2d(
            x, lib.ones(x.shape[1], 1, 3, 3), padding=1, groups=x.shape[1]
        ),
        "conv_transpose2d": lambda lib, F, x: F.conv_transpose2d(x, lib.ones(x.shape[1], 4, 2, 2)),
        "max_pool2d": lambda lib, F, x: F.max_pool2d(x, 1),
        "max_pool2d, places": lambda lib, F, x: F.max_pool2d(x, 1, return_indices=True)[1],
        "max_unpool2d": lambda lib, F, x: F.max_unpool2d(
            *F.max_pool2d(x, 1, return_indices=True), 1
        ),
        "avg_pool2d": lambda lib, F, x: F.avg_pool2d(x, 1),
        "lp_pool2d": lambda lib, F, x: F.lp_pool2d(x, 2.0, 1),
        "adaptive_avg_pool2d": lambda lib, F, x: F.adaptive_avg_pool2d(x, 2),
        "adaptive_max_pool2d": lambda lib, F, x: F.adaptive_max_pool2d(x, 2),
        "squeeze and excite": lambda lib, F, x: F.adaptive_avg_pool2d(x, 1).sigmoid() * x,
        "batch_norm": lambda lib, F, x: F.batch_norm(x, None, None, training=True),
        "batch_norm, running": lambda lib, F, x: F.batch_norm(
            x, lib.zeros(x.shape[1]), lib.ones(x.shape[1])
        ),
        "group_norm": lambda lib, F, x: F.group_norm(x, 1),
        "instance_norm": lambda lib, F, x: F.instance_norm(x),
        "layer_norm": lambda lib, F, x: F.layer_norm(x, x.shape[-1:]),
        "local_response_norm": lambda lib, F, x: F.local_response_norm(x, 2),
        "normalize": lambda lib, F, x: F.normalize(x, dim=1),
        "dropout": lambda lib, F, x: F.dropout(x, 0.5),
        "dropout2d": lambda lib, F, x: F.dropout2d(x, 0.5),
        "alpha_dropout": lambda lib, F, x: F.alpha_dropout(x, 0.5, training=True),
        "prelu": lambda lib, F, x: F.prelu(x, lib.ones(x.shape[1])),
        "gelu": lambda lib, F, x: F.gelu(x),
        "glu": lambda lib, F, x: F.glu(lib.cat([x, x], 1), 1),
        "pixel_shuffle": lambda lib, F, x: F.pixel_shuffle(lib.cat([x] * 4, 1), 2),
        "pixel_unshuffle": lambda lib, F, x: F.pixel_unshuffle(
            lib.cat([x] * 2, 2), (2, 1)[x.shape[3] % 2]
        ),
        "channel_shuffle": lambda lib, F, x: F.channel_shuffle(lib.cat([x, x], 1), 2),
        "interpolate nearest": lambda lib, F, x: F.interpolate(x, scale_factor=2),
        "interpolate bilinear": lambda lib, F, x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        "interpolate bicubic": lambda lib, F, x: F.interpolate(x, scale_factor=2, mode="bicubic"),
        "interpolate, antialias": lambda lib, F, x: F.interpolate(
            x, scale_factor=0.5, mode="bilinear", antialias=True
        ),
        "pad": lambda lib, F, x: F.pad(x, (1, 1, 0, 1)),
        "pad channels": lambda lib, F, x: F.pad(x, (0, 0, 0, 0, 1, 1)),
        "pad reflect": lambda lib, F, x: F.pad(x, (1, 1, 0, 1), mode="reflect"),
        "pad replicate": lambda lib, F, x: F.pad(x, (1, 1, 0, 1), mode="replicate"),
        "grid_sample": lambda lib, F, x: F.grid_sample(
            x, lib.zeros(x.shape[0], 2, 2, 2), align_corners=False
        ),
        "unfold": lambda lib, F, x: F.unfold(x, 1),
        "mse_loss": lambda lib, F, x: F.mse_loss(x, x + 1, reduction="none"),
        "cross_entropy": lambda lib, F, x: F.cross_entropy(
            x, lib.zeros(x.shape[0], *x.shape[2:], dtype=lib.int64), reduction="none"
        ),
    }.items()
)

CALLS = CONVERSIONS | MIXTURES | LAYERS
# Images of which a result may lie otherwise than in PyTorch.
ACCEPTED = {
    # PyTorch rolls along one dim of two as along one, and sorts the index among the other dims.
    "roll along two": {"one sample"},
    "some channels": {"decoded image"},
    # One image is normalized as one of as many channels.
    "F.instance_norm": {"one sample"},
    # Scaled and shifted, each by an op of its own.
    "F.alpha_dropout": {"expanded rows"},
    # Nothing has to be copied.
    "F.pixel_shuffle": {"one pixel, channels last"},
}


def outcome(lib, call, image):
    """What a call gives: shape and order, another value, or the class of an exception."""
    try:
        result = CALLS[call](lib, IMAGES[image](lib))
    except Exception as error:
        return type(error).__name__
    if not hasattr(result, "shape"):
        return result
    return tuple(result.shape), order_of(result)


@pytest.mark.parametrize("call", CALLS)
def test_strides_equal_pytorchs(call) -> None:
    different = {
        image: (ours, theirs)
        for image in IMAGES
        if (ours := outcome(torch, call, image)) != (theirs := outcome(pytorch, call, image))
    }
    assert different.keys() <= ACCEPTED.get(call, set()), different
