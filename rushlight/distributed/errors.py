"""What the parts of rushlight.distributed raise. All are RuntimeErrors, as PyTorch's are."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """That processes could not work together; the others here say what failed."""


class DistBackendError(DistError):
    """That a collective failed: ranks called different ones, or one came too late."""


class DistNetworkError(DistError):
    """That another process cannot be reached, or has ended."""


class DistStoreError(DistError):
    """That a store has no such key in time."""


class QueueEmptyError(DistStoreError):
    """That nothing waits in a queue of a store."""
