"""How small data sets are written to disk, and what is expected of each.

Pictures are of one color, whose red is their number; they are PNG whatever their names end in, so
that nothing is lost. A case is the class, its arguments, and pairs of that number and the target.
MD5s are not right, so the checks of them must be turned off.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image


class Case(NamedTuple):
    name: str
    arguments: dict[str, Any]
    expected: list[tuple[Any, Any]]


Builder = Callable[[Path], Iterator[Case]]
BUILDERS: dict[str, Builder] = {}


def builder(function: Builder) -> Builder:
    BUILDERS[function.__name__] = function
    return function


def picture(path: Path, number: int, size: tuple[int, int] = (5, 4), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    color: Any = (number, 2 * number % 256, 255 - number) if mode == "RGB" else number
    Image.new(mode, size, color).save(path, "PNG")


def text(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def mat(path: Path, **variables: Any) -> None:
    from scipy.io import savemat

    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, variables)


def idx(path: Path, values: np.ndarray, kind: int = 8) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack(">BBBB", 0, 0, kind, values.ndim)
    path.write_bytes(header + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes())


def gray(count: int, size: int = 28) -> np.ndarray:
    """Gray pictures, the number of each its value."""
    return np.broadcast_to(np.arange(count, dtype=np.uint8)[:, None, None], (count, size, size))


def colored(count: int, size: int, *, channels_first: bool = True) -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 255, (count, 3, size, size), dtype=np.uint8)
    values[:, 0] = np.arange(count)[:, None, None]
    return values if channels_first else values.transpose(0, 2, 3, 1)


def flo(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.full((4, 5, 2), number, "<f4")
    path.write_bytes(b"PIEH" + struct.pack("<ii", 5, 4) + values.tobytes())


def pfm(path: Path, number: float, channels: int = 3) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.full((4, 5, channels), number, "<f4")
    values[0, 0] = -7  # tells the bottom from the top
    kind = "PF" if channels == 3 else "Pf"
    path.write_bytes(f"{kind}\n5 4\n-1.0\n".encode() + values.tobytes())
