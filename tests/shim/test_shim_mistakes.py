"""The mistakes that the CPU shim is there to find are found, and said where they are."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shim.fake_driver import (
    ILLEGAL_ADDRESS,
    INVALID_HANDLE,
    INVALID_VALUE,
    LAUNCH_FAILED,
    MISALIGNED_ADDRESS,
    OUT_OF_MEMORY,
    OUT_OF_RESOURCES,
    POKE,
    CompileError,
    Driver,
    fails,
)

MAX_DYNAMIC_SHARED = 8


def test_read_behind_dynamic_shared_memory_is_caught(cuda: Driver, capfd: Any) -> None:
    text = """extern "C" __global__ void k(float* x) {
      extern __shared__ float values[];
      values[threadIdx.x] = x[threadIdx.x];
      x[threadIdx.x] = values[threadIdx.x + 1];
    }"""
    function = cuda.kernel(text)
    with fails(ILLEGAL_ADDRESS):
        cuda.launch(function, 1, 32, cuda.allocate(128), shared=128)
    assert "after the end of the dynamic shared memory" in capfd.readouterr().err


@pytest.mark.parametrize(("at", "write"), [(8, 0), (8, 1), (100, 1), (-2000, 1), (1 << 28, 0)])
def test_access_out_of_bounds_is_caught(cuda: Driver, capfd: Any, at: int, write: int) -> None:
    x = cuda.allocate(32)
    with fails(ILLEGAL_ADDRESS):
        cuda.launch(cuda.kernel(POKE), 1, 1, x, c_int(at), c_int(write))
    message = capfd.readouterr().err
    assert "kernel k, block (0, 0, 0): thread (0, 0, 0) touches address" in message
    if 0 < at < 1000:
        assert f"{4 * at - 32} bytes after the end of the 32 bytes at {x:#x}" in message
    cuda.launch(cuda.kernel(POKE), 1, 1, x, c_int(7), c_int(1))
    assert cuda.to_host(x, 8)[7] == 1


@pytest.mark.parametrize("at", [3, -1])
def test_write_into_the_slack_of_an_allocation_is_caught(cuda: Driver, capfd: Any, at: int) -> None:
    x = cuda.allocate(12)
    with fails(ILLEGAL_ADDRESS):
        cuda.launch(cuda.kernel(POKE), 1, 1, x, c_int(at), c_int(1))
    assert "writes next to the 12 bytes" in capfd.readouterr().err


def test_guard_in_front_catches_reads_before_the_start(
    cuda: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUSHLIGHT_SHIM_GUARD", "front")
    x = cuda.allocate(12)
    with fails(ILLEGAL_ADDRESS):
        cuda.launch(cuda.kernel(POKE), 1, 1, x, c_int(-1), c_int(0))


def test_use_after_free_is_caught(cuda: Driver) -> None:
    x = cuda.allocate(4096)
    cuda.free(x)
    with fails(ILLEGAL_ADDRESS):
        cuda.launch(cuda.kernel(POKE), 1, 1, x, c_int(0), c_int(1))
    with fails(INVALID_VALUE):
        cuda.free(x)
    with fails(INVALID_VALUE):
        cuda.to_host(x, 1)


@pytest.mark.parametrize(
    ("access", "code"),
    [
        ("reinterpret_cast<float4*>(x + 1)->x = 1", MISALIGNED_ADDRESS),
        ("__shared__ float tile[4]; tile[at] = 1; x[0] = tile[at]", MISALIGNED_ADDRESS),
        ("x[0] = at / (at - 4)", LAUNCH_FAILED),
        ("__trap()", LAUNCH_FAILED),
    ],
)
def test_other_faults(cuda: Driver, access: str, code: int) -> None:
    text = f"""extern "C" __global__ void k(float* x, int at) {{ {access}; }}"""
    with fails(code):
        cuda.launch(cuda.kernel(text), 1, 1, cuda.allocate(64), c_int(4))


def test_stack_overflow_is_caught(cuda: Driver, capfd: Any) -> None:
    text = """__device__ int deep(volatile int* x, int n) {
      volatile char frame[512];
      frame[n % 512] = 1;
      return n == 0 ? 0 : deep(x, n - 1) + frame[n % 512] + *x;
    }
    extern "C" __global__ void k(int* x, int n) { x[0] = deep(x, n); }"""
    with fails(ILLEGAL_ADDRESS):
        cuda.launch(cuda.kernel(text), 1, 1, cuda.allocate(4), c_int(100000))
    assert "below its stack" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("if (threadIdx.x < 7) __syncthreads();", "(7, 0, 0) has left the kernel"),
        ("if (threadIdx.x >= 40) return;\n__syncthreads();", "(40, 0, 0) has left the kernel"),
        ("if (threadIdx.x < 32) __syncthreads();\nelse __syncthreads();", "barrier in line 3"),
        ("if (threadIdx.x != 5) __syncwarp();", "waits in line 2 for the lanes 0xffffffff"),
        ("if (threadIdx.x % 2) __syncwarp();\nelse __syncthreads();", "barrier in line 3"),
        ("__shfl_sync(0xffffu, 1, 0);", "(16, 0, 0) waits in line 2 for the lanes 0x0000ffff"),
    ],
)
def test_threads_that_do_not_meet_are_reported(
    cuda: Driver, capfd: Any, body: str, said: str
) -> None:
    function = cuda.kernel(f"""extern "C" __global__ void k() {{\n{body}\n}}""")
    with fails(LAUNCH_FAILED):
        cuda.launch(function, 1, 64)
    message = capfd.readouterr().err
    assert "kernel k, block (0, 0, 0): the threads do not meet" in message
    assert said in message
    cuda.launch(cuda.kernel(POKE), 1, 1, cuda.allocate(4), c_int(0), c_int(1))


def test_compile_error_stands_in_the_log(cuda: Driver) -> None:
    text = 'extern "C" __global__ void k(float* x) {\n  x[0] = unknown;\n}'
    with pytest.raises(CompileError, match=r"test\.cu\(2\): error: .unknown. was not declared"):
        cuda.compile(text)


@pytest.mark.parametrize(
    "text",
    [
        "#include <vector>",
        '__device__ int f(); extern "C" __global__ void k(int* x) { *x = f(); }',
        'extern __shared__ int s[]; extern "C" __global__ void k(int* x) { *x = s[0]; }',
    ],
)
def test_what_nvrtc_lacks_does_not_compile(cuda: Driver, text: str) -> None:
    with pytest.raises(CompileError):
        cuda.compile(text)


def test_unknown_option_is_refused(cuda: Driver) -> None:
    cuda.compile(POKE, "--fmad=false", "-arch=sm_80", "-default-device", "--use_fast_math")
    with pytest.raises(CompileError, match="--fast-please"):
        cuda.compile(POKE, "--fast-please")


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [
        (0, 1, 0),
        (1, 0, 0),
        (1, 1025, 0),
        (1, (32, 64, 1), 0),
        (1, (1, 1, 65), 0),
        ((1, 65536, 1), 1, 0),
        (1, 1, 49153),
    ],
)
def test_launch_limits(cuda: Driver, grid: Any, block: Any, shared: int) -> None:
    function = cuda.kernel('extern "C" __global__ void k() {}')
    with fails(INVALID_VALUE):
        cuda.launch(function, grid, block, shared=shared)


def test_more_dynamic_shared_memory_is_had_by_asking(cuda: Driver) -> None:
    function = cuda.kernel('extern "C" __global__ void k() {}')
    cuda("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, 100 << 10)
    cuda.launch(function, 1, 1, shared=100 << 10)
    with fails(INVALID_VALUE):
        cuda.launch(function, 1, 1, shared=(100 << 10) + 1)
    with fails(INVALID_VALUE):
        cuda("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, 228 << 10)


def test_memory_is_limited_and_accounted_for(cuda: Driver) -> None:
    free, total, pool, used = c_size_t(), c_size_t(), c_void_p(), c_uint64()
    cuda("cuDeviceGetDefaultMemPool", byref(pool), 0)
    release_threshold, none = 4, c_uint64(0)  # other tests may have told the pool to keep memory
    cuda("cuMemPoolSetAttribute", pool, release_threshold, byref(none))
    cuda("cuMemGetInfo_v2", byref(free), byref(total))
    assert total.value == 2 << 30
    with fails(OUT_OF_MEMORY):
        cuda.allocate(total.value + 1)
    cuda("cuMemPoolGetAttribute", pool, 7, byref(used))
    before = used.value
    memory = cuda.allocate(1 << 30)
    cuda("cuMemPoolGetAttribute", pool, 7, byref(used))
    assert used.value == before + (1 << 30)
    with fails(OUT_OF_MEMORY):  # also where nothing else is in use
        cuda.allocate(total.value - (1 << 30) + 1)
    cuda.free(memory)
    cuda("cuCtxSynchronize")
    after = c_size_t()
    cuda("cuMemGetInfo_v2", byref(after), byref(total))
    assert after.value >= free.value


def test_devices_do_not_reach_each_other(cuda: Driver) -> None:
    count, first, second, stream = c_int(), c_void_p(), c_void_p(), c_void_p()
    cuda("cuDeviceGetCount", byref(count))
    assert count.value == 2
    function, x = cuda.kernel(POKE), cuda.to_device(np.ones(4, np.float32))
    cuda("cuStreamCreateWithPriority", byref(stream), 1, 0)
    cuda("cuCtxGetCurrent", byref(first))
    cuda("cuDevicePrimaryCtxRetain", byref(second), 1)
    cuda("cuCtxSetCurrent", second)
    try:
        with fails(INVALID_HANDLE):
            cuda.launch(function, 1, 1, x, c_int(0), c_int(1))
        with fails(INVALID_HANDLE):
            cuda("cuStreamSynchronize", stream)
        with fails(ILLEGAL_ADDRESS):
            cuda.launch(cuda.kernel(POKE), 1, 1, x, c_int(0), c_int(1))
        y = cuda.allocate(16)
        pointers = (c_uint64(y), second, c_uint64(x), first)
        cuda("cuMemcpyPeerAsync", *pointers, c_size_t(16), None)
        assert cuda.to_host(y, 4).tolist() == [1, 1, 1, 1]
    finally:
        cuda("cuCtxSetCurrent", first)


def test_host_code_cannot_reach_device_memory() -> None:
    program = f"""
    import ctypes, sys
    sys.path.insert(0, {str(Path(__file__).parents[1])!r})
    from shim.fake_driver import Driver
    address = Driver().allocate(64)
    print("allocated", flush=True)
    print(ctypes.c_int.from_address(address).value)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True)
    assert done.returncode != 0
    assert done.stdout == b"allocated\n"


def test_launch_bounds_hold(cuda: Driver) -> None:
    text = 'extern "C" __global__ void __launch_bounds__(2 * (64 + 64), 3) k() {}'
    function = cuda.kernel(text)
    cuda.launch(function, 1, 256)
    with fails(OUT_OF_RESOURCES):
        cuda.launch(function, 1, 257)
