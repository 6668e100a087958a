"""What tests ask about memory."""

from __future__ import annotations

import os
from collections.abc import Callable

import rushlight as torch
from rushlight import _C


def live_bytes() -> int:
    """The bytes of the tensors on the CPU."""
    return _C._memory_stats()["allocated"]


def resident_kb() -> int:
    """The memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * (os.sysconf("SC_PAGE_SIZE") // 1024)


def kept_by(run: Callable[[], torch.Tensor]) -> int:
    """The bytes that a result and its history hold until backward."""
    before = live_bytes()
    loss = run().sum()
    kept = live_bytes() - before
    loss.backward()
    return kept
