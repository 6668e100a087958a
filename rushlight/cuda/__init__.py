"""The GPU, as far as programs ask about it: there is no GPU back end yet, and this says so."""

from __future__ import annotations

from rushlight._errors import OutOfMemoryError as OutOfMemoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_available() -> bool:
    """Returns whether tensors can live on a GPU: not yet.

    Example:
        >>> torch.cuda.is_available()
        False
    """
    return False


def device_count() -> int:
    """Returns the number of GPUs that can be used: none yet."""
    return 0


def manual_seed(seed: int) -> None:
    """Seeds the generator of the GPU; without one, nothing happens."""


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all GPUs; without one, nothing happens."""


def empty_cache() -> None:
    """Frees cached GPU memory; without a GPU, nothing happens."""


def synchronize(device: Any = None) -> None:
    """Waits for a GPU.

    Raises:
        RuntimeError: always, as there is none.
    """
    raise RuntimeError(
        "cuda.synchronize: no GPU can be used. Guard the call with torch.cuda.is_available()."
    )
