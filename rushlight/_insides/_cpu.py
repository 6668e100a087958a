"""Which instructions the processor has, as Linux tells."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def _flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return frozenset(flags.partition(":")[2].split())


def _is_avx2_supported() -> bool:
    return "avx2" in _flags()


def _is_avx512_supported() -> bool:
    return "avx512f" in _flags()


def _is_vnni_supported() -> bool:
    return "avx512_vnni" in _flags()


def _is_amx_tile_supported() -> bool:
    return "amx_tile" in _flags()
