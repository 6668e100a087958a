"""What arguments may be, by the names that annotations in programs use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO

from rushlight import Size, SymBool, SymFloat, SymInt, device, dtype, layout, qscheme
from rushlight import Tensor as Tensor
from rushlight._storage import TypedStorage, UntypedStorage

__all__ = [
    "BoolLikeType",
    "Device",
    "FileLike",
    "FloatLikeType",
    "IntLikeType",
    "Number",
    "Storage",
]

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
Storage = TypedStorage | UntypedStorage
BoolLikeType, FloatLikeType, IntLikeType = bool | SymBool, float | SymFloat, int | SymInt

# PyTorch says that they are private; programs import them all the same.
_device, _dtype, _layout, _qscheme = device, dtype, layout, qscheme
_bool, _bytes, _complex, _float, _int, _str = bool, bytes, complex, float, int, str
_Number = (int, float, bool)
_size = Size | list[int] | tuple[int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors = Tensor | Sequence[Tensor | None]
