"""NVRTC from PyPI, which compiles kernels for any GPU on a machine without one."""

import importlib.metadata
import json
import os
import re
import stat
import struct
from pathlib import Path

import pytest
from cuda.conftest import ROOT, SHIM

pytestmark = pytest.mark.not_sanitized("NVRTC does not find the second of its libraries")

ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
KEPT = str(SHIM.parent / "nvrtc")  # a cache that stays, where a text that changed is missing
REGISTERS = 65536  # of a multiprocessor
STATIC_SHARED_BYTES = (48 << 10) + 1024  # a kilobyte is the system's, from sm_90 on
KERNEL = """
extern "C" __global__ void add_one(float* x, long n) {
  long i = long(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
"""


def nvrtc_is_missing() -> bool:
    try:
        importlib.metadata.distribution("nvidia-cuda-nvrtc")
    except importlib.metadata.PackageNotFoundError:
        return True
    return False


needs_nvrtc = pytest.mark.skipif(
    nvrtc_is_missing(), reason="NVRTC is not installed: pip install rushlight[cuda]"
)

# Compiles argv[1] for argv[2], and prints the bytes of code or the error.
COMPILE = """
import sys
from rushlight import _C
try:
    print(_C._cuda_compile_text("add_one", *sys.argv[1:]))
except RuntimeError as error:
    print(error)
"""


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_kernel_compiles_without_a_gpu(run_python, arch: str) -> None:
    assert int(run_python(COMPILE, KERNEL, arch)) > 500


@needs_nvrtc
def test_an_architecture_newer_than_nvrtc_gets_ptx(run_python) -> None:
    assert int(run_python(COMPILE, KERNEL, "sm_999")) > 500


def without_run_path(library: bytes) -> bytes:
    """A shared library whose own folder the loader does not look in, as those of CUDA 13.0."""
    changed = bytearray(library)
    table = struct.unpack_from("<Q", library, 32)[0]
    for i in range(struct.unpack_from("<H", library, 56)[0]):
        kind, _, start, _, _, size, *_ = struct.unpack_from("<IIQQQQQQ", library, table + 56 * i)
        if kind == 2:  # PT_DYNAMIC
            for at in range(start, start + size, 16):
                if struct.unpack_from("<Q", library, at)[0] in (15, 29):  # DT_RPATH, DT_RUNPATH
                    struct.pack_into("<Q", changed, at, 21)  # DT_DEBUG, which the loader skips
    return bytes(changed)


@needs_nvrtc
def test_nvrtc_finds_its_second_library_without_a_run_path(run_python, tmp_path: Path) -> None:
    files = importlib.metadata.files("nvidia-cuda-nvrtc") or []
    for file in files:
        if file.name.startswith("libnvrtc-builtins.so."):
            (tmp_path / file.name).symlink_to(file.locate())
        elif re.fullmatch(r"libnvrtc\.so\.\d+", file.name):
            nvrtc = tmp_path / file.name
            nvrtc.write_bytes(without_run_path(Path(str(file.locate())).read_bytes()))
    assert int(run_python(COMPILE, KERNEL, "sm_90", RUSHLIGHT_NVRTC=str(nvrtc))) > 500


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_compile(run_python, arch: str) -> None:
    """Every text in its usual variants, and once for float16; `precompile` compiles all of them.

    Beside sm_90, one variant of the texts that are more than a formula in the loop that all share.
    What the compiler says of their registers and memory is read from the code.
    """
    said = run_python(
        r"""
        import dataclasses
        import json
        import re
        import sys
        from concurrent.futures import ThreadPoolExecutor
        from rushlight import _C

        arch, tests = sys.argv[1:]
        sys.path.insert(0, tests)
        from cuda.cubin import kernels_of

        def one_of_each(names):
            return list({re.match(r"\w+", name)[0]: name for name in names}.values())

        known = _C._cuda_kernels()
        rare = ("Half", "BFloat16", "int64_t", "strided")
        names = [name for name in known if not any(word in name for word in rare)]
        assert len(names) > 200, names
        if arch == "sm_90":
            halves = [name for name in known if "Half" in name and "->" not in name]
            names += [*one_of_each(halves), *(n for n in known if n.startswith("add_value<Half"))]
        else:
            names = one_of_each(name for name in names if "->" not in name)
        assert len(names) > 40, names
        def kernels(name):
            code = _C._cuda_compile_kernel(name, arch, True)
            return [dataclasses.asdict(kernel) for kernel in kernels_of(code)]
        with ThreadPoolExecutor(2) as pool:
            print(json.dumps(dict(zip(names, pool.map(kernels, names)))))
        """,
        arch,
        str(ROOT / "tests"),
        RUSHLIGHT_CACHE=KEPT,
    )
    by_name = json.loads(said)
    if arch == "sm_90":  # which converts by its own instructions, and moves twice as many elements
        sums = [kernels for name, kernels in by_name.items() if name.startswith("add_value<")]
        (of_floats,), (of_halves,) = sums
        assert of_halves["instructions"] < 2 * of_floats["instructions"]
    for name, kernels in by_name.items():
        assert kernels, name
        for kernel in kernels:
            about = (name, kernel)
            # Without bounds, the shim lets no more than 256 threads run.
            assert kernel["registers"] * (kernel["most_threads"] or 256) <= REGISTERS, about
            assert kernel["shared_bytes"] <= STATIC_SHARED_BYTES, about
            if arch == "sm_90":  # for others, a few registers are spilt here and there
                assert kernel["local_bytes"] <= most_local_bytes(name), about
            moves = name.startswith(("add_value<", "gelu_value<", "Adam<", "softmax<", "dropout<"))
            # 16 bytes at once, where a draw does not say how many elements
            if moves and kernel["name"] != "down" and name != "dropout<Half>":
                assert kernel["wide_loads"] and kernel["wide_stores"], about


def most_local_bytes(kernel: str) -> int:
    """What a thread may keep in local memory, which is slow: nothing, but for a few."""
    if " -> " in kernel:
        return 128  # sines of large numbers, and recursions
    known = {
        "fft": 2048,  # for lengths with primes above 7
        "rejection": 128,
        "ctc_loss": 32,
        "random": 64,
    }
    return known.get(re.split(r"\W", kernel)[0], 0)


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_for_tensor_cores_compile(run_python, arch: str) -> None:
    """The shim has C++ in the place of their instructions."""
    said = run_python(
        """
        import sys
        from rushlight import _C

        for name in (
            "attention<Half, 64>",
            "attention_backward<BFloat16, 64>",
            "conv2d<float,tf32,last,vectors,large>",
            "gemm<BFloat16,nn,large>",
        ):
            _C._cuda_compile_kernel(name, sys.argv[1], True)
        print("done")
        """,
        arch,
        RUSHLIGHT_CACHE=KEPT,
    )
    assert said == "done\n"


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
    assert re.match(r"softplus<float>: NVRTC \d+\.\d+ failed for sm_90; ", message)
    assert message.endswith(
        f"the text is kept at {kept}; "
        'first error: softplus<float>.cu(2): error: identifier "z" is undefined.\n'
    )
    assert kept.read_text() == "int x = 0;\nint y = z;\n"


@needs_nvrtc
def test_an_unknown_architecture_is_an_error(run_python) -> None:
    said = run_python(COMPILE, KERNEL, "gcn")
    assert re.match(r"add_one: NVRTC .* failed for gcn; .*architecture", said)


@needs_nvrtc
def test_precompile_reports_and_fills_the_cache(run_python, tmp_path: Path) -> None:
    program = """
    import sys
    from rushlight.cuda.precompile import main
    sys.exit(main(sys.argv[1:]))
    """
    few = ("--arch", "sm_90", "--filter", "hardshrink")
    # In a process of its own: other tests add kernels to this one.
    names = run_python("from rushlight import _C; print(*_C._cuda_kernels())").split()
    count = len([name for name in names if "hardshrink" in name])
    assert count > 0
    cache = tmp_path / "cache"
    said = run_python(program, *few, "--no-cache")
    assert said.startswith(f"{count} kernels for sm_90 compiled by NVRTC ")
    assert not list(cache.glob("*.kernel"))
    said = run_python(program, *few)
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
        "Install it with: pip install rushlight[cuda].\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_cache_of_another_user_is_not_used(run_python, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    os.chown(cache, 12345, -1)
    said = run_python("from rushlight import _C; print(_C._cuda_cache()[1])")
    assert said == f"{cache} belongs to another user\n"
