"""Putting batches into pinned memory."""

from __future__ import annotations

import queue
from typing import Any

import rushlight as rl
from rushlight._utils import ExceptionWrapper
from rushlight.utils.data._utils import MP_STATUS_CHECK_INTERVAL
from rushlight.utils.data._utils.collate import map_items


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


def _pin_memory_loop(
    in_queue: Any, out_queue: Any, device_id: int, done_event: Any, device: Any = None
) -> None:
    """What a thread of a library's loader does: pins what workers send, until done_event is set.

    Args:
        in_queue: has (number, batch).
        out_queue: gets the same, or an ExceptionWrapper for a batch that cannot be pinned.
        device_id: the GPU.
        done_event: an event.
        device: as in pin_memory.
    """
    rl.accelerator.set_device_index(device_id)
    while not done_event.is_set():
        try:
            number, batch = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        if not isinstance(batch, ExceptionWrapper):
            try:
                batch = pin_memory(batch, device)
            except Exception:
                batch = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        out_queue.put((number, batch))
