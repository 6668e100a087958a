"""The C++ module as a file: what it asks of the program that loads it."""

import struct
from pathlib import Path

from rushlight import _C

PT_TLS = 7


def test_thread_local_memory_is_small() -> None:
    """A library that is loaded late has to share some 1,600 bytes with all others, see Note
    [Static TLS] in core/device/allocator.cpp; without them, no import."""
    data = Path(_C.__file__).read_bytes()
    (start,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    segments = [struct.unpack_from("<IIQQQQQQ", data, start + i * size) for i in range(count)]
    (needed,) = [segment[6] for segment in segments if segment[0] == PT_TLS]
    assert needed <= 656
