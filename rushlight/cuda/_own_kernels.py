"""Kernels of one's own, compiled from a text by NVRTC when a program runs."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import _C

__all__ = ["CudaKernel", "compile_kernel"]


class CudaKernel:
    """A kernel that was compiled by `torch.cuda._compile_kernel`; a call queues it."""

    def __init__(self, kernel: _C._CudaKernel) -> None:
        self._kernel = kernel

    def __call__(
        self,
        grid: Sequence[int] = (1, 1, 1),
        block: Sequence[int] = (1, 1, 1),
        args: Sequence[Any] | None = None,
        shared_mem: int = 0,
        stream: Any = None,
    ) -> None:
        """Queues the kernel.

        Args:
            grid: the numbers of blocks.
            block: the numbers of threads in a block.
            args: a CUDA or pinned tensor, which is the address of its first element, an int, which
                is an int of C, a float, which is a double, a bool, a number of NumPy or ctypes of
                the parameter's own type, or the bytes of one.
            shared_mem: bytes of dynamic shared memory, up to what the device has.
            stream: where to queue it; the current one unless given.

        Raises:
            TypeError: for another argument.
            ValueError: for a tensor in the memory of the CPU.
            OverflowError: for an int that is no int of C.
            RuntimeError: if the driver refuses the launch.
        """
        arguments = [_bytes_of(arg, i) for i, arg in enumerate(args or ())]
        with rl.cuda.stream(stream):
            self._kernel.launch(_three(grid), _three(block), shared_mem, arguments)

    def set_shared_memory_config(self, shared_mem_bytes: int) -> None:
        """Has no effect: a launch asks for the memory that it is given.

        Args:
            shared_mem_bytes: the dynamic shared memory of later launches.
        """


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z


def _bytes_of(arg: Any, place: int) -> bytes:
    """The value of an argument, as the kernel finds it."""
    if isinstance(arg, rl.Tensor):
        if not arg.is_cuda and not arg.is_pinned():
            raise ValueError(
                "All tensor arguments must be CUDA tensors or pinned CPU tensors, but "
                f"args[{place}] is on {arg.device}."
            )
        return struct.pack("P", arg.data_ptr())
    if isinstance(arg, bool):
        return struct.pack("?", arg)
    if isinstance(arg, int):
        if not -(2**31) <= arg < 2**31:
            raise OverflowError(
                f"args[{place}] is {arg}, which is no int of C. Pass a parameter of another type "
                "as a number of NumPy, such as numpy.int64."
            )
        return struct.pack("i", arg)
    if type(arg) is float:
        return struct.pack("d", arg)
    try:
        return memoryview(arg).tobytes()
    except TypeError:
        raise TypeError(f"Unsupported argument type: {type(arg)}") from None


def compile_kernel(
    kernel_source: str,
    kernel_name: str,
    compute_capability: str | None = None,
    cuda_include_dirs: Sequence[str] | None = None,
    nvcc_options: Sequence[str] | None = None,
) -> CudaKernel:
    """Compiles a kernel in CUDA C++ from its text; known as `torch.cuda._compile_kernel`.

    Nothing of Rushlight is in the text, and nothing records what the kernel does: give it gradients
    by autograd.Function or library.custom_op.

    Args:
        kernel_source: the text, with a function that is marked __global__.
        kernel_name: the function, or an instance of a template, such as "add<float>".
        compute_capability: "90" for sm_90; that of the current device unless given.
        cuda_include_dirs: folders of headers.
        nvcc_options: further options of NVRTC, such as "-DN=3" or "--use_fast_math".

    Raises:
        RuntimeError: without a GPU, or if it does not compile, with what the compiler said.

    Example:
        >>> text = '''
        ... __global__ void scale(float* x, float factor, int n) {
        ...   int i = blockIdx.x * blockDim.x + threadIdx.x;
        ...   if (i < n) x[i] *= factor;
        ... }'''
        >>> import numpy
        >>> if torch.cuda.is_available():
        ...     scale = torch.cuda._compile_kernel(text, "scale")
        ...     x = torch.ones(1000, device="cuda")
        ...     scale(grid=(4,), block=(256,), args=[x, numpy.float32(3), x.numel()])
        ...     assert x.sum() == 3000
    """
    if compute_capability is None:
        major, minor = rl.cuda.get_device_capability()
        compute_capability = f"{major}{minor}"
    options = ["--std=c++20", *(f"-I{path}" for path in cuda_include_dirs or ())]
    options += nvcc_options or ()
    arch = f"sm_{compute_capability}"
    return CudaKernel(_C._cuda_own_kernel(kernel_source, kernel_name, arch, options))
