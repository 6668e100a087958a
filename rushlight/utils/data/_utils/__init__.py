"""What happens between a dataset and a loader: fetching, collation and worker processes.

The places are PyTorch's, which libraries import from.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_LATER = ("collate", "fetch", "pin_memory", "worker")


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:  # imported when first used: a process without workers needs no worker
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
