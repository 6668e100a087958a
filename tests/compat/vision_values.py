"""What comparing vision with torchvision needs: both libraries, the same values made in either."""

from __future__ import annotations

import importlib
import types
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import rushlight

pytorch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
PIL = pytest.importorskip("PIL.Image")

ROWS, COLUMNS = 23, 31
RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (3, ROWS, COLUMNS), dtype=np.uint8)
FLAT_BYTES = (BYTES // 32 + 100).astype(np.uint8)
BOXES = {
    "XYXY": [[2, 3, 12, 14], [0, 0, 31, 23], [5, 8, 29, 22], [20, 1, 20, 9]],
    "XYWH": [[2, 3, 10, 11], [0, 0, 31, 23], [25, 8, 9, 20]],
    "CXCYWH": [[7, 8, 11, 13], [15, 11, 30, 22], [25, 8, 9, 20]],
    "XYWHR": [[4.0, 15.0, 10.0, 8.0, 40.0], [12.0, 6.0, 9.0, 7.0, -20.0]],
    "CXCYWHR": [[12.0, 11.0, 10.0, 8.0, 35.0], [16.0, 12.0, 9.0, 5.0, 110.0]],
    "XYXYXYXY": [[6.0, 15.0, 14.0, 9.0, 18.0, 14.0, 10.0, 20.0]],
}
POINTS = [[0.0, 0.0], [30.0, 22.0], [12.5, 7.25], [3.0, 19.0]]


class Library(NamedTuple):
    """A tensor library with its vision package."""

    torch: Any
    vision: str

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{self.vision}.{name}")


OURS = Library(rushlight, "rushlight.vision")
THEIRS = Library(pytorch, "torchvision")


def image_of(library: Library, kind: str) -> Any:
    """The picture as one of the kinds of values that functionals take."""
    torch, tv = library.torch, library.module("tv_tensors")
    data = torch.from_numpy(BYTES.copy())
    makers = {
        "uint8": lambda: data,
        "float": lambda: data.float() / 255,
        "double": lambda: data.double() / 255,
        "int16": lambda: data.to(torch.int16) * 128,
        "gray": lambda: data[:1],
        "batch": lambda: torch.stack([data, data.flip(-1)]),
        "last": lambda: torch.from_numpy(BYTES.transpose(1, 2, 0).copy()).permute(2, 0, 1),
        "flat": lambda: torch.from_numpy(FLAT_BYTES.copy()),
        "PIL": lambda: PIL.fromarray(BYTES.transpose(1, 2, 0)),
        "PIL L": lambda: PIL.fromarray(BYTES[0]),
        "PIL F": lambda: PIL.fromarray(BYTES[0].astype(np.float32)),
        "PIL I": lambda: PIL.fromarray(BYTES[0].astype(np.int32) * 100),
        "PIL 1": lambda: PIL.fromarray(BYTES[0] > 128),
        "PIL LA": lambda: PIL.fromarray(BYTES.transpose(1, 2, 0)).convert("LA"),
        "PIL RGBA": lambda: PIL.fromarray(BYTES.transpose(1, 2, 0)).convert("RGBA"),
        "PIL P": lambda: PIL.fromarray(BYTES[0]).convert("P"),
        "array": lambda: BYTES.transpose(1, 2, 0).copy(),
        "Image": lambda: tv.Image(data),
        "Video": lambda: tv.Video(torch.stack([data, data.flip(-1)])),
        "Mask": lambda: tv.Mask(data[:2] % 5),
        "Mask 2d": lambda: tv.Mask(data[0] > 128),
        "KeyPoints": lambda: tv.KeyPoints(POINTS, canvas_size=(ROWS, COLUMNS)),
        "KeyPoints 3d": lambda: tv.KeyPoints([POINTS], canvas_size=(ROWS, COLUMNS)),
        "empty": lambda: data[:, :, :0],
        "text": lambda: "text",
        "1d": lambda: data[0, 0],
    }
    if kind in makers:
        return makers[kind]()
    format, _, options = kind.partition(" ")
    dtype = None if "int" in options else torch.float32
    mode = "hard" if "hard" in options else None if "None" in options else "soft"
    rows = BOXES[format]
    return tv.BoundingBoxes(
        torch.tensor(rows, dtype=dtype),
        format=format,
        canvas_size=(ROWS, COLUMNS),
        clamping_mode=mode,
    )


def plain(value: Any) -> Any:
    """A result as what can be compared: (type, what it knows, array)."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, (rushlight.Tensor, pytorch.Tensor)):
        known = {
            name: str(getattr(value, name))
            for name in ("format", "canvas_size", "clamping_mode")
            if hasattr(value, name) and type(value).__name__ in ("BoundingBoxes", "KeyPoints")
        }
        library = rushlight if isinstance(value, rushlight.Tensor) else pytorch
        array = value.as_subclass(library.Tensor).numpy()
        return (type(value).__name__, str(value.dtype), known, array)
    if isinstance(value, PIL.Image):
        return ("PIL", value.mode, {}, np.asarray(value))
    return value


def outcome(library: Library, function: Any, *args: Any, **kwargs: Any) -> Any:
    args = [arg(library.torch) if isinstance(arg, types.FunctionType) else arg for arg in args]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(function(*args, **kwargs))
    except Exception as error:
        return error
