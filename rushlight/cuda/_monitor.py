"""What NVIDIA's management library (NVML, part of the driver) says about a GPU."""

from __future__ import annotations

from typing import Any

from rushlight import _C
from rushlight.cuda._device import gpu_index

# The numbers of Reading in core/device/nvml.h.
_GPU_BUSY, _MEMORY_BUSY, _TEMPERATURE, _POWER, _CLOCK, _MEMORY_USED = range(6)


def utilization(device: Any = None) -> int:
    """Returns the percent of the last sample's time (up to a second) in which a kernel ran.

    Args:
        device: which GPU; the current one without it.

    Raises:
        RuntimeError: without NVML, or when it cannot tell.
    """
    return _C._nvml_read(gpu_index(device), _GPU_BUSY)


def memory_usage(device: Any = None) -> int:
    """Returns the percent of that time in which memory was read or written.

    Args:
        device: which GPU; the current one without it.

    Raises:
        RuntimeError: without NVML, or when it cannot tell.
    """
    return _C._nvml_read(gpu_index(device), _MEMORY_BUSY)


def temperature(device: Any = None) -> int:
    """Returns the temperature of the chip in degrees Celsius.

    Args:
        device: which GPU; the current one without it.

    Raises:
        RuntimeError: without NVML, or when it cannot tell.
    """
    return _C._nvml_read(gpu_index(device), _TEMPERATURE)


def power_draw(device: Any = None) -> int:
    """Returns the power that the GPU and its memory take, in milliwatts.

    Args:
        device: which GPU; the current one without it.

    Raises:
        RuntimeError: without NVML, or when it cannot tell.
    """
    return _C._nvml_read(gpu_index(device), _POWER)


def clock_rate(device: Any = None) -> int:
    """Returns the clock of the multiprocessors in MHz.

    Args:
        device: which GPU; the current one without it.

    Raises:
        RuntimeError: without NVML, or when it cannot tell.
    """
    return _C._nvml_read(gpu_index(device), _CLOCK)


def device_memory_used(device: Any = None) -> int:
    """Returns the bytes of a GPU's memory that all programs use.

    Args:
        device: which GPU; the current one without it.

    Raises:
        RuntimeError: without NVML, or when it cannot tell.
    """
    return _C._nvml_read(gpu_index(device), _MEMORY_USED)


def list_gpu_processes(device: Any = None) -> str:
    """Returns a line for each process that computes on a GPU, with the memory that it uses.

    Args:
        device: which GPU; the current one without it.

    Raises:
        RuntimeError: without NVML, or when it cannot tell.
    """
    index = gpu_index(device)
    lines = [f"GPU:{index}"]
    processes = _C._nvml_processes(index)
    if not processes:
        lines.append("no processes are running")
    for number, size in processes:
        amount = f"{size / (1 << 20):>12.3f} MB" if size >= 0 else "an unknown amount of"
        lines.append(f"process {number:>10d} uses {amount} GPU memory")
    return "\n".join(lines)
