"""The buffer protocol, both ways, and torch.frombuffer."""

from __future__ import annotations

import array
import inspect
import mmap
import struct
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight as torch


def test_a_memoryview_shares_memory() -> None:
    tensor = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    view = memoryview(tensor)
    assert (view.shape, view.strides, view.format, view.readonly) == ((2, 3), (12, 4), "i", False)
    view[1, 2] = 9
    assert tensor[1, 2].item() == 9
    assert memoryview(tensor.T).strides == (4, 12)
    assert bytes(torch.tensor([1, 2], dtype=torch.uint8)) == b"\x01\x02"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python cannot ask for less than all")
def test_a_buffer_without_a_shape_is_flat() -> None:
    for shape in [(), (3,), (2, 3)]:
        tensor = torch.ones(shape)
        view = tensor.__buffer__(inspect.BufferFlags.SIMPLE)
        assert (view.ndim, view.nbytes) == (1, 4 * tensor.numel())


def test_a_view_keeps_the_memory_alive() -> None:
    view = memoryview(torch.full((1000,), 7, dtype=torch.uint8))
    assert bytes(view) == b"\x07" * 1000


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: torch.ones(2, dtype=torch.bfloat16), "the dtype has no buffer format"),
        (lambda: torch.ones(2, requires_grad=True), "requires grad"),
        (lambda: torch.ones(2, device="meta"), "not on the CPU"),
    ],
)
def test_what_has_no_buffer_is_refused(make: Any, why: str) -> None:
    with pytest.raises(BufferError, match=why):
        memoryview(make())


def test_a_consumer_may_ask_for_less_than_strides() -> None:
    bytes_of: Any = torch.arange(6, dtype=torch.uint8).reshape(2, 3)
    assert struct.unpack_from("B", bytes_of, 4) == (4,)
    with pytest.raises(BufferError, match="not contiguous"):
        struct.unpack_from("B", bytes_of.T)
    read_only: Any = torch.frombuffer(b"1234", dtype=torch.uint8)
    with pytest.raises((BufferError, TypeError), match="read-only|read-write"):
        struct.pack_into("B", read_only, 0, 1)


@pytest.mark.parametrize(
    "buffer",
    [
        bytearray(range(16)),
        bytes(range(16)),
        memoryview(bytes(range(16))),
        array.array("d", [1.0, 2.0]),
        np.arange(16, dtype=np.uint8),
        np.arange(2.0),
    ],
    ids=lambda b: type(b).__name__,
)
def test_any_buffer_is_shared(buffer: Any) -> None:
    tensor = torch.frombuffer(buffer, dtype=torch.int16)
    assert tensor.numpy().tobytes() == bytes(buffer)
    writable = not memoryview(buffer).readonly
    if writable:
        tensor[0] = 77
        assert memoryview(buffer).cast("B")[0] == 77
    else:
        with pytest.raises(RuntimeError, match="read-only"):
            tensor[0] = 77


def test_a_mapped_file_is_shared() -> None:
    with mmap.mmap(-1, 64) as mapped:
        tensor = torch.frombuffer(mapped, dtype=torch.float32)
        tensor[3] = 2.0
        assert mapped[12:16] == b"\x00\x00\x00\x40"
        with pytest.raises(BufferError):
            mapped.close()
        del tensor


@given(st.integers(0, 40), st.integers(-3, 45), st.integers(-3, 45))
def test_frombuffer_reads_its_window_or_raises(length: int, count: int, offset: int) -> None:
    data = bytes(range(length))
    fits = 0 <= offset < length and count != 0 and count * 4 <= length - offset
    # An int32 must begin at an aligned address, as the memory of bytes does; without that, what
    # cannot be written to is copied.
    for buffer in data, bytearray(data):
        is_refused = offset % 4 and isinstance(buffer, bytearray)
        if not fits or is_refused or (count < 0 and (length - offset) % 4):
            with pytest.raises(ValueError, match="^frombuffer: "):
                torch.frombuffer(buffer, dtype=torch.int32, count=count, offset=offset)
            continue
        tensor = torch.frombuffer(buffer, dtype=torch.int32, count=count, offset=offset)
        expected = np.frombuffer(data, np.int32, -1 if count < 0 else count, offset)
        np.testing.assert_array_equal(tensor.numpy(), expected)


BAD_WINDOWS: list[tuple[Any, dict[str, Any], str]] = [
    (bytearray(), {}, r"both buffer length \(0\) and count \(-1\) must not be 0"),
    (bytearray(16), {"count": 0}, r"both buffer length \(16\) and count \(0\) must not be 0"),
    (bytearray(16), {"offset": 16}, r"offset \(16 bytes\) must be non-negative and no greater"),
    (bytearray(16), {"offset": -1}, r"offset \(-1 bytes\) must be non-negative"),
    (bytearray(16), {"offset": 2**62}, r"offset \(\d+ bytes\) must be non-negative"),
    (bytearray(16), {"offset": 3}, r"buffer length \(13 bytes\) after offset \(3 bytes\) must be"),
    (bytearray(16), {"count": 5}, r"requested buffer length \(5 elements\) after offset"),
    (bytearray(16), {"count": 2**62}, "requested buffer length"),
]


@pytest.mark.parametrize(("buffer", "window", "message"), BAD_WINDOWS)
def test_frombuffer_names_what_does_not_fit(buffer: Any, window: Any, message: str) -> None:
    with pytest.raises(ValueError, match="frombuffer: " + message):
        torch.frombuffer(buffer, dtype=torch.float32, **window)


def test_frombuffer_refuses_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="does not implement Python buffer protocol"):
        torch.frombuffer(3, dtype=torch.uint8)
    with pytest.raises(TypeError, match="missing required argument: 'dtype'"):
        torch.frombuffer(bytearray(4))
    with pytest.raises(TypeError, match="must be torch.dtype"):
        torch.frombuffer(bytearray(4), dtype="int8")
    with pytest.raises(RuntimeError, match="could not retrieve buffer"):
        torch.frombuffer(memoryview(bytearray(8))[::2], dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require"):
        torch.frombuffer(bytearray(8), dtype=torch.int8, requires_grad=True)


def test_frombuffer_releases_the_buffer_when_it_fails() -> None:
    data = bytearray(8)
    for options in ({"offset": 9}, {"requires_grad": True}):
        with pytest.raises((ValueError, RuntimeError)):
            torch.frombuffer(data, dtype=torch.int8, **options)
    data.append(1)  # which a buffer in use would forbid


def test_frombuffer_may_collect_a_gradient() -> None:
    x = torch.frombuffer(bytearray(8), dtype=torch.float32, requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
