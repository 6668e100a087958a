"""Compiles all GPU kernels beforehand: python -m rushlight.cuda.precompile [--arch sm_90 ...].

It needs NVRTC, but neither a GPU nor a driver, so that an image can be built anywhere.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from rushlight import _C

DEFAULT_ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]


def default_architectures() -> list[str]:
    """Returns the architectures of the GPUs here, or common ones where there is no GPU."""
    here = [_C._cuda_properties(i) for i in range(_C._cuda_device_count())]
    return sorted({f"sm_{p['major']}{p['minor']}" for p in here}) or DEFAULT_ARCHITECTURES


def precompile(
    architectures: list[str], cached: bool = True, part: str = ""
) -> tuple[int, list[str]]:
    """Compiles all kernels for some architectures.

    Args:
        architectures: "sm_90", ...
        cached: whether to use and fill the cache of compiled kernels.
        part: what the names of the kernels have in common.

    Returns:
        How many compiled, and the messages of those that did not.
    """

    def compile_one(job: tuple[str, str]) -> str:
        name, arch = job
        try:
            _C._cuda_compile_kernel(name, arch, cached)
        except RuntimeError as error:
            return str(error)
        return ""

    jobs = [(name, arch) for arch in architectures for name in _C._cuda_kernels() if part in name]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(compile_one, jobs))
    failures = [message for message in results if message]
    return len(results) - len(failures), failures


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m rushlight.cuda.precompile", description=__doc__
    )
    parser.add_argument(
        "--arch",
        nargs="+",
        metavar="sm_90",
        help="what to compile for: the GPUs here, or, without one, sm_80 sm_90 sm_100",
    )
    parser.add_argument("--no-cache", action="store_true", help="compile all, and keep nothing")
    parser.add_argument("--filter", default="", metavar="NAME", help="kernels whose name has this")
    options = parser.parse_args(arguments)
    try:
        version = _C._nvrtc_version()
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    architectures = options.arch or default_architectures()
    start = time.perf_counter()
    compiled, failures = precompile(architectures, not options.no_cache, options.filter)
    print(*failures, sep="\n", end="\n" if failures else "")
    seconds = time.perf_counter() - start
    print(
        f"{compiled} kernels for {' '.join(architectures)} compiled by NVRTC {version} "
        f"in {seconds:.1f} s; {len(failures)} failed."
    )
    folder, disabled_because = _C._cuda_cache()
    if not options.no_cache:
        print(
            f"Nothing was cached: {disabled_because}." if disabled_because else f"Cache: {folder}"
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
