"""Samples of convolutions, against sums over every window."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from samples import Sample, complex_normal, integers, normal, samples


def spread(value: Any, dims: int) -> list[int]:
    return list(value) if isinstance(value, (tuple, list)) else [value] * dims


def conv_ref(
    x: np.ndarray,
    w: np.ndarray,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> np.ndarray:
    dims = w.ndim - 2
    if x.ndim == dims + 1:
        return conv_ref(x[None], w, b, stride, padding, dilation, groups)[0]
    stride, dilation = spread(stride, dims), spread(dilation, dims)
    reach = [d * (k - 1) for d, k in zip(dilation, w.shape[2:], strict=True)]
    if padding == "same":
        pads = [(r // 2, r - r // 2) for r in reach]
    else:
        pads = [(p, p) for p in spread(0 if padding == "valid" else padding, dims)]
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    size = [(n - r - 1) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride, strict=True)]
    inputs, outputs = w.shape[1], w.shape[0] // groups
    out = np.zeros((x.shape[0], w.shape[0], *size), np.result_type(x, w))
    for tap in product(*map(range, w.shape[2:])):
        window = tuple(
            slice(t * d, t * d + s * (n - 1) + 1, s)
            for t, d, s, n in zip(tap, dilation, stride, size, strict=True)
        )
        for g in range(groups):
            part = x[(slice(None), slice(g * inputs, (g + 1) * inputs), *window)]
            mine = slice(g * outputs, (g + 1) * outputs)
            out[:, mine] += np.einsum("nc...,oc->no...", part, w[(mine, slice(None), *tap)])
    return out if b is None else out + b.reshape(-1, *[1] * dims)


@samples("nn.functional.conv1d", ref=conv_ref)
def conv1d() -> Iterator[Any]:
    yield normal(2, 3, 8), normal(4, 3, 3), normal(4)
    yield Sample(normal(2, 4, 9), normal(6, 2, 3), stride=2, padding=1, dilation=2, groups=2)
    yield normal(3, 8), normal(4, 3, 1)


@samples("nn.functional.conv2d", ref=conv_ref)
def conv2d() -> Iterator[Any]:
    yield normal(2, 3, 5, 6), normal(4, 3, 3, 2), normal(4)
    yield Sample(
        normal(2, 4, 7, 6), normal(4, 1, 3, 3), normal(4), stride=(2, 1), padding=(1, 2), groups=4
    )
    yield Sample(normal(1, 2, 7, 7), normal(3, 2, 3, 2), dilation=(2, 3))
    yield normal(3, 4, 4), normal(2, 3, 3, 3)
    yield normal(0, 3, 4, 4), normal(2, 3, 3, 3)
    yield complex_normal(2, 3, 5, 4), complex_normal(4, 3, 3, 2), complex_normal(4)
    yield integers(-9, 9, 1, 4, 5, 5), integers(-9, 9, 2, 2, 3, 3), integers(-9, 9, 2), 1, 1, 1, 2


@samples("nn.functional.conv3d", ref=conv_ref)
def conv3d() -> Iterator[Any]:
    yield normal(1, 2, 3, 4, 3), normal(2, 2, 2, 2, 2), normal(2)
    yield Sample(normal(1, 2, 4, 4, 4), normal(2, 1, 3, 2, 2), stride=2, padding=1, groups=2)


for _dims in (1, 2, 3):

    @samples(f"nn.functional.conv{_dims}d.padding", ref=conv_ref)
    def conv_padding(dims: int = _dims) -> Iterator[Any]:
        yield Sample(normal(1, 2, *[5] * dims), normal(2, 2, *[3] * dims), padding="same")
        yield Sample(
            normal(1, 2, *[5] * dims), normal(2, 2, *[2] * dims), normal(2), padding="same"
        )
        yield Sample(
            normal(1, 2, *[5] * dims), normal(2, 2, *[2] * dims), padding="valid", stride=2
        )


def conv_transpose_ref(
    x: np.ndarray, w: np.ndarray, b: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> np.ndarray:  # fmt: skip
    """Each input element adds the kernel, scaled, at its place."""
    dims = w.ndim - 2
    if x.ndim == dims + 1:
        return conv_transpose_ref(x[None], w, b, stride, padding, output_padding, groups, dilation)[
            0
        ]
    stride, dilation, padding = spread(stride, dims), spread(dilation, dims), spread(padding, dims)
    extra = spread(output_padding, dims)
    inputs, outputs = w.shape[0] // groups, w.shape[1]
    full = [
        (n - 1) * s + d * (k - 1) + 1 + e
        for n, s, d, k, e in zip(x.shape[2:], stride, dilation, w.shape[2:], extra, strict=True)
    ]
    out = np.zeros((x.shape[0], outputs * groups, *full), np.result_type(x, w))
    for tap in product(*map(range, w.shape[2:])):
        window = tuple(
            slice(t * d, t * d + s * (n - 1) + 1, s)
            for t, d, s, n in zip(tap, dilation, stride, x.shape[2:], strict=True)
        )
        for g in range(groups):
            mine = slice(g * inputs, (g + 1) * inputs)
            target = out[(slice(None), slice(g * outputs, (g + 1) * outputs), *window)]
            target += np.einsum("nc...,co->no...", x[:, mine], w[(mine, slice(None), *tap)])
    crop = tuple(slice(p, n - p) for p, n in zip(padding, full, strict=True))
    out = out[(slice(None), slice(None), *crop)]
    return out if b is None else out + b.reshape(-1, *[1] * dims)


@samples("nn.functional.conv_transpose1d", ref=conv_transpose_ref)
def conv_transpose1d() -> Iterator[Any]:
    yield normal(2, 3, 5), normal(3, 4, 3), normal(4)
    yield Sample(normal(2, 4, 5), normal(4, 2, 3), stride=2, padding=1, output_padding=1, groups=2)
    yield complex_normal(2, 3, 5), complex_normal(3, 4, 3), complex_normal(4)
    yield integers(-9, 9, 2, 3, 5), integers(-9, 9, 3, 4, 3), integers(-9, 9, 4)
    yield Sample(normal(1, 2, 4), normal(2, 2, 2), padding=1, output_padding=3, dilation=4)


@samples("nn.functional.conv_transpose2d", ref=conv_transpose_ref)
def conv_transpose2d() -> Iterator[Any]:
    yield normal(2, 3, 4, 5), normal(3, 2, 3, 2), normal(2)
    yield Sample(
        normal(1, 4, 3, 4),
        normal(4, 1, 3, 3),
        stride=(2, 3),
        padding=1,
        output_padding=(1, 2),
        groups=2,
    )
    yield Sample(normal(1, 2, 3, 3), normal(2, 2, 2, 2), dilation=2)
    yield normal(2, 3, 3), normal(2, 1, 2, 2)


@samples("nn.functional.conv_transpose3d", ref=conv_transpose_ref)
def conv_transpose3d() -> Iterator[Any]:
    yield normal(1, 2, 2, 3, 2), normal(2, 2, 2, 1, 2), normal(2)
    yield Sample(
        normal(1, 2, 2, 2, 3),
        normal(2, 1, 3, 2, 2),
        stride=(2, 1, 2),
        padding=(1, 0, 1),
        output_padding=(1, 0, 0),
        groups=2,
    )
    yield Sample(normal(2, 2, 2, 2), normal(2, 1, 2, 2, 2), dilation=(1, 2, 1))


@samples(
    "conv_tbc",
    ref=lambda x, w, b, pad=0: conv_ref(
        x.transpose(1, 2, 0), w.transpose(2, 1, 0), b, padding=pad
    ).transpose(2, 0, 1),
)
def conv_tbc() -> Iterator[Any]:
    yield normal(6, 2, 3), normal(3, 3, 4), normal(4)
    yield normal(5, 1, 2), normal(2, 2, 3), normal(3), 2
