"""What a GPU may do in another order than the shim: RUSHLIGHT_SHIM_RACES, _ORDER and _LAZY.

The shim reads the switches once, so each of these runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from shim.fake_driver import LIBRARY

# Name: the body of a kernel of 2 blocks of 64 threads, and what is said of it, if it is wrong.
KERNELS = {
    "own place": ("x[at] = at; x[at] += 1;", ""),
    "after a barrier": ("s[t] = t; __syncthreads(); x[at] = s[63 - t];", ""),
    "no barrier": ("s[t] = t; x[at] = s[63 - t];", "another warp, with no barrier between"),
    "no second barrier": (
        "s[t] = t; __syncthreads(); int y = s[63 - t]; s[t] = y; x[at] = y;",
        "another warp, with no barrier between",
    ),
    "static memory": ("__shared__ int u[64]; u[t] = t; x[at] = u[t ^ 32];", "shared memory"),
    "after __syncwarp": ("s[t] = t; __syncwarp(); x[at] = s[t ^ 1];", ""),
    "after a shuffle": (
        "s[t] = t; __shfl_sync(~0u, t, 0); x[at] = s[t ^ 1];",
        "another lane of the warp, with no __syncwarp() between",
    ),
    "other warp after __syncwarp": ("s[t] = t; __syncwarp(); x[at] = s[t ^ 32];", "another warp"),
    "read by one, written by another": (
        "int y = x[64 * blockIdx.x]; __syncwarp(); if (t == 33) x[64 * blockIdx.x] = y;",
        "has read",
    ),
    "blocks share": ("x[t] = at;", "device memory, 4 bytes, which another block has written"),
    "all write one number": ("x[0] = 7;", ""),
    "the last one writes another": ("x[0] = at < 127;", "another block"),
    "blocks read what one wrote": (
        "if (blockIdx.x == 0) x[t] = t; else x[64 + t] = x[t];",
        "block",
    ),
    "atomics": ("atomicAdd(x, 1);", ""),
    "atomics and a plain read": ("atomicAdd(x, 1); x[64 + t] = x[0];", "another lane"),
    "atomics in shared memory": (
        "if (t == 0) s[0] = 0; __syncthreads(); atomicAdd(s, 1); __syncthreads(); x[at] = s[0];",
        "",
    ),
    "bytes side by side": ("((char*)x)[at] = 1;", ""),
    "a vector over others": (
        "if (t % 2) x[at] = 1; else *(int2*)(x + at) = int2{1, 2};",
        "another lane",
    ),
}
PROLOGUE = """extern __shared__ int s[];
  int t = threadIdx.x, at = 64 * blockIdx.x + t;
"""


def run(program: str, **switches: str) -> str:
    """Runs a program with a Driver `cuda`; returns what it printed."""
    prologue = (
        "import json, sys\nimport numpy as np\nfrom shim.fake_driver import *\ncuda = Driver()\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RUSHLIGHT_SHIM_")}
    done = subprocess.run(
        [sys.executable, "-c", prologue + textwrap.dedent(program), json.dumps(KERNELS), PROLOGUE],
        env={
            **environment,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "RUSHLIGHT_SHIM": str(LIBRARY),
            **switches,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_races_are_found_and_only_races() -> None:
    said = run(
        """
        for name, (body, _) in json.loads(sys.argv[1]).items():
            function = cuda.kernel(
                'extern "C" __global__ void k(int* x) {' + sys.argv[2] + body + "}"
            )
            x = cuda.to_device(np.zeros(256, np.int32))
            print(f"<{name}>", file=sys.stderr, flush=True)
            try:
                cuda.launch(function, 2, 64, x, shared=256)
            except CudaError as error:
                assert error.code == LAUNCH_FAILED, error.code
        """,
        RUSHLIGHT_SHIM_RACES="1",
    )
    found = dict(part.split(">", 1) for part in said.split("<")[1:])
    for name, (_, wanted) in KERNELS.items():
        assert (wanted in found[name]) if wanted else not found[name].strip(), (name, found[name])


def test_every_order_runs_all_threads_once() -> None:
    orders = """
        text = '''extern "C" __global__ void k(int* x, int* turn, int n) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= n) return;
          x[i] += 1;
          turn[i] = atomicAdd(turn + n, 1);
        }'''
        n = 7 * 45
        x, turn = (cuda.to_device(np.zeros(n + 1, np.int32)) for _ in range(2))
        cuda.launch(cuda.kernel(text), 7, 45, x, turn, c_int(n))
        assert (cuda.to_host(x, n, np.int32) == 1).all()
        print(cuda.to_host(turn, n, np.int32).tolist())
        """.replace("c_int", "ctypes.c_int")
    seen = {
        order: json.loads(
            run("import ctypes\n" + textwrap.dedent(orders), RUSHLIGHT_SHIM_ORDER=order)
        )
        for order in ("forward", "reverse", "shuffle", "shuffle:1")
    }
    assert all(sorted(turns) == list(range(7 * 45)) for turns in seen.values())
    assert seen["forward"] == list(range(7 * 45)) == seen["reverse"][::-1]
    assert seen["shuffle"] != seen["shuffle:1"] != seen["forward"]


LAZY = """
import ctypes
from ctypes import byref, c_int, c_uint64, c_void_p, c_size_t
streams, events = [c_void_p() for _ in range(2)], [c_void_p() for _ in range(2)]
for stream in streams:
    cuda("cuStreamCreateWithPriority", byref(stream), 1, 0)
for event in events:
    cuda("cuEventCreate", byref(event), 2)
add = cuda.kernel('extern "C" __global__ void k(int* x, int y) { *x += y; }')
double = cuda.kernel('extern "C" __global__ void k(int* x, int) { *x *= 2; }')
x = cuda.to_device(np.zeros(1, np.int32))
cuda("cuCtxSynchronize")
"""


@pytest.mark.parametrize("ordered", [True, False])
def test_work_that_is_put_off_keeps_the_order_of_events_only(ordered: bool) -> None:
    program = f"""
    cuda.launch(add, 1, 1, x, c_int(3), stream=streams[0])
    cuda("cuEventRecord", events[0], streams[0])
    if {ordered}:
        cuda("cuStreamWaitEvent", streams[1], events[0], 0)
    cuda.launch(double, 1, 1, x, c_int(0), stream=streams[1])
    cuda("cuStreamSynchronize", streams[1])
    cuda("cuStreamSynchronize", streams[0])
    print(cuda.to_host(x, 1, np.int32)[0])
    """
    said = run(LAZY + textwrap.dedent(program), RUSHLIGHT_SHIM_LAZY="1")
    assert int(said) == (6 if ordered else 3)


def test_pinned_copies_happen_late_and_errors_come_from_who_waits() -> None:
    program = """
    pinned = c_void_p()
    cuda("cuMemAllocHost_v2", byref(pinned), c_size_t(4))
    host = ctypes.cast(pinned, ctypes.POINTER(ctypes.c_int))
    host[0] = 7
    cuda("cuMemcpyHtoDAsync_v2", c_uint64(x), pinned, c_size_t(4), streams[0])
    host[0] = 8
    cuda("cuStreamSynchronize", streams[0])
    assert cuda.to_host(x, 1, np.int32)[0] == 8
    cuda("cuMemcpyDtoHAsync_v2", pinned, c_uint64(x), c_size_t(4), streams[0])
    host[0] = 9
    cuda("cuEventRecord", events[0], streams[0])
    try:
        cuda("cuEventQuery", events[0])
    except CudaError as error:
        assert error.code == 600
    cuda("cuEventSynchronize", events[0])
    assert host[0] == 8
    cuda("cuMemFreeAsync", c_uint64(x), streams[0])
    cuda.launch(add, 1, 1, x, c_int(1), stream=streams[0])
    try:
        cuda("cuStreamSynchronize", streams[0])
    except CudaError as error:
        print(error.code)
    """
    said = run(LAZY + textwrap.dedent(program), RUSHLIGHT_SHIM_LAZY="1")
    assert "700\n" in said
