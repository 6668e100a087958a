"""The types of ops with several results: named tuples such as torch.return_types.max.

The core makes each when it is first asked for. Named here, results can be pickled.
"""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> type[tuple[Any, ...]]:
    found = _C._return_type(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, found)
