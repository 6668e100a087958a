"""The GPU: devices, streams, events and memory, as in PyTorch's torch.cuda.

Nothing of CUDA is opened by importing this; the first question to the driver opens it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._errors import OutOfMemoryError as OutOfMemoryError
from rushlight.cuda._device import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    get_sync_debug_mode,
    gpu_index,
    ipc_collect,
    is_bf16_supported,
    is_tf32_supported,
    set_device,
    set_sync_debug_mode,
)
from rushlight.cuda._monitor import (
    clock_rate,
    device_memory_used,
    list_gpu_processes,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)
from rushlight.cuda._own_kernels import compile_kernel as _compile_kernel  # noqa: F401
from rushlight.cuda._runtime import (
    CudaError,
    DeferredCudaCallError,
    check_error,
    cudart,
    cudaStatus,
)
from rushlight.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from rushlight.cuda.memory import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from rushlight.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from rushlight.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)

__all__ = [
    "is_available",
    "is_initialized",
    "init",
    "device_count",
    "current_device",
    "set_device",
    "device",
    "device_of",
    "get_device_name",
    "get_device_capability",
    "get_device_properties",
    "is_bf16_supported",
    "is_tf32_supported",
    "is_current_stream_capturing",
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "make_graphed_callables",
    "synchronize",
    "Stream",
    "StreamContext",
    "Event",
    "stream",
    "current_stream",
    "default_stream",
    "set_stream",
    "memory_allocated",
    "max_memory_allocated",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "memory_reserved",
    "max_memory_reserved",
    "mem_get_info",
    "memory_stats",
    "memory_summary",
    "empty_cache",
    "OutOfMemoryError",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "initial_seed",
    "get_rng_state",
    "get_rng_state_all",
    "set_rng_state",
    "set_rng_state_all",
    "CudaError",
    "DeferredCudaCallError",
    "ExternalStream",
    "MemPool",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "check_error",
    "clock_rate",
    "cudaStatus",
    "cudart",
    "device_memory_used",
    "get_allocator_backend",
    "get_arch_list",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "ipc_collect",
    "list_gpu_processes",
    "max_memory_cached",
    "memory_cached",
    "memory_snapshot",
    "memory_stats_as_nested_dict",
    "memory_usage",
    "power_draw",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "set_per_process_memory_fraction",
    "set_sync_debug_mode",
    "temperature",
    "use_mem_pool",
    "utilization",
    "has_half",
    "has_magma",
]


def is_available() -> bool:
    """Returns whether tensors can live on a GPU; it never raises.

    False without an NVIDIA driver, without a GPU, without NVRTC (`pip install rushlight[cuda]`),
    and in a forked child of a process that asked already whether there is a GPU.

    Example:
        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
    """
    return _C._cuda_is_available()


def is_initialized() -> bool:
    """Returns whether this process used a GPU already."""
    return _C._cuda_is_initialized()


def init() -> None:
    """Initializes the current GPU, which the first use does otherwise.

    Raises:
        RuntimeError: when CUDA cannot be used, with what is missing and what helps.
    """
    _C._cuda_initialize()


def _lazy_init() -> None:
    """init, as libraries call it."""
    init()


def _lazy_call(call: Callable[[], Any], **options: Any) -> None:
    """Runs what prepares a GPU; does nothing without one."""
    if is_available():
        call()


def synchronize(device: Any = None) -> None:
    """Waits until a GPU did all that it was asked for.

    Args:
        device: which one; the current one without it.

    Raises:
        RuntimeError: when CUDA cannot be used, or when a kernel failed.
    """
    _C._cuda_synchronize(gpu_index(device))


has_half = True  # float16 is computed with
has_magma = False  # cuSOLVER does linear algebra


def __getattr__(name: str) -> Any:
    """Imports submodules, and makes torch.cuda.FloatTensor and its kin, when asked for."""
    if name in ("amp", "comm", "nccl", "nvtx", "profiler"):
        return importlib.import_module(f"rushlight.cuda.{name}")
    if name == "_initialized":
        return is_initialized()
    if name == "default_generators":  # one generator serves all devices
        return (_C.default_generator,) * device_count()
    if name.endswith("Storage"):
        from rushlight._storage import cuda_storage_class

        return globals().setdefault(name, cuda_storage_class(name))
    if name.endswith("Tensor"):
        from rushlight._legacy import tensor_type

        return globals().setdefault(name, tensor_type(name, "cuda"))
    raise AttributeError(f"module 'rushlight.cuda' has no attribute '{name}'")
