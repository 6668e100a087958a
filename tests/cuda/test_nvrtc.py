"""NVRTC from PyPI, which compiles kernels for any GPU on a machine without one."""

import os
import stat
from pathlib import Path

import pytest

from rushlight import _C
from rushlight.cuda import precompile

ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
KERNEL = """
extern "C" __global__ void add_one(float* x, long n) {
  long i = long(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
"""


def nvrtc_is_missing() -> bool:
    try:
        _C._nvrtc_version()
    except RuntimeError:
        return True
    return False


needs_nvrtc = pytest.mark.skipif(
    nvrtc_is_missing(), reason="NVRTC is not installed: pip install rushlight[cuda]"
)


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_kernel_compiles_without_a_gpu(arch: str) -> None:
    assert _C._cuda_compile_text("add_one", KERNEL, arch) > 500


@needs_nvrtc
def test_an_architecture_newer_than_nvrtc_gets_ptx() -> None:
    assert _C._cuda_compile_text("add_one", KERNEL, "sm_999") > 500


@needs_nvrtc
def test_every_kernel_compiles() -> None:
    compiled, failures = precompile.precompile(ARCHITECTURES)
    assert not failures, "\n".join(failures)
    assert compiled == len(ARCHITECTURES) * len(_C._cuda_kernels())


@needs_nvrtc
def test_a_compile_error_names_the_kernel_and_keeps_its_text(run_python, tmp_path: Path) -> None:
    message = run_python(
        """
        from rushlight import _C
        try:
            _C._cuda_compile_text("softplus<float>", "int x = 0;\\nint y = z;\\n", "sm_90")
        except RuntimeError as error:
            print(error)
        """
    )
    kept = tmp_path / "cache" / "softplus_float_.cu"
    assert message == (
        f"softplus<float>: NVRTC {_C._nvrtc_version()} failed for sm_90; "
        f"the text is kept at {kept}; "
        'first error: softplus<float>.cu(2): error: identifier "z" is undefined.\n'
    )
    assert kept.read_text() == "int x = 0;\nint y = z;\n"


@needs_nvrtc
def test_an_unknown_architecture_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"add_one: NVRTC .* failed for gcn; .*architecture"):
        _C._cuda_compile_text("add_one", KERNEL, "gcn")


@needs_nvrtc
def test_precompile_reports_and_fills_the_cache(run_python, tmp_path: Path) -> None:
    program = """
    import sys
    from rushlight.cuda.precompile import main
    sys.exit(main(sys.argv[1:]))
    """
    count = len(_C._cuda_kernels())
    cache = tmp_path / "cache"
    said = run_python(program, "--arch", "sm_90", "--no-cache")
    assert said.startswith(f"{count} kernels for sm_90 compiled by NVRTC ")
    assert not list(cache.glob("*.kernel"))
    said = run_python(program, "--arch", "sm_90")
    assert said.endswith(f"Cache: {cache}\n")
    assert len(list(cache.glob("*.kernel"))) == count
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_missing_nvrtc_is_told_with_the_command_that_helps(run_python) -> None:
    said = run_python(
        """
        from rushlight import _C
        try:
            _C._nvrtc_version()
        except RuntimeError as error:
            print(error)
        """,
        RUSHLIGHT_NVRTC="/nowhere/libnvrtc.so",
    )
    assert said == (
        "NVRTC: /nowhere/libnvrtc.so was not found. Looked in: the system's library path. "
        "Install it with: pip install rushlight[cuda]\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_cache_of_another_user_is_not_used(run_python, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    os.chown(cache, 12345, -1)
    said = run_python("from rushlight import _C; print(_C._cuda_cache()[1])")
    assert said == f"{cache} belongs to another user\n"
