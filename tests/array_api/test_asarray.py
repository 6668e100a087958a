"""asarray and from_dlpack of the array API: what is shared, what is copied, what is refused."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import rushlight as rl
import rushlight.array_api as xp


def shares(tensor: Any, other: np.ndarray) -> bool:
    return np.shares_memory(tensor.numpy(), other)


def test_an_array_is_returned_as_it_is() -> None:
    x = rl.ones(3)
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    assert xp.asarray(x, dtype=xp.float32, device="cpu") is x
    copied = xp.asarray(x, copy=True)
    assert copied is not x and not shares(copied, x.numpy())


def test_another_dtype_or_device_is_a_copy() -> None:
    x = rl.ones(3)
    assert xp.asarray(x, dtype=xp.float64).dtype is xp.float64
    assert xp.asarray(x, device="meta").device.type == "meta"
    for options in ({"dtype": xp.float64}, {"device": "meta"}):
        with pytest.raises(ValueError, match="by a copy only"):
            xp.asarray(x, copy=False, **options)


def test_arrays_of_numpy_are_shared() -> None:
    a = np.arange(6.0).reshape(2, 3)
    assert shares(xp.asarray(a), a)
    assert shares(xp.asarray(a.T, copy=False), a)
    assert not shares(xp.asarray(a, copy=True), a)
    assert xp.asarray(a, dtype=xp.float32).dtype is xp.float32
    assert xp.asarray(np.float32(3)).dtype is xp.float32
    assert xp.asarray(np.array(3, np.uint16)).dtype is xp.uint16
    assert xp.asarray([np.arange(2), np.arange(2)]).tolist() == [[0, 1], [0, 1]]


def test_strides_that_tensors_cannot_have_are_copied_unless_that_is_forbidden() -> None:
    backwards = np.arange(3.0)[::-1]
    assert xp.asarray(backwards).tolist() == [2, 1, 0]
    with pytest.raises(ValueError, match="stride in the given numpy array is negative"):
        xp.asarray(backwards, copy=False)


@pytest.mark.parametrize(
    ("buffer", "dtype"),
    [
        (bytearray(b"\x01\x02"), xp.uint8),
        (b"\x01\x02", xp.uint8),
        (memoryview(b"\x01\x02"), xp.uint8),
        (array.array("d", [1, 2]), xp.float64),
        (array.array("h", [1, 2]), xp.int16),
    ],
    ids=lambda v: type(v).__name__,
)
def test_buffers_have_the_dtype_of_their_format(buffer: Any, dtype: Any) -> None:
    x = xp.asarray(buffer)
    assert x.dtype is dtype and x.tolist() == [1, 2]
    if not memoryview(buffer).readonly:
        x[0] = 7
        assert buffer[0] == 7
    else:
        with pytest.raises(RuntimeError, match="read-only"):
            x[0] = 7


class Producer:
    """An object of the DLPack protocol and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_objects_of_dlpack_are_shared() -> None:
    a = np.arange(3)
    assert shares(xp.asarray(Producer(a)), a)
    assert shares(xp.from_dlpack(Producer(a)), a)
    assert shares(xp.from_dlpack(Producer(a), copy=False), a)
    assert not shares(xp.from_dlpack(Producer(a), copy=True), a)
    assert xp.from_dlpack(Producer(a), device="cpu").device == rl.device("cpu")


def test_numbers_and_sequences_cannot_be_shared() -> None:
    assert xp.asarray([1, 2], copy=True).tolist() == [1, 2]
    assert xp.asarray(3, dtype=xp.complex128).dtype is xp.complex128
    assert xp.asarray([[xp.asarray(1.0), 2.0]]).tolist() == [[1, 2]]
    assert xp.asarray(2**64 - 1, dtype=xp.uint64).item() == 2**64 - 1
    for data in (1, [1, 2], [[1.0], [2.0]]):
        with pytest.raises(ValueError, match="cannot be shared"):
            xp.asarray(data, copy=False)


def test_integers_beyond_int64_are_unsigned() -> None:
    top = 2**64 - 1
    assert xp.asarray(2**63 - 1).dtype == xp.int64
    assert xp.asarray(top).dtype == xp.uint64 and int(xp.asarray(top)) == top
    with pytest.raises(OverflowError):
        xp.asarray(2**64)
    x = xp.asarray([3, top], dtype=xp.uint64)
    assert xp.clip(x, 5, 2**63).tolist() == [5, 2**63]
    assert xp.clip(x, -1, 2**70).tolist() == [3, top]


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.str_"):
        xp.asarray(np.array(["a"]))
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        xp.asarray("text")
    with pytest.raises(RuntimeError, match="Could not infer dtype of object"):
        xp.asarray(object())
    with pytest.raises(ValueError, match="expected sequence of length"):
        xp.asarray([[1, 2], [3]])
