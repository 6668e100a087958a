"""Pooling layers pass their settings on; the windows themselves are tested with the ops."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


def windows(x, starts, ends, reduce):
    """Reduces the last dimensions of x over the windows given for each of them."""
    dims = len(starts)
    sizes = [len(s) for s in starts]
    result = np.zeros((*x.shape[:-dims], *sizes))
    for place in np.ndindex(*sizes):
        window = tuple(slice(starts[d][p], ends[d][p]) for d, p in enumerate(place))
        result[(..., *place)] = reduce(x[(..., *window)], axis=tuple(range(-dims, 0)))
    return result


def regular(size, kernel, stride):
    starts = list(range(0, size - kernel + 1, stride))
    return starts, [start + kernel for start in starts]


def adaptive(size, out):
    return [i * size // out for i in range(out)], [-(-(i + 1) * size // out) for i in range(out)]


@pytest.mark.parametrize(
    ("layer", "reduce"),
    [(nn.MaxPool1d(3, 2), np.max), (nn.AvgPool1d(3, 2), np.mean)],
)
def test_pooling_of_sequences(layer, reduce) -> None:
    x = torch.randn(2, 3, 8)
    starts, ends = regular(8, 3, 2)
    expected = windows(x.numpy(), [starts], [ends], reduce)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "reduce"),
    [(nn.MaxPool2d((2, 3), (1, 2)), np.max), (nn.AvgPool2d((2, 3), (1, 2)), np.mean)],
)
def test_pooling_of_images(layer, reduce) -> None:
    x = torch.randn(2, 3, 6, 7)
    rows, columns = regular(6, 2, 1), regular(7, 3, 2)
    expected = windows(x.numpy(), [rows[0], columns[0]], [rows[1], columns[1]], reduce)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "reduce"),
    [
        (nn.AdaptiveAvgPool1d(3), np.mean),
        (nn.AdaptiveMaxPool1d(3), np.max),
        (nn.AdaptiveAvgPool2d((3, 2)), np.mean),
        (nn.AdaptiveMaxPool2d((3, 2)), np.max),
    ],
)
def test_adaptive_pooling(layer, reduce) -> None:
    outs = layer.output_size if isinstance(layer.output_size, tuple) else (layer.output_size,)
    x = torch.randn(2, 3, *[7, 5][: len(outs)])
    spans = [adaptive(size, out) for size, out in zip((7, 5), outs, strict=False)]
    expected = windows(x.numpy(), [s for s, _ in spans], [e for _, e in spans], reduce)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_stride_is_the_kernel_size_by_default() -> None:
    assert tuple(nn.MaxPool2d(2)(torch.zeros(1, 1, 6, 6)).shape) == (1, 1, 3, 3)
    assert tuple(nn.AvgPool1d(3)(torch.zeros(1, 1, 9)).shape) == (1, 1, 3)


def test_padding_dilation_and_ceil_mode_reach_the_op() -> None:
    x = torch.zeros(1, 1, 6)
    assert nn.MaxPool1d(2, padding=1)(x).shape[-1] == 4
    assert nn.MaxPool1d(2, stride=1, dilation=3)(x).shape[-1] == 3
    assert nn.MaxPool1d(4, stride=4, ceil_mode=True)(x).shape[-1] == 2
    assert nn.AvgPool1d(4, stride=4, ceil_mode=True)(x).shape[-1] == 2


def test_padding_counts_in_the_mean_unless_told_otherwise() -> None:
    x = torch.ones(1, 1, 2, 2)
    assert nn.AvgPool2d(2, padding=1)(x)[0, 0, 0, 0].item() == 0.25
    assert nn.AvgPool2d(2, padding=1, count_include_pad=False)(x)[0, 0, 0, 0].item() == 1
    assert nn.AvgPool2d(2, divisor_override=2)(x).item() == 2


def test_indices_of_the_maxima() -> None:
    x = torch.tensor([[[1.0, 5.0, 2.0, 7.0]]])
    values, indices = nn.MaxPool1d(2, return_indices=True)(x)
    assert values.tolist() == [[[5, 7]]]
    assert indices.tolist() == [[[1, 3]]]
    _, indices = nn.MaxPool2d(2, return_indices=True)(x.view(1, 1, 2, 2))
    assert indices.tolist() == [[[[3]]]]
    _, indices = nn.AdaptiveMaxPool2d(1, return_indices=True)(x.view(1, 1, 2, 2))
    assert indices.tolist() == [[[[3]]]]


NARROW = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max and places": lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
    "mean": lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    "adaptive mean": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, (2, 3)),
    "mean of volumes": lambda x: F.avg_pool3d(x.reshape(x.size(0), -1, 3, 7, 6), 2, 2, 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("name", NARROW)
def test_many_narrow_planes_are_pooled_as_one_is(name, dtype) -> None:
    pool, random = NARROW[name], np.random.RandomState(0)
    if dtype == torch.int32 and "adaptive" in name:
        pytest.skip("adaptive pooling is for floats")
    x = torch.tensor(random.randn(100, 6, 7, 6) * 9).to(dtype)[:, ::2]  # with gaps
    if "volumes" in name:
        x = x.contiguous()
    floating = dtype.is_floating_point and "places" not in name
    x.requires_grad_(floating)
    result = pool(x)
    alone = torch.cat([pool(x[i : i + 1]) for i in range(len(x))])
    assert result.is_contiguous()
    assert torch.equal(result, alone)
    if floating:
        g = torch.tensor(random.randn(*result.shape)).to(dtype)
        together = torch.autograd.grad(result, x, g)[0]
        assert torch.equal(together, torch.autograd.grad(alone, x, g)[0])


@pytest.mark.parametrize("channels", [1, 5, 16, 17, 32, 47, 63, 64, 65, 100, 130])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_number_of_channels_is_pooled_as_planes_are(channels, dtype) -> None:
    x = torch.tensor(np.random.RandomState(0).randn(2, channels, 9, 11)).to(dtype)
    laid = x.contiguous(memory_format=torch.channels_last)
    for name in ("max", "max and places", "mean", "adaptive mean", "adaptive max"):
        assert torch.equal(NARROW[name](laid), NARROW[name](x)), name


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (
            nn.MaxPool2d(2),
            "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        ),
        (nn.AvgPool1d(2), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"),
        (nn.AvgPool2d(2, 1), "AvgPool2d(kernel_size=2, stride=1, padding=0)"),
        (nn.AdaptiveAvgPool2d((1, None)), "AdaptiveAvgPool2d(output_size=(1, None))"),
        (nn.AdaptiveMaxPool1d(3), "AdaptiveMaxPool1d(output_size=3)"),
    ],
)
def test_repr(layer, text) -> None:
    assert repr(layer) == text


@pytest.mark.parametrize("size", [0, (0, 3), (3, 0)])
def test_adaptive_windows_may_be_none(size):
    x = torch.ones(2, 3, 4, 4, requires_grad=True)
    for pool in (nn.AdaptiveAvgPool2d(size), nn.AdaptiveMaxPool2d(size)):
        result = pool(x)
        assert result.shape == (2, 3, *((size, size) if isinstance(size, int) else size))
        (gradient,) = torch.autograd.grad(result.sum(), x)
        assert gradient.shape == x.shape and not gradient.any()


def test_a_norm_of_zero_has_no_root() -> None:
    with pytest.raises(ValueError, match="lp_pool2d: norm_type must not be zero"):
        nn.functional.lp_pool2d(torch.ones(1, 4, 4), 0, 2)


def test_unpooling_to_nothing_is_empty() -> None:
    x = torch.ones(2, 1, 1, requires_grad=True)
    result = F.max_unpool1d(x, torch.zeros(2, 1, 1, dtype=torch.int64), 2, 2, 1)
    assert result.shape == (2, 1, 0)


@pytest.mark.parametrize("kernel_size", [(), (2, 2, 2)])
def test_unpooling_takes_as_many_numbers_as_dims(kernel_size: tuple[int, ...]) -> None:
    places = torch.zeros(1, 1, 1, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="expected a number or 2 numbers"):
        F.max_unpool2d(torch.ones(1, 1, 1), places, kernel_size)


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pooling_of_nothing(dims: int) -> None:
    pool = getattr(nn, f"FractionalMaxPool{dims}d")(2, output_size=2)
    assert pool(torch.ones(0, 3, *[4] * dims)).shape == (0, 3, *[2] * dims)
    for shape in ((2, 0, *[4] * dims), (2, 3, 0, *[4] * (dims - 1)), (3, 0, *[4] * (dims - 1))):
        with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
            pool(torch.ones(shape))


@pytest.mark.parametrize("output_size", [(0, 2), (1, 0), (0, 0), (0, 1, 2), (2, 2, 0)])
def test_fractional_pooling_to_nothing(output_size: tuple[int, ...]) -> None:
    dims = len(output_size)
    x = torch.ones(2, 3, *[4] * dims, requires_grad=True)
    pool = getattr(F, f"fractional_max_pool{dims}d")
    values, indices = pool(x, 2, output_size=output_size, return_indices=True)
    assert values.shape == indices.shape == (2, 3, *output_size)
    values.sum().backward()
    assert not x.grad.any()


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pooling_takes_the_first_of_more_samples(dims: int) -> None:
    x, samples = torch.randn(2, 3, *[5] * dims), torch.rand(4, 3, dims)
    pool = getattr(F, f"fractional_max_pool{dims}d")
    expected = pool(x, 2, output_size=2, _random_samples=samples[:2])
    assert torch.equal(pool(x, 2, output_size=2, _random_samples=samples), expected)
    assert torch.equal(pool(x[0], 2, output_size=2, _random_samples=samples), expected[0])
    with pytest.raises(RuntimeError, match="_random_samples must have shape"):
        pool(x, 2, output_size=2, _random_samples=samples[:1])


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "pool",
    [
        nn.MaxPool2d(3, 2, 1),
        nn.MaxPool2d(2),
        nn.AvgPool2d(3, 2, 1),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d((3, 7)),
        nn.AdaptiveMaxPool2d((4, 7)),
    ],
)
@pytest.mark.parametrize("size", [5, 28, 45])
def test_pooling_of_halves_is_that_of_floats_rounded(pool, dtype, channels_last, size) -> None:
    order = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(2, 70, size, size + 1).to(dtype, memory_format=order).requires_grad_()
    wide = x.detach().float().requires_grad_()
    y, expected = pool(x), pool(wide)
    assert torch.equal(y, expected.to(dtype))
    g = torch.randn_like(y)
    y.backward(g)
    expected.backward(g.float())
    assert x.grad is not None
    assert wide.grad is not None
    assert torch.equal(x.grad, wide.grad.to(dtype))
