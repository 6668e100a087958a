"""Putting batches into pinned memory."""

from __future__ import annotations

from rushlight.utils.data._utils.collate import map_items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def pin_memory(data: Any, device: Any = None) -> Any:
    """Returns a batch with its tensors in pinned memory, and all that has a method pin_memory.

    Args:
        data: the batch.
        device: accepted; memory is pinned for the GPU.
    """
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, str | bytes):
        return data
    return map_items(data, pin_memory)
