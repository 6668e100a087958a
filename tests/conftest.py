"""Settings of all tests: without a GPU, the shim (tests/shim) plays one where it is built.

CUDA is decided on once per process, at the first question, and OpenMP reads its variables when it
is loaded, so this happens before any test imports the package.
"""

import ctypes
import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

_ROOT = Path(__file__).resolve().parents[1]
_SHIM = Path(os.environ.get("RUSHLIGHT_SHIM", _ROOT / "build" / "libcuda_shim.so"))

# Extensions that did not change need not be compiled again.
os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(_ROOT / "build" / "extensions"))

# The tests' processes share the cores: a thread that spins while it waits takes what others need.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# How long an example takes says nothing where others use the machine.
settings.register_profile("rushlight", deadline=None)
settings.load_profile("rushlight")


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


if _SHIM.exists() and not _has_driver():
    os.environ.setdefault("RUSHLIGHT_CUDA_DRIVER", str(_SHIM))
    os.environ.setdefault("RUSHLIGHT_NVRTC", str(_SHIM))
    os.environ.setdefault("RUSHLIGHT_CUSOLVER", str(_SHIM))
    os.environ.setdefault("RUSHLIGHT_CUDNN", str(_SHIM))
    os.environ.setdefault("RUSHLIGHT_CUDA_CACHING", "off")  # so that the shim sees each block
    os.environ.setdefault("RUSHLIGHT_CACHE", str(_SHIM.parent / "kernels"))


def pytest_collection_finish() -> None:
    """Takes what stays until the end, all the tests, out of what each gc.collect() walks."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("not_sanitized")
    if marker and "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip(f"under the address sanitizer {marker.args[0]}")
