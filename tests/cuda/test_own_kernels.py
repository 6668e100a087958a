"""Kernels that a program compiles itself, on the shim."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is neither GPU nor shim"
)

SCALE = """
template <class T, class I>
__global__ void scale(T* x, T factor, I n) {
  I i = I(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
"""
REVERSE = """
extern "C" __global__ void reverse(const float* from, float* to, int n, bool negate, double shift) {
  extern __shared__ float row[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = from[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    to[i] = (negate ? -row[n - 1 - i] : row[n - 1 - i]) + shift;
}
"""


@pytest.mark.parametrize(
    ("types", "dtype", "factor", "count"),
    [
        ("float, int", torch.float32, np.float32(3), 1000),
        ("double, int", torch.float64, 3.0, 1000),
        ("int, long long", torch.int32, 3, np.int64(1000)),
        ("float, long long", torch.float32, ctypes.c_float(3), ctypes.c_longlong(1000)),
    ],
)
def test_arguments_are_what_the_kernel_takes(
    types: str, dtype: torch.dtype, factor: Any, count: Any
) -> None:
    kernel = torch.cuda._compile_kernel(SCALE, f"scale<{types}>")
    x = torch.arange(1000, device="cuda").to(dtype)
    expected = x * 3
    kernel(grid=(4, 1, 1), block=(256, 1, 1), args=[x, factor, count])
    assert torch.equal(x, expected)


def test_shared_memory_streams_and_short_grids() -> None:
    kernel = torch.cuda._compile_kernel(REVERSE, "reverse", nvcc_options=["-DUNUSED=1"])
    x, y = torch.randn(2000, device="cuda"), torch.zeros(2000, device="cuda")
    kernel.set_shared_memory_config(8000)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    kernel(block=(128,), args=[x, y, 2000, True, 0.5], shared_mem=8000, stream=stream)
    stream.synchronize()
    assert torch.equal(y, 0.5 - x.flip(0))
    pinned = torch.zeros(2000).pin_memory()
    kernel((1,), (128,), [x, pinned, 2000, False, 0.0], shared_mem=8000)
    torch.cuda.synchronize()
    assert torch.equal(pinned, x.flip(0).cpu())


def test_mistakes_are_told() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)Kernel compilation failed.*y"):
        torch.cuda._compile_kernel("__global__ void f(float* x) { x[0] = y; }", "f")
    kernel = torch.cuda._compile_kernel(SCALE, "scale<float, int>")
    x = torch.ones(4, device="cuda")
    with pytest.raises(
        ValueError, match=r"CUDA tensors or pinned CPU tensors, but args\[0\] is on cpu"
    ):
        kernel(args=[x.cpu(), 1.0, 4])
    with pytest.raises(OverflowError, match=r"args\[2\] is 2147483648"):
        kernel(args=[x, 1.0, 2**31])
    with pytest.raises(TypeError, match="Unsupported argument type: <class 'list'>"):
        kernel(args=[x, 1.0, [4]])
    with pytest.raises(TypeError):
        kernel(grid=(-1,), args=[x, 1.0, 4])
    assert x.tolist() == [1, 1, 1, 1]
