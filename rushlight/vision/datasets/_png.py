"""PNG images of three channels with 16 bits each, of which Pillow keeps only eight.

Owns the part of the format (https://www.w3.org/TR/png) that KITTI's motion needs.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PIXEL = 6  # bytes
_MAX_RATIO = 1040  # beyond which deflate cannot compress


def read_png16(path: str | Path) -> np.ndarray:
    """Reads an image, (3, height, width) uint16.

    Raises:
        ValueError: if it is not a whole PNG of that kind.
    """
    with open(path, "rb") as file:
        content = file.read()
    chunks = _chunks(content)
    if content[:8] != _SIGNATURE or len(chunks.get(b"IHDR", b"")) != 13:
        raise ValueError(f"read_png16: {path} is not a PNG.")
    width, height, depth, color, _, _, interlace = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if (depth, color, interlace) != (16, 2, 0):
        raise ValueError(f"read_png16: {path} is not a plain PNG of three 16-bit channels.")
    size = height * (1 + width * _PIXEL)
    packed = chunks.get(b"IDAT", b"")
    if not 0 < size <= _MAX_RATIO * len(packed):
        raise ValueError(f"read_png16: {path} is damaged: it is too short for its {size} bytes.")
    try:
        data = zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error as error:
        raise ValueError(f"read_png16: {path} is damaged: {error}.") from error
    rows = np.frombuffer(data, np.uint8)
    if len(rows) != size or (rows := rows.reshape(height, -1))[:, 0].max() > 4:
        raise ValueError(f"read_png16: {path} is damaged: its pixels are not all there.")
    pixels = _unfiltered(rows[:, 0], rows[:, 1:].reshape(height, width, _PIXEL))
    return np.ascontiguousarray(pixels).view(">u2").astype(np.uint16).transpose(2, 0, 1)


def _chunks(content: bytes) -> dict[bytes, bytes]:
    """What is in each kind of chunk, that of several of one kind put together."""
    found: dict[bytes, list[bytes]] = {}
    start = len(_SIGNATURE)
    while start + 12 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, start)
        found.setdefault(kind, []).append(content[start + 8 : start + 8 + length])
        start += length + 12
    return {kind: b"".join(parts) for kind, parts in found.items()}


def _unfiltered(filters: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Adds to each pixel what its row's filter predicts from the left, above, and above left.

    A diagonal depends on the two before it alone, so all its pixels are done at once.
    """
    height, width, _ = data.shape
    result = np.zeros((height + 1, width + 1, _PIXEL), np.int16)
    for diagonal in range(height + width - 1):
        y = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        x = diagonal - y
        left, above, corner = result[y + 1, x], result[y, x + 1], result[y, x]
        # Paeth: which of the three is nearest to left + above - corner.
        to_left, to_above = abs(above - corner), abs(left - corner)
        to_corner = abs(left + above - 2 * corner)
        paeth = np.where(
            (to_left <= to_above) & (to_left <= to_corner),
            left,
            np.where(to_above <= to_corner, above, corner),
        )
        guesses = np.stack([np.zeros_like(left), left, above, (left + above) // 2, paeth])
        guess = guesses[filters[y], np.arange(len(y))]
        result[y + 1, x + 1] = (data[y, x] + guess) & 255
    return result[1:, 1:].astype(np.uint8)
