"""The GPU by a name that does not say of which maker it is, as newer programs ask for it.

Everything here is torch.cuda's; without a GPU there is no accelerator.
"""

from __future__ import annotations

from rushlight import _C
from rushlight.accelerator import random
from rushlight.cuda import current_device as current_device_index
from rushlight.cuda import (
    current_stream,
    device_count,
    empty_cache,
    get_device_capability,
    is_available,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_stream,
    synchronize,
)
from rushlight.cuda import device as device_index
from rushlight.cuda import mem_get_info as get_memory_info
from rushlight.cuda import set_device as set_device_index

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "random",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

# The names of PyTorch's first version.
current_device_idx, set_device_idx = current_device_index, set_device_index


def current_accelerator(check_available: bool = False) -> _C.device | None:
    """Returns the device without its index, or None where there is none.

    Args:
        check_available: has no effect: whether there is a GPU is found out in any case.

    Example:
        >>> found = torch.accelerator.current_accelerator()
        >>> found is None or found.type == "cuda"
        True
    """
    return _C.device("cuda") if is_available() else None
