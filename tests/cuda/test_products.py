"""Products, convolutions and pooling on CUDA where the op matrix does not reach: several tiles and
pieces of a sum, every dtype, odd sizes, layouts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import rushlight as rl
from rushlight.nn import functional as F

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    generator = np.random.default_rng([seed, *shape])
    values = generator.integers(-3, 4, shape)
    if dtype.startswith("uint"):
        values = abs(values)
    if "int" not in dtype:
        values = values + generator.uniform(-0.5, 0.5, shape)
    if dtype.startswith("complex"):
        values = values + 1j * generator.uniform(-1, 1, shape)
    return rl.tensor(values).to(getattr(rl, dtype))


def assert_close(on_cuda: Any, on_cpu: Any, terms: int = 1) -> None:
    assert on_cuda.device.type == "cuda" and on_cuda.dtype is on_cpu.dtype
    assert on_cuda.stride() == on_cpu.stride()
    dtype = str(on_cpu.dtype).removeprefix("torch.")
    wide = rl.complex128 if dtype.startswith("complex") else rl.float64
    tolerance = TOLERANCE.get(dtype, 1e-12)
    np.testing.assert_allclose(
        on_cuda.cpu().to(wide).numpy(),
        on_cpu.to(wide).numpy(),
        rtol=tolerance,
        atol=tolerance * 10 * terms**0.5,
    )


def assert_product(a: Any, b: Any) -> None:
    assert_close(rl.matmul(a.cuda(), b.cuda()), rl.matmul(a, b), a.shape[-1] + 1)


# Matrix products


FLOATING = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_scaled_products_are_added_and_rounded_once(dtype: str) -> None:
    for m, k, n in [(5, 7, 3), (40, 33, 70), (1, 300, 1), (3, 0, 2)]:
        added, left, right = (
            numbers(2, *shape, dtype=dtype, seed=1) for shape in [(m, n), (m, k), (k, n)]
        )
        for beta, alpha in [(1, 1), (0, 2), (-0.7, 1.3)]:
            on_cuda = rl.baddbmm(added.cuda(), left.cuda(), right.cuda(), beta=beta, alpha=alpha)
            assert_close(on_cuda, rl.baddbmm(added, left, right, beta=beta, alpha=alpha), k)
            exact = beta * added.double() + alpha * (left.double() @ right.double())
            error = (on_cuda.cpu().double() - exact).abs()
            assert (error <= exact.abs() * rl.finfo(on_cuda.dtype).eps / 2 + 1e-4).all()


@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGERS])
def test_every_dtype_multiplies(dtype: str) -> None:
    assert_product(numbers(3, 4, dtype=dtype), numbers(4, 5, dtype=dtype))
    assert_product(numbers(2, 37, 19, dtype=dtype).mT, numbers(2, 37, 40, dtype=dtype))
    assert_product(numbers(700, dtype=dtype), numbers(700, dtype=dtype))


@pytest.mark.parametrize("turned", list(product([False, True], repeat=2)))
@pytest.mark.parametrize(
    "size",
    [
        pytest.param((130, 140, 37), id="large tiles"),
        pytest.param((1, 40, 300), id="a row"),
        pytest.param((40, 1, 300), id="a column"),
        pytest.param((3, 5, 20000), id="pieces of small tiles"),
        pytest.param((2, 3, 0), id="nothing"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_layout_multiplies(
    size: tuple[int, int, int], turned: tuple[bool, bool], dtype: str
) -> None:
    m, n, k = size
    a = numbers(k, m, dtype=dtype).T if turned[0] else numbers(m, k, dtype=dtype)
    b = numbers(n, k, dtype=dtype).T if turned[1] else numbers(k, n, dtype=dtype)
    assert_product(a, b)


def test_long_vectors_are_summed_in_pieces() -> None:
    assert_product(numbers(100001), numbers(100001, seed=1))
    assert_product(numbers(2, 70001), numbers(70001))


def test_batches_broadcast_and_lie_anyhow() -> None:
    assert_product(numbers(3, 1, 4, 5), numbers(2, 5, 6))
    assert_product(numbers(4, 5).expand(3, 4, 5), numbers(3, 5, 6))
    assert_product(numbers(8, 10)[::2, ::2], numbers(5, 12)[:, ::3])
    assert_product(numbers(5, 4, 3).permute(1, 0, 2), numbers(3, 2))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_linear_adds_its_bias_and_has_gradients(dtype: str) -> None:
    def run(device: str) -> list[Any]:
        x, w = (numbers(*s, dtype=dtype).to(device) for s in ((3, 33), (70, 33)))
        x.requires_grad_()
        w.requires_grad_()
        y = F.linear(x, w, numbers(70, dtype=dtype).to(device))
        return [y.detach(), *rl.autograd.grad(y, (x, w), numbers(3, 70, dtype=dtype).to(device))]

    for mine, reference in zip(run("cuda"), run("cpu"), strict=True):
        assert_close(mine, reference, 70)


def test_operands_of_two_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="same device, but found .* cuda:0 and cpu"):
        rl.matmul(numbers(2, 2).cuda(), numbers(2, 2))
    with pytest.raises(RuntimeError, match="same device, but found .* cuda:0 and cpu"):
        F.conv1d(numbers(1, 1, 3).cuda(), numbers(1, 1, 1))


# Convolutions by our own kernels; those of cuDNN are in test_cudnn.py


def convolved(device: str, function: Any, x: Any, w: Any, bias: Any, **options: Any) -> list[Any]:
    """The result and the gradients of all operands; those of bias by a convolution, too."""
    points = [t.to(device).requires_grad_() for t in (x, w, bias)]
    with rl.backends.cudnn.flags(enabled=False):
        y = function(*points, **options)
        g = numbers(*y.shape, dtype=str(x.dtype).removeprefix("torch."), seed=7).to(device)
        return [y.detach(), *rl.autograd.grad(y, points, g)]


CONVOLUTIONS = [
    pytest.param((2, 3, 9, 10), (5, 3, 3, 2), {"stride": (2, 1), "padding": (1, 2)}, id="strides"),
    pytest.param(
        (2, 16, 7, 8), (24, 8, 3, 3), {"groups": 2, "dilation": 2, "padding": 2}, id="groups"
    ),
    pytest.param((2, 6, 9, 9), (6, 1, 3, 3), {"groups": 6, "padding": 1}, id="depthwise"),
    pytest.param((3, 70, 8, 9), (66, 70, 1, 1), {}, id="pointwise"),
    pytest.param((2, 40, 14, 14), (130, 40, 2, 2), {"padding": 1}, id="large tiles"),
    pytest.param((2, 4, 31), (6, 2, 4), {"groups": 2, "stride": 3, "dilation": 2}, id="1d"),
    pytest.param((1, 3, 5, 6, 7), (7, 3, 2, 3, 2), {"stride": (1, 2, 1), "padding": 1}, id="3d"),
    pytest.param((2, 2, 5, 6), (5, 2, 2, 2), {"stride": 4, "padding": 1}, id="gaps"),
]


@pytest.mark.parametrize(("size", "filters", "options"), CONVOLUTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_convolutions(
    size: tuple[int, ...],
    filters: tuple[int, ...],
    options: dict[str, Any],
    dtype: str,
    channels_last: bool,
) -> None:
    function = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(size)]
    x, w, bias = (numbers(*s, dtype=dtype) for s in (size, filters, filters[:1]))
    if channels_last:
        if len(size) == 3:
            pytest.skip("sequences have no channels_last")
        form = rl.channels_last if len(size) == 4 else rl.channels_last_3d
        x, w = x.to(memory_format=form), w.to(memory_format=form)
    mine = convolved("cuda", function, x, w, bias, **options)
    reference = convolved("cpu", function, x, w, bias, **options)
    terms = int(np.prod(filters[1:])) + mine[0].numel()
    for on_cuda, on_cpu in zip(mine, reference, strict=True):
        assert_close(on_cuda, on_cpu, terms)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_convolutions_of_other_dtypes(dtype: str) -> None:
    operands = [numbers(*s, dtype=dtype) for s in ((2, 4, 6, 7), (5, 4, 3, 3), (5,))]
    mine = convolved("cuda", F.conv2d, *operands, padding=1)
    reference = convolved("cpu", F.conv2d, *operands, padding=1)
    for on_cuda, on_cpu in zip(mine, reference, strict=True):
        assert_close(on_cuda, on_cpu, 100)


def test_the_gradient_of_a_weight_is_summed_in_pieces() -> None:
    for groups in (1, 5):  # by tiles and by single sums
        operands = numbers(2, 5, 150, 130), numbers(5, 5 // groups, 3, 3), numbers(5)
        mine = convolved("cuda", F.conv2d, *operands, groups=groups)[2:]
        reference = convolved("cpu", F.conv2d, *operands, groups=groups)[2:]
        for on_cuda, on_cpu in zip(mine, reference, strict=True):
            assert_close(on_cuda, on_cpu, 40000)


def test_transposed_convolution() -> None:
    x, w = numbers(2, 6, 5, 4), numbers(6, 3, 3, 2)
    options: dict[str, Any] = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}
    on_cuda = F.conv_transpose2d(x.cuda(), w.cuda(), numbers(6).cuda(), **options)
    assert_close(on_cuda, F.conv_transpose2d(x, w, numbers(6), **options), 10)


def test_a_convolution_of_no_images() -> None:
    x, w = numbers(0, 3, 5, 5).cuda().requires_grad_(), numbers(4, 3, 2, 2).cuda().requires_grad_()
    y = F.conv2d(x, w)
    assert y.shape == (0, 4, 4, 4)
    of_x, of_w = rl.autograd.grad(y, (x, w), rl.empty_like(y))
    assert of_x.shape == x.shape and not of_w.cpu().numpy().any()


# Pooling

POOLINGS = [
    pytest.param(lambda x: F.max_pool2d(x, 3, 2, 1), id="max"),
    pytest.param(lambda x: F.max_pool2d(x, 2, 1, 1, 3), id="max with gaps"),
    pytest.param(lambda x: F.max_pool2d(x, (3, 2), ceil_mode=True), id="max with a rest"),
    pytest.param(lambda x: F.avg_pool2d(x, 3, 2, 1), id="avg"),
    pytest.param(lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), id="avg of what is there"),
    pytest.param(lambda x: F.avg_pool2d(x, 2, 3, divisor_override=5), id="avg by 5"),
    pytest.param(lambda x: F.adaptive_avg_pool2d(x, (3, 4)), id="adaptive avg"),
    pytest.param(lambda x: F.adaptive_max_pool2d(x, (4, 3)), id="adaptive max"),
]


@pytest.mark.parametrize("pool", POOLINGS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_pooling(pool: Any, dtype: str, channels_last: bool) -> None:
    form = rl.channels_last if channels_last else rl.contiguous_format
    x = numbers(2, 5, 11, 13, dtype=dtype).to(memory_format=form)

    def run(device: str) -> tuple[Any, Any]:
        point = x.to(device).requires_grad_()
        y = pool(point)
        g = numbers(*y.shape, dtype=dtype, seed=3).to(memory_format=form).to(device)
        return y.detach(), rl.autograd.grad(y, point, g)[0]

    for mine, reference in zip(run("cuda"), run("cpu"), strict=True):
        assert_close(mine, reference)


def test_the_largest_element_may_be_nan() -> None:
    x = numbers(1, 1, 4, 4)
    x[0, 0, 1, 1] = float("nan")
    values, indices = F.max_pool2d(x.cuda(), 2, return_indices=True)
    expected, places = F.max_pool2d(x, 2, return_indices=True)
    np.testing.assert_array_equal(values.cpu().numpy(), expected.numpy())
    np.testing.assert_array_equal(indices.cpu().numpy(), places.numpy())
