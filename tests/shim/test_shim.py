"""Kernels give CUDA's results on the CPU shim."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest
from shim.fake_driver import INVALID_HANDLE, NOT_FOUND, Driver, fails

ADD = """
extern "C" __global__ void k(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
"""


@pytest.mark.parametrize("n", [1, 31, 255, 256, 257, 1000])
def test_vector_add_writes_all_elements_and_no_more(cuda: Driver, n: int) -> None:
    a, b = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
    out = cuda.allocate(4 * n)
    cuda.launch(
        cuda.kernel(ADD), -(-n // 256), 256, cuda.to_device(a), cuda.to_device(b), out, c_int(n)
    )
    np.testing.assert_array_equal(cuda.to_host(out, n), a + b)


def test_new_memory_holds_nan(cuda: Driver) -> None:
    assert np.isnan(cuda.to_host(cuda.allocate(400), 100)).all()


REDUCE = """
template <class T> __device__ T warp_sum(T value) {
  #pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(~0u, value, offset);
  return value;
}
template <class T> __device__ T block_sum(T value) {
  __shared__ T partial[32];
  int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  value = warp_sum(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / warpSize ? partial[lane] : T(0);
  return warp == 0 ? warp_sum(value) : value;
}
extern "C" __global__ void __launch_bounds__(256) k(const Element* x, Element* sums, int n) {
  Element sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += x[i];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
"""


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("int", np.int32),
        ("unsigned", np.uint32),
        ("float", np.float32),
        ("double", np.float64),
        ("long long", np.int64),
    ],
)
def test_block_reduction_with_shuffles_and_shared_memory(
    cuda: Driver, name: str, dtype: Any
) -> None:
    x, blocks = np.arange(5000).astype(dtype), 3
    sums = cuda.allocate(x.itemsize * blocks)
    function = cuda.kernel(
        REDUCE, "k", f"-DElement={name}", "--std=c++17", "--gpu-architecture=sm_90"
    )
    cuda.launch(function, blocks, 256, cuda.to_device(x), sums, c_int(x.size))
    assert cuda.to_host(sums, blocks, dtype).sum() == x.sum()


def run_one_warp(cuda: Driver, expression: str, dtype: Any = np.int32, threads: int = 32) -> Any:
    names = {np.int32: "int", np.float64: "double", np.float32: "float", np.uint32: "unsigned"}
    text = f"""extern "C" __global__ void k({names[dtype]}* out) {{
      int lane = threadIdx.x;
      out[lane] = {expression};
    }}"""
    out = cuda.allocate(np.dtype(dtype).itemsize * threads)
    cuda.launch(cuda.kernel(text), 1, threads, out)
    return cuda.to_host(out, threads, dtype)


LANES = np.arange(32)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("__shfl_sync(~0u, lane, 5)", np.full(32, 5)),
        ("__shfl_sync(~0u, lane, 1, 8)", LANES // 8 * 8 + 1),
        ("__shfl_up_sync(~0u, lane, 3)", np.where(LANES >= 3, LANES - 3, LANES)),
        ("__shfl_up_sync(~0u, lane, 1, 4)", np.where(LANES % 4 >= 1, LANES - 1, LANES)),
        ("__shfl_down_sync(~0u, lane, 2)", np.where(LANES < 30, LANES + 2, LANES)),
        ("__shfl_xor_sync(~0u, lane, 7)", LANES ^ 7),
        ("__shfl_xor_sync(~0u, lane, 16, 16)", np.where(LANES < 16, LANES, LANES - 16)),
        ("__ballot_sync(~0u, lane % 3 == 0)", np.full(32, 0x49249249)),
        ("__any_sync(~0u, lane == 9)", np.full(32, 1)),
        ("__all_sync(~0u, lane != 9)", np.full(32, 0)),
        ("__match_any_sync(~0u, lane / 16)", np.where(LANES < 16, 0xFFFF, 0xFFFF0000)),
        ("lane < 4 ? __shfl_sync(0xfu, lane, 2) : -1", np.where(LANES < 4, 2, -1)),
        ("__syncthreads_count(lane < 7)", np.full(32, 7)),
        ("__syncthreads_or(lane == 3) + 2 * __syncthreads_and(lane < 31)", np.full(32, 1)),
        ("__popc(lane)", [i.bit_count() for i in range(32)]),
        ("__clz(lane)", [32 - i.bit_length() for i in range(32)]),
        ("__float2int_rn(lane * 0.5f)", np.rint(LANES * 0.5)),
        ("__float2int_rz(lane == 0 ? NAN_F : 1e20f * lane)", np.where(LANES == 0, 0, 2**31 - 1)),
        ("max(lane, 9) + min(-1, lane)", np.maximum(LANES, 9) - 1),
        ("__brev(lane) >> 27", [int(f"{i:05b}"[::-1], 2) for i in range(32)]),
    ],
)  # fmt: skip
def test_words_of_cuda(cuda: Driver, expression: str, expected: Any) -> None:
    expression = expression.replace("NAN_F", "__int_as_float(0x7fc00000)")
    result = run_one_warp(cuda, expression)
    np.testing.assert_array_equal(result.view(np.uint32), np.asarray(expected).astype(np.uint32))


def test_functions_of_the_library(cuda: Driver) -> None:
    special = pytest.importorskip("scipy.special")
    x = (np.arange(64) + 0.5) / 64
    cases: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "erfinv(x)": special.erfinv,
        "erfinv(x * 1e-9)": lambda x: special.erfinv(x * 1e-9),
        "erfcinv(2 * x)": lambda x: special.erfcinv(2 * x),
        "erfcinv(pow(x, 100))": lambda x: special.erfcinv(x**100),
        "normcdf(4 * x - 2)": lambda x: special.ndtr(4 * x - 2),
        "normcdfinv(x)": special.ndtri,
        "lgamma(x)": special.gammaln,
        "rsqrt(x)": lambda x: 1 / np.sqrt(x),
        "sinpi(x * 8) + cospi(x * 8)": lambda x: np.sin(np.pi * x * 8) + np.cos(np.pi * x * 8),
    }
    for expression, reference in cases.items():
        text = f"double x = (lane + 0.5) / 64; return {expression};"
        result = run_one_warp(cuda, f"[&] {{ {text} }}()", np.float64, threads=64)
        np.testing.assert_allclose(result, reference(x), rtol=4e-15, atol=4e-15, err_msg=expression)


def test_atomics(cuda: Driver) -> None:
    text = """extern "C" __global__ void k(int* sums, float* total, unsigned long long* wide) {
      atomicAdd(&sums[threadIdx.x % 3], 1);
      atomicMax(&sums[3], int(blockIdx.x));
      atomicMin(&sums[4], -int(threadIdx.x));
      int old = sums[5];
      for (int seen; (seen = atomicCAS(&sums[5], old, old + 2)) != old; old = seen) {}
      atomicAdd(total, 0.5f);
      atomicAdd(wide, 1ull << 32);
    }"""
    sums = cuda.to_device(np.zeros(6, np.int32))
    total, wide = cuda.to_device(np.zeros(1, np.float32)), cuda.to_device(np.zeros(1, np.uint64))
    cuda.launch(cuda.kernel(text), 4, 96, sums, total, wide)
    assert cuda.to_host(sums, 6, np.int32).tolist() == [128, 128, 128, 3, -95, 768]
    assert cuda.to_host(total, 1)[0] == 192
    assert cuda.to_host(wide, 1, np.uint64)[0] == 384 << 32


REVERSE_IN_SHARED = """
extern "C" __global__ void __launch_bounds__(1024) k(float* x) {
  extern __shared__ __align__(16) char shared[];
  float* values = reinterpret_cast<float*>(shared);
  unsigned i = threadIdx.y * blockDim.x + threadIdx.x, n = blockDim.x * blockDim.y;
  values[i] = x[i];
  __syncthreads();
  x[i] = values[n - 1 - i];
}
"""


def test_dynamic_shared_memory_and_two_dimensions(cuda: Driver) -> None:
    x = np.arange(1024, dtype=np.float32)
    memory = cuda.to_device(x)
    function = cuda.kernel(REVERSE_IN_SHARED)
    cuda.launch(function, 1, (64, 16, 1), memory, shared=4096)
    np.testing.assert_array_equal(cuda.to_host(memory, 1024), x[::-1])


def test_shared_memory_is_poisoned_for_each_block(cuda: Driver) -> None:
    text = """extern "C" __global__ void k(float* out) {
      __shared__ float once;
      extern __shared__ float more[];
      out[2 * blockIdx.x] = once;
      out[2 * blockIdx.x + 1] = more[0];
      once = more[0] = 1;
    }"""
    out = cuda.allocate(24)
    cuda.launch(cuda.kernel(text), 3, 1, out, shared=4)
    assert np.isnan(cuda.to_host(out, 6)).all()


def test_name_expressions_headers_and_macros(cuda: Driver) -> None:
    text = """#include "twice.h"
    #define KERNEL(name) extern "C" __global__ void name
    KERNEL(plain)(int* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }
    namespace ours {
    template <class T, int N> __global__ void scaled(T* x) { x[threadIdx.x] *= N; }
    }"""
    expression = "ours::scaled<int, 5>"
    image, lowered = cuda.compile(
        text,
        expressions=(expression,),
        headers={"twice.h": "__device__ inline int twice(int x) { return 2 * x; }"},
    )
    x = cuda.to_device(np.arange(4, dtype=np.int32))
    cuda.launch(cuda.load(image, "plain"), 1, 4, x)
    cuda.launch(cuda.load(image, lowered[0]), 1, 4, x)
    assert cuda.to_host(x, 4, np.int32).tolist() == [0, 10, 20, 30]
    with fails(NOT_FOUND):
        cuda.load(image, "scaled")


def test_structs_by_value(cuda: Driver) -> None:
    class Sizes(ctypes.Structure):
        _fields_ = [("n", c_int), ("strides", ctypes.c_longlong * 3), ("scale", c_float)]

    text = """struct Sizes { int n; long long strides[3]; float scale; };
    extern "C" __global__ void k(Sizes sizes, float* out) {
      out[0] = sizes.n + sizes.strides[2] * sizes.scale;
    }"""
    out = cuda.allocate(4)
    cuda.launch(cuda.kernel(text), 1, 1, Sizes(3, (1, 2, 10), 0.5), out)
    assert cuda.to_host(out, 1)[0] == 8


def test_memory_behind_pointers_in_memory_is_reached(cuda: Driver) -> None:
    text = (
        """extern "C" __global__ void k(float** lists) { lists[threadIdx.x][0] = threadIdx.x; }"""
    )
    tensors = [cuda.allocate(4) for _ in range(5)]
    cuda.launch(cuda.kernel(text), 1, 5, cuda.to_device(np.array(tensors, np.uint64)))
    assert [cuda.to_host(tensor, 1)[0] for tensor in tensors] == [0, 1, 2, 3, 4]


def test_events_measure_time(cuda: Driver) -> None:
    start, end, milliseconds = c_void_p(), c_void_p(), c_float()
    for event in (start, end):
        cuda("cuEventCreate", byref(event), 0)
    with fails(INVALID_HANDLE):
        cuda("cuEventElapsedTime", byref(milliseconds), start, end)
    cuda("cuEventRecord", start, None)
    time.sleep(0.01)
    cuda("cuEventRecord", end, None)
    cuda("cuEventElapsedTime", byref(milliseconds), start, end)
    assert milliseconds.value >= 10


def test_memset(cuda: Driver) -> None:
    x = cuda.allocate(40)
    cuda("cuMemsetD32Async", c_uint64(x), 0x3F800000, c_size_t(10), None)
    cuda("cuMemsetD8Async", c_uint64(x), 0, c_size_t(20), None)
    assert cuda.to_host(x, 10).tolist() == [0] * 5 + [1] * 5


def test_reverse_order_shows_what_depends_on_it(
    cuda: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """extern "C" __global__ void k(int* last) {
      *last = blockIdx.x * blockDim.x + threadIdx.x;
    }"""
    function, last = cuda.kernel(text), cuda.allocate(4)
    cuda.launch(function, 3, 40, last)
    assert cuda.to_host(last, 1, np.int32)[0] == 119
    monkeypatch.setenv("RUSHLIGHT_SHIM_ORDER", "reverse")
    cuda.launch(function, 3, 40, last)
    assert cuda.to_host(last, 1, np.int32)[0] == 0
    test_block_reduction_with_shuffles_and_shared_memory(cuda, "float", np.float32)
