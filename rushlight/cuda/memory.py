"""What tensors take of a GPU's memory, and what is kept for the next ones."""

from __future__ import annotations

from rushlight import _C
from rushlight.cuda._device import _index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def memory_stats(device: Any = None) -> dict[str, int]:
    """Returns counts of bytes and blocks, by PyTorch's names; all zero before CUDA is used.

    Args:
        device: which GPU; the current one without it.
    """
    from collections import defaultdict

    stats: dict[str, int] = defaultdict(int)
    if _C._cuda_is_initialized():
        stats.update(_C._cuda_memory_stats(_index(device)))
    return stats


def memory_allocated(device: Any = None) -> int:
    """Returns the bytes that tensors use now.

    Args:
        device: which GPU; the current one without it.

    Example:
        >>> torch.cuda.memory_allocated()
        0
    """
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Any = None) -> int:
    """Returns the most bytes that tensors used since the start or reset_peak_memory_stats.

    Args:
        device: which GPU; the current one without it.
    """
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Any = None) -> int:
    """Returns the bytes that this process holds, for tensors there are and for those to come.

    Args:
        device: which GPU; the current one without it.
    """
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Any = None) -> int:
    """Returns the most bytes that this process held since the start or reset_peak_memory_stats.

    Args:
        device: which GPU; the current one without it.
    """
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Starts max_memory_allocated and max_memory_reserved again, from what is in use now.

    Args:
        device: which GPU; the current one without it.
    """
    if _C._cuda_is_initialized():
        _C._cuda_reset_peak_memory_stats(_index(device))


def reset_max_memory_allocated(device: Any = None) -> None:
    """The older name of reset_peak_memory_stats."""
    reset_peak_memory_stats(device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Returns the free and the total bytes of a GPU, as its driver sees them.

    Args:
        device: which GPU; the current one without it.

    Raises:
        RuntimeError: when CUDA cannot be used.
    """
    return _C._cuda_memory_info(_index(device))


def empty_cache() -> None:
    """Gives memory that no tensor uses back, so that other programs can have it."""
    if _C._cuda_is_initialized():
        _C._cuda_empty_cache()


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Returns memory_stats as a table to read.

    Args:
        device: which GPU; the current one without it.
        abbreviated: accepted; the table is short.
    """
    stats = memory_stats(device)
    lines = [f"{'':24}{'now':>16}{'peak':>16}"]
    for title, name in (
        ("bytes of tensors", "allocated_bytes"),
        ("bytes of this process", "reserved_bytes"),
        ("blocks", "allocation"),
    ):
        now, peak = stats[f"{name}.all.current"], stats[f"{name}.all.peak"]
        lines.append(f"{title:24}{now:>16,}{peak:>16,}")
    lines.append(f"{'bytes kept for reuse':24}{stats['inactive_bytes.all.current']:>16,}")
    lines.append(f"{'retries':24}{stats['num_alloc_retries']:>16,}")
    lines.append(f"{'out of memory':24}{stats['num_ooms']:>16,}")
    return "\n".join(lines)
