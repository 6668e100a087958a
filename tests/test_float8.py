"""The two 8-bit floats: stored, moved and converted, each number exactly (core/base/half.h)."""

import io
import math

import numpy as np
import pytest

import rushlight as torch

FORMATS = [torch.float8_e4m3fn, torch.float8_e5m2]
formats = pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype._name)


def decoded(dtype: torch.dtype) -> np.ndarray:
    """The numbers of the 256 codes, by the definition of the format."""
    fraction, bias = (3, 7) if dtype is torch.float8_e4m3fn else (2, 15)
    numbers = []
    for code in range(256):
        sign = -1.0 if code & 0x80 else 1.0
        exponent = (code & 0x7F) >> fraction
        part = (code & ((1 << fraction) - 1)) / (1 << fraction)
        if dtype is torch.float8_e4m3fn and code & 0x7F == 0x7F:
            number = math.nan
        elif dtype is torch.float8_e5m2 and exponent == 31:
            number = math.nan if part else sign * math.inf
        elif exponent == 0:
            number = sign * part * 2.0 ** (1 - bias)
        else:
            number = sign * (1 + part) * 2.0 ** (exponent - bias)
        numbers.append(number)
    return np.array(numbers)


def codes(tensor: torch.Tensor) -> np.ndarray:
    return tensor.view(torch.uint8).numpy()


@formats
@pytest.mark.parametrize("wide", [torch.float16, torch.float32, torch.float64], ids=str)
def test_each_code_is_the_number_of_the_standard(dtype: torch.dtype, wide: torch.dtype) -> None:
    all_codes = torch.arange(256).to(torch.uint8).view(dtype)
    np.testing.assert_array_equal(all_codes.to(wide).numpy(), decoded(dtype).astype(np.float64))


@formats
def test_numbers_are_rounded_to_the_nearest_and_ties_to_even(dtype: torch.dtype) -> None:
    table = decoded(dtype)[:128]
    finite = table[np.isfinite(table)]
    between = (finite[1:] + finite[:-1]) / 2
    wanted = np.where(np.arange(len(between)) % 2 == 0, finite[:-1], finite[1:])
    for sign in (1, -1):
        ties = torch.tensor(sign * between, dtype=torch.float32)
        np.testing.assert_array_equal(ties.to(dtype).double().numpy(), sign * wanted)
        for towards, nearest in ((math.inf, finite[1:]), (-math.inf, finite[:-1])):
            beside = np.nextafter(between.astype(np.float32), np.float32(towards))
            rounded = torch.from_numpy(np.float32(sign) * beside).to(dtype)
            np.testing.assert_array_equal(rounded.double().numpy(), sign * nearest)
    assert codes(torch.tensor([-0.0]).to(dtype)).tolist() == [0x80]


def test_what_is_too_large_is_the_largest_or_infinite() -> None:
    x = torch.tensor([447, 448, 464.1, 480, 1e30, math.inf, -math.inf, math.nan])
    assert codes(x.to(torch.float8_e4m3fn)).tolist() == [126] * 6 + [254, 127]
    x = torch.tensor([57344, 61439, 61440, 1e30, math.inf, -math.inf, math.nan])
    assert codes(x.to(torch.float8_e5m2)).tolist() == [123, 123, 124, 124, 124, 252, 127]


@formats
def test_elements_move_and_are_compared(dtype: torch.dtype) -> None:
    x = torch.tensor([[1.0, 2.0], [-0.5, 8.0]], dtype=dtype)
    assert x.dtype is dtype and dtype.is_floating_point and x.itemsize == 1
    assert torch.cat([x, x]).tolist() == x.tolist() * 2
    assert x.t()[1].tolist() == [2.0, 8.0] and x[x == 8].tolist() == [8.0]
    assert torch.where(x == 2, torch.zeros_like(x), x).tolist() == [[1, 0], [-0.5, 8]]
    assert torch.full((2,), 3.0, dtype=dtype).fill_(1.5).tolist() == [1.5, 1.5]
    assert x[0, 1].item() == 2.0 and torch.equal(x, x.clone())
    assert str(x[0]) == f"tensor([1., 2.], dtype=torch.{dtype._name})"
    torch.testing.assert_close(x, x.clone())


@formats
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_moves_elements(dtype: torch.dtype, mode: str) -> None:
    x = torch.arange(256).to(torch.uint8).view(dtype).reshape(2, 2, 4, 16)
    amounts = (2, 3, 1, 2)
    padded = torch.nn.functional.pad(x, amounts, mode)
    assert padded.dtype is dtype
    wide = torch.nn.functional.pad(x.double(), amounts, mode)
    np.testing.assert_array_equal(padded.double().numpy(), wide.numpy())


@formats
def test_a_conversion_passes_the_gradient(dtype: torch.dtype) -> None:
    x = torch.tensor([1.0, 2.3], requires_grad=True)
    x.to(dtype).to(torch.float32).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1, 1]


@formats
def test_files_keep_them(dtype: torch.dtype, tmp_path) -> None:
    from rushlight.utils import safetensors

    x = torch.arange(256).to(torch.uint8).view(dtype)
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    loaded = torch.load(file)["x"]
    assert loaded.dtype is dtype
    np.testing.assert_array_equal(codes(loaded), codes(x))
    safetensors.save_file({"x": x}, tmp_path / "x.safetensors")
    loaded = safetensors.load_file(tmp_path / "x.safetensors")["x"]
    assert loaded.dtype is dtype
    np.testing.assert_array_equal(codes(loaded), codes(x))
    np.testing.assert_array_equal(codes(torch.from_dlpack(x)), codes(x))


def test_limits() -> None:
    info = torch.finfo(torch.float8_e4m3fn)
    assert (info.max, info.min, info.eps, info.tiny, info.bits) == (448, -448, 0.125, 2**-6, 8)
    info = torch.finfo(torch.float8_e5m2)
    assert (info.max, info.eps, info.smallest_normal) == (57344, 0.25, 2**-14)


@formats
@pytest.mark.parametrize("number", [2, 2.0, True])
def test_numbers_take_the_dtype_of_the_tensor(dtype: torch.dtype, number: float) -> None:
    x = torch.tensor([1.0, 0.5], dtype=dtype)
    for result in (x * number, number * x, x * torch.tensor(number)):
        assert result.dtype is dtype and result.tolist() == [number, number / 2]
    assert torch.result_type(x, number) is dtype


def test_other_dtypes_do_not_mix_with_them() -> None:
    x = torch.ones(2, dtype=torch.float8_e4m3fn)
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
        x + torch.ones(2)
    with pytest.raises(TypeError, match="Got unsupported ScalarType float8_e4m3fn"):
        x.numpy()
    with pytest.raises(BufferError, match="the dtype has no buffer format"):
        memoryview(x)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.full((2,), 1e6, dtype=torch.float8_e5m2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x @ x,
        lambda x: x.sort(),
        lambda x: torch.linalg.inv(x),
        lambda x: torch.nn.functional.softmax(x, 0),
        lambda x: x.index_put_((torch.tensor([0, 0]),), x, accumulate=True),
        lambda x: x.scatter_add_(0, torch.zeros(2, 2, dtype=torch.int64), x),
        lambda x: torch.arange(4, dtype=x.dtype),
        lambda x: x.unique(),
    ],
)
@formats
def test_arithmetic_is_refused(dtype: torch.dtype, call) -> None:
    with pytest.raises((NotImplementedError, RuntimeError), match=dtype._name):
        call(torch.ones(2, 2, dtype=dtype))
