"""What tensors take of a GPU's memory, and what is kept for the next ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rushlight import _C
from rushlight.cuda._device import gpu_index


def memory_stats(device: Any = None) -> dict[str, int]:
    """Returns counts of bytes and blocks, by PyTorch's names; all zero before CUDA is used.

    Args:
        device: which GPU; the current one without it.
    """
    from collections import defaultdict

    stats: dict[str, int] = defaultdict(int)
    if _C._cuda_is_initialized():
        stats.update(_C._cuda_memory_stats(gpu_index(device)))
    return stats


def memory_allocated(device: Any = None) -> int:
    """Returns the bytes that tensors use now.

    Args:
        device: which GPU; the current one without it.

    Example:
        >>> before = torch.cuda.memory_allocated()
        >>> torch.cuda.memory_allocated() - before
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
        _C._cuda_reset_peak_memory_stats(gpu_index(device))


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
    return _C._cuda_memory_info(gpu_index(device))


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


# The older names of memory_reserved and its kin.
memory_cached = memory_reserved
max_memory_cached = max_memory_reserved
reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Starts the totals of memory_stats again: what was ever allocated and freed, and failures.

    Args:
        device: which GPU; the current one without it.
    """
    if _C._cuda_is_initialized():
        _C._cuda_reset_accumulated_memory_stats(gpu_index(device))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Returns memory_stats with a dict for each part of a name.

    Args:
        device: which GPU; the current one without it.
    """
    return _nested(memory_stats(device))


def _nested(stats: dict[str, int]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in stats.items():
        *path, last = name.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def host_memory_stats() -> dict[str, int]:
    """Returns counts of bytes and blocks of pinned memory, by PyTorch's names; {} before its use.

    "active" is what tensors use, "allocated" also what waits for reuse.
    """
    return _C._cuda_pinned_stats() if _C._cuda_is_initialized() else {}


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Returns host_memory_stats with a dict for each part of a name."""
    return _nested(host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    """Starts the peaks of host_memory_stats again."""
    if _C._cuda_is_initialized():
        _C._cuda_reset_pinned_stats(True, False)


def reset_accumulated_host_memory_stats() -> None:
    """Starts the totals of host_memory_stats again."""
    if _C._cuda_is_initialized():
        _C._cuda_reset_pinned_stats(False, True)


def memory_snapshot(
    mempool_id: tuple[int, int] | None = None, include_traces: bool = True
) -> list[dict[str, Any]]:
    """Returns all blocks of memory on all GPUs, as PyTorch describes its segments.

    Each block is a segment of its own, because the driver does not tell how it divides its memory.

    Args:
        mempool_id: the id of the only pool to describe; without it all are.
        include_traces: accepted; where blocks were allocated is not recorded.
    """
    segments: list[dict[str, Any]] = []
    for device in range(_C._cuda_device_count() if _C._cuda_is_initialized() else 0):
        for address, size, stream, is_used, pool in _C._cuda_memory_blocks(device):
            if mempool_id is not None and pool != tuple(mempool_id):
                continue
            used = size if is_used else 0
            block = {
                "address": address,
                "size": size,
                "requested_size": used,
                "state": "active_allocated" if is_used else "inactive",
                "frames": [],
            }
            segments.append(
                {
                    "device": device,
                    "address": address,
                    "total_size": size,
                    "allocated_size": used,
                    "active_size": used,
                    "requested_size": used,
                    "stream": stream,
                    "segment_type": "small" if size <= 1 << 20 else "large",
                    "segment_pool_id": pool,
                    "is_expandable": False,
                    "frames": [],
                    "blocks": [block],
                }
            )
    return sorted(segments, key=lambda segment: (segment["device"], segment["address"]))


# Limits

_fractions: dict[int, float] = {}  # by GPU


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Lets tensors have a part of a GPU's memory at most; more is out of memory.

    Args:
        fraction: of all memory of the GPU, from 0 to 1.
        device: which GPU; the current one without it.

    Raises:
        TypeError: if it is not a float.
        ValueError: if it is out of range.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = gpu_index(device)
    total = mem_get_info(index)[1]
    _C._cuda_limit_memory(index, int(total * fraction))
    _fractions[index] = fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Returns what set_per_process_memory_fraction was told.

    Args:
        device: which GPU; the current one without it.
    """
    return _fractions.get(gpu_index(device), 1.0)


def get_allocator_backend() -> str:
    """Returns "cudaMallocAsync": blocks come from the driver's pools, and small ones are kept.

    Example:
        >>> torch.cuda.get_allocator_backend()
        'cudaMallocAsync'
    """
    return "cudaMallocAsync"


# Memory by hand

_handed_out: dict[int, int] = {}  # blocks by address


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Returns the address of uninitialized memory, for other libraries.

    Args:
        size: bytes.
        device: which GPU; the current one without it.
        stream: the stream that uses it, or its handle; the current one without it.

    Raises:
        OutOfMemoryError: when there is not enough.
    """
    index = gpu_index(device)
    if stream is None:
        stream = _C._cuda_current_stream(index)
    handle = stream if isinstance(stream, int) else stream.cuda_stream
    block = _C._cuda_allocate(size, index, handle)
    address = _C._cuda_block_address(block)
    if address:
        _handed_out[address] = block
    return address


def caching_allocator_delete(mem_ptr: int) -> None:
    """Frees memory.

    Args:
        mem_ptr: what caching_allocator_alloc returned.

    Raises:
        RuntimeError: for another address.
    """
    if mem_ptr == 0:
        return
    if mem_ptr not in _handed_out:
        raise RuntimeError(
            f"caching_allocator_delete: invalid device pointer: {mem_ptr:#x}. Pass what "
            "caching_allocator_alloc returned, once."
        )
    _C._cuda_free(_handed_out.pop(mem_ptr))


class MemPool:
    """Memory of a GPU that only the tensors made within use_mem_pool are given.

    It is returned to the driver when neither the pool nor a tensor of it is left.

    Args:
        allocator: must be None; the driver's memory is used.
        use_on_oom: accepted; others never take memory of the pool.
        no_split: accepted.
    """

    def __init__(
        self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        if allocator is not None:
            raise NotImplementedError("MemPool: other allocators are not supported. Leave it out.")
        self._pool = _C._CudaPool()

    @property
    def id(self) -> tuple[int, int]:
        """Its name, which captures of CUDA graphs take as their pool."""
        return self._pool.id()

    @property
    def allocator(self) -> None:
        """None: the driver's."""

    def use_count(self) -> int:
        """Returns how many blocks, graphs and threads use it, and itself."""
        return self._pool.use_count()

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Returns the part of memory_snapshot that is about this pool."""
        return memory_snapshot(self.id, include_traces)


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """A context in which tensors that this thread makes on a GPU have memory of a pool.

    Args:
        pool: the pool; contexts of one GPU may not be nested.
        device: which GPU; the current one without it.
    """
    index = gpu_index(device)
    pool._pool.use(index)
    try:
        yield
    finally:
        _C._cuda_leave_pool(index)
