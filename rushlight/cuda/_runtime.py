"""The few functions of CUDA's runtime that programs call by hand, and its errors.

Each is made of the driver's function of the same purpose; the numbers of their errors are the same
for what can happen here.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rushlight import _C


class cudaStatus:
    """Results of the runtime's functions.

    Example:
        >>> torch.cuda.cudaStatus.SUCCESS
        0
    """

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


class CudaError(RuntimeError):
    """A function of the runtime failed.

    Args:
        code: its result.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"{_C._cuda_error_text(code)} ({code})")


class DeferredCudaCallError(Exception):
    """What was put off until CUDA is used has failed; nothing is put off here."""


def check_error(res: int) -> None:
    """Raises CudaError unless a result of the runtime says that all is well.

    Args:
        res: what a function of cudart() returned.

    Example:
        >>> torch.cuda.check_error(0)
    """
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def cudart() -> Any:
    """Returns an object with functions of CUDA's runtime, which return 0 or the number of an error.

    These are cudaProfilerStart, cudaProfilerStop, cudaHostRegister, cudaHostUnregister,
    cudaMemGetInfo, cudaGetErrorString and cudaDeviceSynchronize.

    Raises:
        RuntimeError: when CUDA cannot be used.
    """
    _C._cuda_initialize()
    return _RUNTIME


def _synchronize() -> int:
    _C._cuda_synchronize(_C._cuda_current_device())
    return cudaStatus.SUCCESS


_RUNTIME = SimpleNamespace(
    cudaError=SimpleNamespace(success=0),
    cudaProfilerStart=lambda: _C._cuda_profile(True),
    cudaProfilerStop=lambda: _C._cuda_profile(False),
    cudaHostRegister=_C._cuda_host_register,
    cudaHostUnregister=_C._cuda_host_unregister,
    cudaMemGetInfo=_C._cuda_memory_info,
    cudaGetErrorString=lambda code: _C._cuda_error_text(int(code)),
    cudaDeviceSynchronize=_synchronize,
)
