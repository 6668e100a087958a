"""Depthwise convolutions against dense ones, whose weights are zero but for one channel each."""

import itertools

import pytest

import rushlight as torch
from rushlight.nn import functional as F

SIZES = {1: [(1,), (9,), (37,)], 2: [(1, 5), (7, 7), (10, 33)], 3: [(2, 1, 3), (4, 5, 18)]}
WINDOWS = [  # kernel, stride, padding, dilation
    (1, 1, 0, 1),
    (3, 1, 1, 1),
    (3, 2, 1, 1),
    (3, 2, 3, 2),
    (2, 3, 2, 1),
    (5, 1, 4, 1),
    (4, 3, 5, 3),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_depthwise_convolution_and_gradients(
    dims: int, multiplier: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[dims]
    for size, (kernel, stride, padding, dilation) in itertools.product(SIZES[dims], WINDOWS):
        if min(size) + 2 * padding < dilation * (kernel - 1) + 1:
            continue
        channels = 3
        x = torch.randn(2, channels, *size, dtype=dtype, requires_grad=True)
        weight = torch.randn(channels * multiplier, 1, *[kernel] * dims, dtype=dtype)
        bias = torch.randn(channels * multiplier, dtype=dtype, requires_grad=True)
        weight.requires_grad_()
        owner = torch.arange(channels * multiplier) // multiplier == torch.arange(channels)[:, None]
        dense = weight * owner.T.reshape(-1, channels, *[1] * dims).to(dtype)
        window = {"stride": stride, "padding": padding, "dilation": dilation}
        result = function(x, weight, bias, groups=channels, **window)
        expected = function(x.double(), dense.double(), bias.double(), **window)
        torch.testing.assert_close(result, expected.to(dtype), rtol=1e-5, atol=1e-5)
        g = torch.randn(*result.shape, dtype=dtype)
        found = torch.autograd.grad(result, (x, weight, bias), g)
        wanted = torch.autograd.grad(expected, (x, weight, bias), g.double())
        for mine, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_depthwise_digits_do_not_depend_on_threads() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 32, 40, 41, requires_grad=True)
    weight = torch.randn(32, 1, 5, 5, requires_grad=True)
    g = torch.randn(4, 32, 40, 41)
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        y = F.conv2d(x, weight, padding=2, groups=32)
        results.append((y.detach(), *torch.autograd.grad(y, (x, weight), g)))
    torch.set_num_threads(before)
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            assert torch.equal(mine, theirs)
