"""Byte strings in a row, as files and requests of stores hold them. Nothing is pickled."""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["SIZE", "pack", "unpack"]

SIZE = struct.Struct("<I")  # stands before each string, and before the record


def pack(parts: Sequence[bytes]) -> bytes:
    """Returns byte strings as one record, which begins with the size of the rest."""
    body = b"".join(SIZE.pack(len(part)) + part for part in parts)
    return SIZE.pack(len(body)) + body


def unpack(body: bytes) -> list[bytes]:
    """Returns the byte strings of a record without its size."""
    parts = []
    start = 0
    while start < len(body):
        (size,) = SIZE.unpack_from(body, start)
        parts.append(body[start + SIZE.size : start + SIZE.size + size])
        start += SIZE.size + size
    return parts
