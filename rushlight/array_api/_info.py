"""What the array API namespace can do: devices, dtypes and capabilities."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.array_api._data_types import BOOL, COMPLEX, KINDS, REAL, SIGNED, UNSIGNED

_MAX_DIMS = 64


class _Info:
    """The answers of __array_namespace_info__()."""

    def capabilities(self) -> dict[str, Any]:
        """Returns which optional features exist."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": _MAX_DIMS,
        }

    def default_device(self) -> rl.device:
        """Returns the device of arrays that are made without one."""
        return rl.get_default_device()

    def default_dtypes(self, *, device: Any | None = None) -> dict[str, rl.dtype]:
        """Returns the dtypes of arrays that are made without one."""
        real = rl.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": rl.complex128 if real is rl.float64 else rl.complex64,
            "integral": rl.int64,
            "indexing": rl.int64,
        }

    def dtypes(
        self, *, device: Any | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, rl.dtype]:
        """Returns the dtypes by name, all or those of some kinds.

        Raises:
            ValueError: for unknown kinds.
        """
        kinds = KINDS if kind is None else (kind,) if isinstance(kind, str) else kind
        for name in kinds:
            if name not in KINDS:
                raise ValueError(f"dtypes: unknown kind {name!r}. They are {', '.join(KINDS)}.")
        wanted = {dtype for name in kinds for dtype in KINDS[name]}
        names = (BOOL, SIGNED, UNSIGNED, REAL, COMPLEX)
        return {str(d).removeprefix("torch."): d for group in names for d in group if d in wanted}

    def devices(self) -> list[rl.device]:
        """Returns the devices that arrays can be on."""
        return [
            rl.device("cpu"),
            *(rl.device("cuda", index) for index in range(rl.cuda.device_count())),
        ]


def __array_namespace_info__() -> _Info:  # noqa: N807
    """Returns an object that tells devices, dtypes and capabilities of this namespace.

    Example:
        >>> xp.__array_namespace_info__().default_dtypes()["integral"]
        torch.int64
    """
    return _Info()
