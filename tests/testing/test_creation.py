"""make_tensor: range, dtype and layout of what it makes."""

import pytest

import rushlight as torch
from rushlight.testing import make_tensor


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (torch.bool, 0, 2),
        (torch.uint8, 0, 10),
        (torch.int8, -9, 10),
        (torch.int64, -9, 10),
        (torch.float16, -9, 9),
        (torch.bfloat16, -9, 9),
        (torch.float32, -9, 9),
        (torch.float64, -9, 9),
        (torch.float8_e4m3fn, -9, 9),
    ],
)
def test_values_fill_the_range_of_the_dtype(dtype, low, high) -> None:
    torch.manual_seed(0)
    x = make_tensor(50, 20, dtype=dtype)
    assert (x.shape, x.dtype) == ((50, 20), dtype)
    values = x.double()
    assert low <= values.min() < low + 0.05 * (high - low)
    assert high - 0.1 * (high - low) - 1 < values.max() <= high


def test_complex_parts_fill_the_range() -> None:
    x = make_tensor(100, dtype=torch.complex64, low=0, high=1)
    assert x.dtype == torch.complex64
    parts = x.view(torch.float32)
    assert 0 <= parts.min() < 0.2 < 0.8 < parts.max() <= 1
    assert not any(make_tensor(3, dtype=dtype)._is_view() for dtype in (x.dtype, torch.complex128))


def test_the_range_can_be_given() -> None:
    assert set(make_tensor(100, dtype=torch.int32, low=3, high=5).tolist()) == {3, 4}
    with pytest.raises(ValueError, match="low must be less than high"):
        make_tensor(1, dtype=torch.int32, low=3, high=3)


@pytest.mark.parametrize("dtype", [torch.int16, torch.float32, torch.complex128])
def test_elements_can_have_gaps_between_them(dtype) -> None:
    x = make_tensor(3, 4, dtype=dtype, noncontiguous=True)
    assert x.shape == (3, 4)
    assert not x.is_contiguous()
    assert make_tensor(1, dtype=dtype, noncontiguous=True).shape == (1,)


def test_zeros_can_be_excluded() -> None:
    x = make_tensor(200, dtype=torch.int32, low=0, high=2, exclude_zero=True)
    assert set(x.tolist()) == {1}


def test_shapes_come_as_sizes_or_as_one_sequence() -> None:
    assert make_tensor((2, 3), dtype=torch.float32).shape == (2, 3)
    assert make_tensor([2], dtype=torch.float32).shape == (2,)
    assert make_tensor(dtype=torch.float32).shape == ()
    assert make_tensor(0, 3, dtype=torch.float32).shape == (0, 3)


def test_gradients_and_memory_format() -> None:
    x = make_tensor(1, 2, 2, 2, dtype=torch.float32, memory_format=torch.channels_last)
    assert x.stride() == (8, 1, 4, 2)
    assert make_tensor(1, dtype=torch.float32, requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="needs a floating or complex dtype"):
        make_tensor(1, dtype=torch.int32, requires_grad=True)
    with pytest.raises(ValueError, match="exclude each other"):
        make_tensor(1, dtype=torch.int32, noncontiguous=True, memory_format=torch.contiguous_format)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.complex64])
def test_the_upper_end_is_not_reached_and_equal_ends_are_deprecated(dtype) -> None:
    x = make_tensor(10000, dtype=dtype, low=0, high=2)
    x = torch.view_as_real(x) if dtype.is_complex else x
    assert bool(((x >= 0) & (x < 2)).all())
    with pytest.warns(FutureWarning, match="low equals high"):
        same = make_tensor(3, dtype=dtype, low=2, high=2)
    assert torch.equal(same, torch.full_like(same, complex(2, 2) if dtype.is_complex else 2))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.float16, torch.complex64])
def test_ends_are_moved_into_the_range_of_the_dtype(dtype) -> None:
    for low, high in (10**40, 10**41), (-(10**41), -(10**40)):
        with pytest.raises(ValueError, match="whose range is"):
            make_tensor(3, dtype=dtype, low=low, high=high)
    x = make_tensor(100, dtype=dtype, low=-(10**40), high=10**40)
    assert x.dtype is dtype and (dtype.is_complex or bool(torch.isfinite(x).all()))
