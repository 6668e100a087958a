"""Resizing, sampling, padding and folding: options, layouts, dtypes, limits and refusals."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.nn import functional as F


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(np.random.RandomState(0).randn(*shape), dtype=dtype)


# Resizing


@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_interpolate_keeps_channels_last(mode, channels) -> None:
    x = numbers(2, channels, 6, 5)
    result = F.interpolate(x.contiguous(memory_format=torch.channels_last), (9, 4), mode=mode)
    assert result.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(result, F.interpolate(x, (9, 4), mode=mode), atol=1e-6)


def test_interpolate_of_channels_last_volumes_keeps_the_layout() -> None:
    x = numbers(2, 3, 4, 5, 6)
    laid = x.contiguous(memory_format=torch.channels_last_3d)
    result = F.interpolate(laid, scale_factor=1.5, mode="trilinear")
    assert result.is_contiguous(memory_format=torch.channels_last_3d)
    expected = F.interpolate(x, scale_factor=1.5, mode="trilinear")
    assert torch.allclose(result, expected, atol=1e-6)


def test_interpolate_rounds_bytes_and_keeps_them_in_range() -> None:
    x = torch.tensor([[[[0, 255, 0, 255]]]], dtype=torch.uint8)
    result = F.interpolate(x, (1, 9), mode="bicubic")
    exact = F.interpolate(x.double(), (1, 9), mode="bicubic")
    assert result.dtype is torch.uint8
    assert result.tolist() == exact.round().clamp(0, 255).to(torch.uint8).tolist()
    halves = F.interpolate(
        torch.tensor([[[[0, 2, 4]]]], dtype=torch.uint8), (1, 6), mode="bilinear"
    )
    assert halves.tolist() == [[[[0, 1, 2, 3, 4, 4]]]]  # 0.5, 1.5, 2.5 and 3.5 go up
    assert F.interpolate(x, (1, 2)).tolist() == [[[[0, 0]]]]


@pytest.mark.parametrize("channels", [1, 3, 5, 16, 17, 70])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolate_of_bytes_does_not_depend_on_layout_or_threads(mode, channels) -> None:
    x = torch.tensor(
        np.random.RandomState(0).randint(0, 256, (3, channels, 67, 45)), dtype=torch.uint8
    )
    laid = x.contiguous(memory_format=torch.channels_last)
    before = torch.get_num_threads()
    try:
        for size in ((31, 20), (67, 90), (140, 45), (1, 1)):
            expected = torch.cat(
                [
                    F.interpolate(x[:, c : c + 1], size, mode=mode, antialias=True)
                    for c in range(channels)
                ],
                1,
            )
            for threads in (1, 3):
                torch.set_num_threads(threads)
                for images in (x, laid):
                    result = F.interpolate(images, size, mode=mode, antialias=True)
                    assert torch.equal(result, expected), (size, threads)
    finally:
        torch.set_num_threads(before)


def test_interpolate_of_bytes_of_the_same_size_copies_them() -> None:
    x = torch.arange(24, dtype=torch.uint8).reshape(1, 2, 3, 4)
    for mode in ("bilinear", "bicubic"):
        for corners in (False, True):
            result = F.interpolate(x, (3, 4), mode=mode, align_corners=corners)
            assert torch.equal(result, x)
            assert result.data_ptr() != x.data_ptr()


# Changes of images with halves that are summed as floats: sizes and layouts of all loops.
RESAMPLINGS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nearest": lambda x: F.interpolate(x, (9, 75)),
    "bilinear": lambda x: F.interpolate(x, (9, 75), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, (13, 21), mode="bicubic"),
    "bicubic antialias": lambda x: F.interpolate(x, (2, 7), mode="bicubic", antialias=True),
    "area": lambda x: F.interpolate(x, (4, 16), mode="area"),
    "rows": lambda x: F.interpolate(x, (9, 37), mode="bilinear"),
    "columns": lambda x: F.interpolate(x, (6, 50), mode="bilinear"),
    "volumes": lambda x: F.interpolate(x[None], (5, 9, 50), mode="trilinear")[0],
    "depth": lambda x: F.interpolate(x[None], (5, 6, 37), mode="trilinear")[0],
    "planes": lambda x: F.interpolate(x[None], (2 * len(x[0]), 6, 74))[0],
    "reflect": lambda x: F.pad(x, (1, 2, 3, 0), mode="reflect"),
    "replicate": lambda x: F.pad(x, (0, 0, 1, 1), mode="replicate"),
    "circular": lambda x: F.pad(x, (2, -1), mode="circular"),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("channels", [1, 3, 40, 67])
@pytest.mark.parametrize("name", RESAMPLINGS)
def test_resampling_of_half_types_rounds_once(name: str, channels: int, dtype) -> None:
    run = RESAMPLINGS[name]
    rows = numbers(2, channels, 6, 37).to(dtype)
    for x in (rows, rows.contiguous(memory_format=torch.channels_last)):
        half, single = x.detach().requires_grad_(), x.float().requires_grad_()
        result, expected = run(half), run(single)
        assert torch.equal(result, expected.to(dtype))
        g = numbers(*result.shape).to(dtype)
        result.backward(g)
        expected.backward(g.float())
        assert torch.equal(half.grad, single.grad.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_resampled_halves_may_be_infinite_or_nan(dtype) -> None:
    inf, largest = float("inf"), torch.finfo(dtype).max
    x = torch.tensor([[[[1.0, 3.0, largest], [float("nan"), -inf, largest]]]], dtype=dtype)
    for images in (x, x.expand(1, 40, 2, 3).contiguous(memory_format=torch.channels_last)):
        for mode in ("bilinear", "bicubic"):
            result = F.interpolate(images, (5, 30), mode=mode)
            expected = F.interpolate(images.float(), (5, 30), mode=mode).to(dtype)
            assert torch.allclose(result, expected, 0, 0, equal_nan=True)


def test_interpolate_takes_the_same_pixels_whatever_the_number_of_threads() -> None:
    x = numbers(3, 5, 37, 61)
    results = []
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(F.interpolate(x, (75, 50), mode="bicubic"))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize("size", [1, 23, 35, 69, 105, 200])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "area"])
def test_gradient_of_long_rows_is_the_transpose(mode: str, size: int) -> None:
    for dtype in (torch.float32, torch.float64):
        weights = F.interpolate(torch.eye(70, dtype=dtype)[None], size, mode=mode)[0]
        x, g = numbers(1, 3, 70, dtype=dtype).requires_grad_(), numbers(1, 3, size, dtype=dtype)
        F.interpolate(x, size, mode=mode).backward(g)
        assert torch.allclose(x.grad[0], g[0] @ weights.T, atol=1e-5)


def test_infinite_gradients_stay_with_their_pixels() -> None:
    x = numbers(1, 1, 64, 64).requires_grad_()
    g = torch.ones(1, 1, 32, 32)
    g[0, 0, 5, 7] = torch.inf
    F.interpolate(x, (32, 32)).backward(g)
    expected = torch.zeros(64, 64)
    expected[::2, ::2] = g[0, 0]
    assert torch.equal(x.grad[0, 0], expected)


def test_interpolate_does_not_mix_infinite_pixels_into_others() -> None:
    x = torch.tensor([[[1.0, float("inf"), 2.0]]])
    assert F.interpolate(x, 3, mode="linear").tolist() == x.tolist()
    inf = float("inf")
    assert F.interpolate(x, scale_factor=2).flatten().tolist() == [1, 1, inf, inf, 2, 2]


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({}, ValueError, "either size or scale_factor"),
        ({"size": 4, "scale_factor": 2}, ValueError, "only one of size or scale_factor"),
        ({"size": 4, "align_corners": True}, ValueError, "align_corners option can only be set"),
        ({"size": (4, 4, 4)}, ValueError, "same number of spatial dimensions"),
        ({"scale_factor": (2, 2, 2)}, ValueError, "same number of spatial dimensions"),
        ({"size": 4, "recompute_scale_factor": True}, ValueError, "not meaningful"),
        ({"size": 4, "mode": "linear"}, NotImplementedError, "Got 4D input, but linear mode"),
        ({"size": 4, "mode": "trilinear"}, NotImplementedError, "needs 5D input"),
        ({"size": 4, "mode": "lanczos"}, NotImplementedError, r"\(got lanczos\)"),
        ({"size": 4, "antialias": True}, ValueError, "Anti-alias option is restricted"),
        ({"size": 0}, RuntimeError, "greater than 0"),
        ({"size": -3}, RuntimeError, "negative|greater than 0"),
        ({"size": 2**40}, RuntimeError, "2"),
        ({"scale_factor": 1e300}, RuntimeError, "below 2"),
        ({"scale_factor": float("nan")}, RuntimeError, "below 2"),
        ({"scale_factor": -1.0}, RuntimeError, "greater than 0|negative"),
        ({"scale_factor": -1e20}, RuntimeError, "below 2"),
    ],
)
def test_interpolate_refuses(keywords, error, text) -> None:
    with pytest.raises(error, match=text):
        F.interpolate(numbers(1, 2, 3, 5), **keywords)


def test_interpolate_refuses_inputs_without_pixels() -> None:
    with pytest.raises(RuntimeError, match="Only the batch may be empty"):
        F.interpolate(torch.ones(1, 2, 0, 5), 4)
    assert F.interpolate(torch.ones(0, 2, 3, 5), 4).shape == (0, 2, 4, 4)
    with pytest.raises(NotImplementedError, match="Only 3D, 4D and 5D"):
        F.interpolate(torch.ones(4, 5), 4)


def test_interpolate_survives_extreme_scales() -> None:
    x = numbers(1, 1, 3, 3)
    run = F._interpolate
    for mode, scale in itertools.product(
        ("nearest", "nearest-exact", "linear", "cubic"), (1e-300, 1e300, float("nan"), -1.0)
    ):
        assert run(x, [4, 4], mode, False, False, None, scale, scale).isfinite().all()
    for mode, scale in itertools.product(("linear", "cubic"), (1e-300, 1e300, float("nan"))):
        assert run(x, [4, 4], mode, False, True, None, scale, scale).isfinite().all()


def test_upsample_functions_are_deprecated_names_of_interpolate() -> None:
    x = numbers(1, 2, 3, 5)
    with pytest.warns(UserWarning, match="deprecated"):
        nearest = F.upsample_nearest(x, 6)
    with pytest.warns(UserWarning, match="deprecated"):
        linear = F.upsample_bilinear(x, 6)
    with pytest.warns(UserWarning, match="deprecated"):
        cubic = F.upsample(x, scale_factor=2, mode="bicubic")
    assert torch.equal(nearest, F.interpolate(x, 6))
    assert torch.equal(linear, F.interpolate(x, 6, mode="bilinear", align_corners=True))
    assert torch.equal(cubic, F.interpolate(x, scale_factor=2, mode="bicubic"))


# Grids


def test_grid_sample_of_the_identity_gives_the_image() -> None:
    x = numbers(2, 3, 20, 33)
    theta = torch.eye(2, 3).expand(2, 2, 3)
    for aligned in (False, True):
        grid = F.affine_grid(theta, x.shape, align_corners=aligned)
        for mode in ("bilinear", "nearest", "bicubic"):
            result = F.grid_sample(x, grid, mode, align_corners=aligned)
            assert torch.allclose(result, x, atol=1e-3)


def test_affine_grid_rounds_twice() -> None:
    theta = torch.eye(2, 3).unsqueeze(0)
    for size in (7, 28, 224):
        grid = F.affine_grid(theta, (1, 1, 1, size), align_corners=False)[0, 0, :, 0]
        steps = torch.linspace(-1, 1, size).numpy()
        assert grid.tolist() == (steps * np.float32(size - 1) / np.float32(size)).tolist()


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_of_floats_equals_that_of_doubles(mode, padding) -> None:
    for aligned in (False, True):
        results = []
        for dtype in (torch.float64, torch.float32):
            x = numbers(2, 3, 9, 14, dtype=dtype).requires_grad_()
            grid = (numbers(2, 11, 37, 2) * 0.7).to(dtype).requires_grad_()
            out = F.grid_sample(x, grid, mode, padding, aligned)
            (out * numbers(2, 3, 11, 37, dtype=dtype)).sum().backward()
            results.append([t.double() for t in (out, x.grad, grid.grad)])
        for double, single in zip(*results, strict=True):
            assert torch.allclose(double, single, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_survives_any_place(padding) -> None:
    far = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 1e9, -3.0, 0.5]
    grid = torch.tensor(list(itertools.product(far, far))).reshape(1, 8, 8, 2)
    x = numbers(1, 2, 4, 5)
    for mode, aligned in itertools.product(("bilinear", "nearest", "bicubic"), (False, True)):
        assert F.grid_sample(x, grid, mode, padding, aligned).isfinite().all()


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_has_second_gradients(mode) -> None:
    x = numbers(1, 2, 4, 5, dtype=torch.float64).requires_grad_()
    grid = (numbers(1, 2, 3, 2, dtype=torch.float64) * 0.3 + 0.011).requires_grad_()

    def sample(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return F.grid_sample(x, grid, mode, "reflection", align_corners=False)

    assert gradcheck(sample, (x, grid))
    assert gradgradcheck(sample, (x, grid))


def test_affine_grid_warns_that_one_aligned_place_is_the_center() -> None:
    theta = torch.eye(2, 3).unsqueeze(0)
    with pytest.warns(UserWarning, match="See the documentation of affine_grid") as caught:
        grid = F.affine_grid(theta, (1, 1, 2, 1), align_corners=True)
    assert caught[0].filename == __file__
    assert grid[..., 0].tolist() == [[[0.0], [0.0]]]
    F.affine_grid(theta, (1, 1, 2, 1), align_corners=False)


def test_grid_sample_and_affine_grid_warn_of_the_default() -> None:
    x, grid = numbers(1, 2, 4, 5), torch.zeros(1, 2, 2, 2)
    with pytest.warns(UserWarning, match="align_corners=False"):
        F.grid_sample(x, grid)
    with pytest.warns(UserWarning, match="align_corners=False"):
        F.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2))


@pytest.mark.parametrize(
    ("x", "grid", "keywords", "error", "text"),
    [
        ((1, 2, 4, 5), (1, 3, 3, 2), {"mode": "cubic"}, ValueError, "expected mode to be"),
        ((1, 2, 4, 5), (1, 3, 3, 2), {"padding_mode": "wrap"}, ValueError, "padding_mode to be"),
        ((2, 2, 4, 5), (1, 3, 3, 2), {}, RuntimeError, "same batch size"),
        ((1, 2, 4, 5), (1, 3, 3, 3), {}, RuntimeError, "size 2 in last dimension"),
        ((1, 2, 4, 5), (1, 3, 3), {}, RuntimeError, "4D input and grid"),
        ((1, 2, 0, 5), (1, 3, 3, 2), {}, RuntimeError, "non-empty spatial dimensions"),
        ((2, 4, 5), (1, 3, 3, 2), {}, RuntimeError, "4D or 5D input"),
        ((1, 2, 3, 4, 5), (1, 2, 3, 3, 3), {"mode": "bicubic"}, RuntimeError, "only supports 4D"),
    ],
)
def test_grid_sample_refuses(x, grid, keywords, error, text) -> None:
    with pytest.raises(error, match=text):
        F.grid_sample(torch.ones(x), torch.zeros(grid), align_corners=False, **keywords)


def test_grid_sample_refuses_a_grid_of_another_dtype() -> None:
    with pytest.raises(RuntimeError, match="same dtype"):
        F.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2).double(), align_corners=True)


@pytest.mark.parametrize(
    ("theta", "size", "error"),
    [
        (torch.ones(1, 2, 3), (1, 1, 2), NotImplementedError),
        (torch.ones(1, 3, 4), (1, 1, 2, 2), ValueError),
        (torch.ones(1, 2, 3), (1, 1, 0, 2), ValueError),
        (torch.ones(1, 2, 3, dtype=torch.int64), (1, 1, 2, 2), ValueError),
        (torch.ones(2, 2, 3), (1, 1, 2, 2), RuntimeError),
    ],
)
def test_affine_grid_refuses(theta, size, error) -> None:
    with pytest.raises(error):
        F.affine_grid(theta, size, align_corners=False)


# Padding


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int16", "uint16", "int64", "float16", "float32", "complex64", "complex128"],
)
def test_pad_moves_elements_of_any_dtype_unchanged(mode, dtype) -> None:
    x = np.arange(2 * 3 * 4 * 50).reshape(2, 3, 4, 50).astype(dtype)
    names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    expected = np.pad(x, [(0, 0), (0, 0), (2, 1), (3, 2)], mode=names[mode])
    result = F.pad(torch.from_numpy(x), (3, 2, 2, 1), mode)
    assert result.dtype == torch.from_numpy(x).dtype
    np.testing.assert_array_equal(result.numpy(), expected)


def test_pad_keeps_the_bits_of_nan() -> None:
    x = torch.tensor([[0x7FA00001, 1, 2]], dtype=torch.int32).view(torch.float32)
    padded = F.pad(x, (1, 1), "replicate").view(torch.int32)
    assert padded.tolist() == [[0x7FA00001, 0x7FA00001, 1, 2, 2]]
    short = torch.tensor([[0x7FA1, 1, 2]], dtype=torch.int16).view(torch.bfloat16)
    padded = F.pad(short, (1, 1), "replicate").view(torch.int16)
    assert padded.tolist() == [[0x7FA1, 0x7FA1, 1, 2, 2]]


def test_pad_keeps_channels_last() -> None:
    x = numbers(2, 3, 4, 5)
    result = F.pad(x.contiguous(memory_format=torch.channels_last), (1, 2, 0, 1), "reflect")
    assert result.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(result, F.pad(x, (1, 2, 0, 1), "reflect"))


@pytest.mark.parametrize(("dims", "amounts"), [(2, (1, 2, 0, 1)), (2, (0, -1)), (3, (1, 0, -1, 2))])
def test_constant_pad_keeps_channels_last(dims, amounts) -> None:
    memory_format = torch.channels_last if dims == 2 else torch.channels_last_3d
    x = numbers(*(2, 3, 4, 5, 6)[: dims + 2])
    laid = x.contiguous(memory_format=memory_format).requires_grad_()
    result = F.pad(laid, amounts, value=2.0)
    assert result.is_contiguous(memory_format=memory_format)
    assert torch.equal(result, F.pad(x, amounts, value=2.0))
    result.square().sum().backward()
    assert laid.grad.is_contiguous(memory_format=memory_format)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_pad_has_complex_gradients(mode) -> None:
    x = torch.complex(numbers(2, 3, 4), numbers(2, 3, 4) * 2).to(torch.complex128)
    assert gradcheck(lambda x: F.pad(x, (2, 1), mode), (x.requires_grad_(),))
    assert gradgradcheck(lambda x: F.pad(x, (2, 1), mode), (x,))


@pytest.mark.parametrize(
    ("pad", "mode", "error", "text"),
    [
        ((1, 2, 3), "constant", RuntimeError, "divisible by 2"),
        ((1,) * 8, "constant", RuntimeError, "two times the input dimension"),
        ((-3, -3), "constant", RuntimeError, "negative"),
        ((2**62, 2**62), "constant", RuntimeError, "too many"),
        ((5, 0), "reflect", RuntimeError, "at most 4"),
        ((6, 0), "circular", RuntimeError, "at most 5"),
        ((1, 1), "mirror", NotImplementedError, "Unrecognized padding mode mirror"),
    ],
)
def test_pad_refuses(pad, mode, error, text) -> None:
    with pytest.raises(error, match=text):
        F.pad(numbers(2, 3, 5), pad, mode)


def test_no_padding_around_no_elements() -> None:
    x = torch.zeros(2, 3, 0, requires_grad=True)
    padded = F.pad(x, (0, 0), "circular")
    padded.sum().backward()
    assert x.grad is not None
    assert padded.shape == x.shape == x.grad.shape


def test_circular_pads_check_their_input() -> None:
    with pytest.raises(ValueError, match="expected 3D or 4D input"):
        torch.nn.CircularPad2d(1)(torch.ones(4, 5))


# Columns


@pytest.mark.parametrize("dtype", [torch.float16, torch.complex64, torch.float64])
def test_fold_adds_up_what_unfold_lays_out(dtype) -> None:
    x = numbers(2, 3, 5, 6).to(dtype)
    ones = torch.ones(1, 1, 5, 6, dtype=dtype)
    again = F.fold(F.unfold(x, 3, padding=1), (5, 6), 3, padding=1)
    count = F.fold(F.unfold(ones, 3, padding=1), (5, 6), 3, padding=1)
    assert torch.allclose(again, x * count, rtol=1e-2 if dtype is torch.float16 else 1e-5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.unfold(torch.ones(4, 5), 2), "3D or 4D"),
        (lambda: F.unfold(torch.ones(1, 0, 4, 5), 2), "non-zero dimensions"),
        (lambda: F.unfold(torch.ones(1, 1, 4, 5), 6), "at least one sliding block"),
        (lambda: F.unfold(torch.ones(1, 1, 4, 5), 0), "at least 1"),
        (lambda: F.unfold(torch.ones(1, 1, 4, 5), 2, stride=0), "at least 1"),
        (lambda: F.unfold(torch.ones(1, 1, 4, 5), 2, padding=-1), "at least 0"),
        (lambda: F.unfold(torch.ones(1, 1, 4, 5), 2**31 - 1, 2**31 - 1), "too large"),
        (lambda: F.fold(torch.ones(1, 5, 12), (4, 5), 2), "divisible by the product"),
        (lambda: F.fold(torch.ones(1, 4, 11), (4, 5), 2), "sliding blocks 3 . 4 = 12"),
        (lambda: F.fold(torch.ones(4), (4, 5), 2), "2D or 3D"),
    ],
)
def test_unfold_and_fold_refuse(call, text) -> None:
    with pytest.raises(RuntimeError, match=text):
        call()


# Channels


def test_cross_map_norm_divides_by_the_squares_of_the_channels_around() -> None:
    x = numbers(2, 6, 3, 2)
    result = torch.nn.CrossMapLRN2d(3, alpha=0.5, beta=0.6, k=2)(x)
    squares = np.pad(x.numpy() ** 2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    sums = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    np.testing.assert_allclose(result.numpy(), x.numpy() / (2 + 0.5 / 3 * sums) ** 0.6, rtol=1e-5)


def test_local_response_norm_needs_three_dims() -> None:
    with pytest.raises(ValueError, match="3D or higher"):
        F.local_response_norm(torch.ones(2, 3), 2)
    with pytest.raises(ValueError, match="4D"):
        torch.nn.CrossMapLRN2d(3)(torch.ones(2, 3, 4))
