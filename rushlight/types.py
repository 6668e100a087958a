"""What arguments may be, by the names that annotations in programs use."""

from __future__ import annotations

import os
from typing import IO

from rushlight import Tensor as Tensor
from rushlight import device
from rushlight._storage import TypedStorage, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
Storage = TypedStorage | UntypedStorage
