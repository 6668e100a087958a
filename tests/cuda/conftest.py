"""Fixtures of the tests of rushlight.cuda: fresh processes, since each decides on CUDA once.

The shim (tests/shim) plays driver, NVRTC and GPU on the CPU.
"""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import rushlight as rl

ROOT = Path(__file__).resolve().parents[2]
SHIM = Path(os.environ.get("RUSHLIGHT_SHIM", ROOT / "build" / "libcuda_shim.so"))

RunPython = Callable[..., str]
SHIM_VARIABLES = {
    "RUSHLIGHT_CUDA_DRIVER",
    "RUSHLIGHT_NVRTC",
    "RUSHLIGHT_CUSOLVER",
    "RUSHLIGHT_CUDNN",
}  # set by tests/conftest.py


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Runs a program in a fresh process with a cache of its own; returns what it printed."""

    def run(program: str, *arguments: str, **variables: str) -> str:
        real = {k: v for k, v in os.environ.items() if k not in SHIM_VARIABLES}
        environment = {
            **real,
            "PYTHONPATH": str(ROOT),
            "RUSHLIGHT_CACHE": str(tmp_path / "cache"),
            **variables,
        }
        command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def run_on_shim(run_python: RunPython) -> RunPython:
    """The same with the shim as the GPU, and the cache of the tests' own process."""
    if not SHIM.exists():
        pytest.skip("the shim is not built: cmake --build build --target cuda_shim")

    def run(program: str, *arguments: str, **variables: str) -> str:
        settings = dict.fromkeys(SHIM_VARIABLES, str(SHIM))
        settings["RUSHLIGHT_CACHE"] = str(SHIM.parent / "kernels")
        return run_python(program, *arguments, **{**settings, **variables})

    return run


_failed = False


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    global _failed
    _failed = report.failed or (_failed and report.when != "setup")


def pytest_runtest_logfinish() -> None:
    """Ends a worker whose GPU a failed kernel has made unusable, for xdist to start another one."""
    if not _failed or "PYTEST_XDIST_WORKER" not in os.environ or not rl.cuda.is_initialized():
        return
    try:
        rl.cuda.synchronize()
    except RuntimeError as error:
        print(f"{error} The tests go on in a new process.", file=sys.stderr, flush=True)
        os._exit(1)
