"""C++ of one's own: modules and operators that are compiled from sources.

Sources include torch/extension.h, which is here in rushlight/include: PyTorch's names for tensors,
ops, checks, loops by dtype, gradients and operators, over a table of plain functions. So extensions
link nothing of Rushlight. They need a C++ compiler and pybind11 (pip install pybind11).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight.torch_version import TorchVersion

if TYPE_CHECKING:
    from rushlight.utils._build_extension import BuildExtension

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "check_compiler_is_gcc",
    "check_compiler_ok_for_platform",
    "get_compiler_abi_compatibility_and_version",
    "get_cxx_compiler",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "verify_ninja_availability",
]

# Where nvcc would be; programs ask before they choose CUDAExtension, which is not here.
CUDA_HOME: str | None = None
CUDNN_HOME: str | None = None
ROCM_HOME: str | None = None
IS_HIP_EXTENSION = False

_NO_CUDA = (
    "{}: sources in CUDA need PyTorch's headers for it. Compile kernels with "
    "torch.cuda._compile_kernel, and call them from Python."
)


def _compiler_flags(own: Sequence[str]) -> list[str]:
    """The flags that the headers count on, with those of the program that do not undo them."""
    older = re.compile(r"-std=(c|gnu)\+\+(98|0|1)")
    own = [flag for flag in own if not older.match(flag)]
    # pybind11 needs all that Python has.
    return ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", *own, "-UPy_LIMITED_API"]


def __getattr__(name: str) -> Any:
    if name == "BuildExtension":  # which needs setuptools
        from rushlight.utils._build_extension import BuildExtension

        globals()[name] = BuildExtension
        return BuildExtension
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- paths and tools ---------------------------------------------------------------------------


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Returns the folders of the headers that extensions include, those of pybind11 too.

    Args:
        device_type: must be "cpu".
        torch_include_dirs: whether they are wanted.

    Raises:
        RuntimeError: if pybind11 is not installed.

    Example:
        >>> folders = torch.utils.cpp_extension.include_paths()
        >>> (Path(folders[0]) / "torch" / "extension.h").exists()
        True
    """
    if not torch_include_dirs:
        return []
    try:
        import pybind11
    except ImportError:
        raise RuntimeError(
            "C++ extensions need pybind11. Install it with: pip install pybind11"
        ) from None
    return [str(Path(rl.__file__).parent / "include"), pybind11.get_include()]


def library_paths(
    device_type: str = "cpu",
    torch_include_dirs: bool = True,
    cross_target_platform: str | None = None,
) -> list[str]:
    """Returns the folders of the libraries that extensions link: none, they link nothing.

    Example:
        >>> torch.utils.cpp_extension.library_paths()
        []
    """
    return []


def get_cxx_compiler() -> str:
    """Returns the compiler: that of the variable CXX, else c++.

    Example:
        >>> isinstance(torch.utils.cpp_extension.get_cxx_compiler(), str)
        True
    """
    return os.environ.get("CXX", "c++")


def _version_text(compiler: str) -> str:
    try:
        return subprocess.run(
            [*compiler.split(), "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(
            f"C++ extensions need a compiler, but {compiler!r} does not run: {error}. Install one "
            "with: apt-get install g++, or name yours in the environment variable CXX."
        ) from None


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether a compiler is GCC's for C++.

    Example:
        >>> torch.utils.cpp_extension.check_compiler_is_gcc("false")
        False
    """
    try:
        return "Free Software Foundation" in _version_text(compiler)
    except RuntimeError:
        return False


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether there is such a compiler. Any will do: no types of C++ are shared with the core.

    Example:
        >>> torch.utils.cpp_extension.check_compiler_ok_for_platform("no-such-compiler")
        False
    """
    return shutil.which(compiler.split()[0]) is not None


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, TorchVersion]:
    """Whether a compiler can be used, and its version.

    Example:
        >>> torch.utils.cpp_extension.get_compiler_abi_compatibility_and_version("no-such-compiler")
        (False, '0.0.0')
    """
    from rushlight.torch_version import TorchVersion

    if not check_compiler_ok_for_platform(compiler):
        return False, TorchVersion("0.0.0")
    found = re.search(r"\d+\.\d+\.\d+", _version_text(compiler))
    return found is not None, TorchVersion(found[0] if found else "0.0.0")


def is_ninja_available() -> bool:
    """Whether ninja is installed, which nothing here needs.

    Example:
        >>> isinstance(torch.utils.cpp_extension.is_ninja_available(), bool)
        True
    """
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Returns, as nothing here needs ninja.

    Example:
        >>> torch.utils.cpp_extension.verify_ninja_availability()
    """


def get_default_build_root() -> str:
    """Returns the folder in which load() keeps what it builds.

    It is that of the environment variable TORCH_EXTENSIONS_DIR, else one in the user's cache.

    Example:
        >>> Path(torch.utils.cpp_extension.get_default_build_root()).is_absolute()
        True
    """
    if own := os.environ.get("TORCH_EXTENSIONS_DIR"):
        return str(Path(own).absolute())
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return str(
        Path(cache) / "rushlight_extensions" / f"py{sys.version_info[0]}{sys.version_info[1]}"
    )


# ---- for setup.py ------------------------------------------------------------------------------


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """Returns a setuptools.Extension that is built against the headers here; see BuildExtension.

    Args:
        name: of the module.
        sources: files of C++.
        args: as of setuptools.Extension.
        kwargs: as of setuptools.Extension.

    Raises:
        RuntimeError: if pybind11 is not installed.

    Example:
        >>> extension = torch.utils.cpp_extension.CppExtension("mine", ["mine.cpp"])
        >>> extension.name, extension.language
        ('mine', 'c++')
    """
    import setuptools

    kwargs["py_limited_api"] = False  # which pybind11 is not made for
    kwargs["include_dirs"] = [*(kwargs.get("include_dirs") or []), *include_paths()]
    kwargs.setdefault("language", "c++")
    return setuptools.Extension(name, list(sources), *args, **kwargs)


def _has_cuda(sources: Sequence[str]) -> bool:
    return any(str(source).endswith((".cu", ".cuh")) for source in sources)


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """Returns a CppExtension, if no source is in CUDA.

    Raises:
        NotImplementedError: for sources in CUDA.

    Example:
        >>> torch.utils.cpp_extension.CUDAExtension("mine", ["mine.cpp"]).name
        'mine'
    """
    if _has_cuda(sources):
        raise NotImplementedError(_NO_CUDA.format("CUDAExtension"))
    return CppExtension(name, sources, *args, **kwargs)


# ---- at run time -------------------------------------------------------------------------------


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> Any:
    """Compiles sources of C++, unless nothing changed since the last time, and loads the result.

    Args:
        name: of the module; the sources know it as TORCH_EXTENSION_NAME.
        sources: one file of C++ or several.
        extra_cflags: for the compiler.
        extra_cuda_cflags: has no effect.
        extra_sycl_cflags: has no effect.
        extra_ldflags: for the linker.
        extra_include_paths: folders of further headers.
        build_directory: where to build, else a folder of `get_default_build_root()`.
        verbose: prints the commands.
        with_cuda: must not be True.
        with_sycl: must not be True.
        is_python_module: whether to import a module; else the library is loaded for its operators.
        is_standalone: must be False.
        keep_intermediates: has no effect: they are not kept.

    Returns:
        The module, or the path of the library.

    Raises:
        RuntimeError: if it does not compile, with what the compiler said, or without pybind11.
        NotImplementedError: for sources in CUDA or SYCL, and programs.

    Example:
        >>> torch.utils.cpp_extension.load("mine", ["kernel.cu"])
        Traceback (most recent call last):
        NotImplementedError: load: sources in CUDA need PyTorch's headers for it. ...
    """
    sources = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if with_cuda or _has_cuda(sources):
        raise NotImplementedError(_NO_CUDA.format("load"))
    if with_sycl or is_standalone:
        raise NotImplementedError("load: with_sycl and is_standalone are not implemented.")
    build = _Build(name, build_directory, extra_cflags, extra_ldflags, extra_include_paths, verbose)
    with build.locked():
        library = build.library([Path(source).absolute() for source in sources])
        return _loaded(name, library, is_python_module)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | dict[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> Any:
    """Compiles C++ from strings and loads it, as `load` does with files.

    Args:
        name: of the module.
        cpp_sources: texts of C++, which are joined; torch/extension.h stands before them.
        cuda_sources: must be empty.
        sycl_sources: must be empty.
        functions: those that the module gets, by name, or names with their docstrings.
        extra_cflags: as of load, and so are the arguments that follow.
        with_pytorch_error_handling: has no effect: errors keep their class.
        use_pch: has no effect.
        no_implicit_headers: whether torch/extension.h is left out.

    Returns:
        The module, or the path of the library.

    Raises:
        RuntimeError: if it does not compile, with what the compiler said, or without pybind11.
        NotImplementedError: for sources in CUDA or SYCL.

    Example:
        >>> source = "torch::Tensor twice(torch::Tensor x) { return x + x; }"
        >>> module = torch.utils.cpp_extension.load_inline("twice", source, functions="twice")
        >>> module.twice(torch.ones(2))
        tensor([2., 2.])
    """
    if cuda_sources or sycl_sources or with_cuda or with_sycl:
        raise NotImplementedError(_NO_CUDA.format("load_inline"))
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    if not no_implicit_headers:
        texts.insert(0, "#include <torch/extension.h>")
    if functions is not None:
        names = [functions] if isinstance(functions, str) else functions
        documented = names if isinstance(names, dict) else {n: n for n in names}
        texts.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
        texts += [f"m.def({json.dumps(n)}, {n}, {json.dumps(d)});" for n, d in documented.items()]
        texts.append("}")
    build = _Build(name, build_directory, extra_cflags, extra_ldflags, extra_include_paths, verbose)
    source = build.folder / "main.cpp"
    with build.locked():
        source.write_text("\n".join(texts) + "\n", encoding="utf-8")
        library = build.library([source])
        return _loaded(name, library, is_python_module)


def _loaded(name: str, library: Path, is_python_module: bool) -> Any:
    if not is_python_module:
        rl.ops.load_library(str(library))
        return str(library)
    # pybind11 makes one module of a name, so each library has one of its own.
    full_name = f"{library.stem}.{name}"
    loader = importlib.machinery.ExtensionFileLoader(full_name, str(library))
    spec = importlib.util.spec_from_file_location(full_name, library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.__name__ = name
    return module


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class _Build:
    """How the library of an extension is made, in a folder that remembers what it was made of."""

    def __init__(
        self,
        name: str,
        build_directory: str | None,
        cflags: Sequence[str] | None,
        ldflags: Sequence[str] | None,
        include_folders: Sequence[str] | None,
        verbose: bool,
    ) -> None:
        includes = [*(include_folders or ()), *include_paths(), sysconfig.get_path("include")]
        self.name = name
        self.folder = Path(build_directory or Path(get_default_build_root()) / name).absolute()
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.compile_command = [
            *get_cxx_compiler().split(),
            f"-DTORCH_EXTENSION_NAME={name}",
            *(f"-I{path}" for path in includes),
            *_compiler_flags(cflags or []),
        ]
        self.link_flags = list(ldflags or ())
        self.verbose = verbose
        self.record = self.folder / f"{name}.json"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from building in the folder, which deletes what was there."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def library(self, sources: list[Path]) -> Path:
        """The library of the sources, made anew if they, their headers or the commands changed."""
        version = _version_text(get_cxx_compiler())
        made_by = [version, *self.compile_command, *self.link_flags, *map(str, sources)]
        before = self._read_record()
        if before and before["made_by"] == made_by and self._is_fresh(before):
            return self.folder / before["library"]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = list(pool.map(self._compile, sources, range(len(sources))))
        inputs = {path: _digest(Path(path)) for _, headers in compiled for path in headers}
        key = hashlib.sha256(json.dumps([made_by, inputs]).encode()).hexdigest()[:16]
        library = self.folder / f"{self.name}-{key}.so"
        objects = [str(made) for made, _ in compiled]
        compiler = get_cxx_compiler().split()
        self._run([*compiler, "-shared", *objects, "-o", str(library), *self.link_flags])
        for made in objects:
            Path(made).unlink()
        if before and before["library"] != library.name:
            (self.folder / before["library"]).unlink(missing_ok=True)
        record = {
            "made_by": made_by,
            "inputs": inputs,
            "library": library.name,
            "digest": _digest(library),
        }
        self.record.write_text(json.dumps(record), encoding="utf-8")
        return library

    def _read_record(self) -> dict[str, Any] | None:
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        kinds = {"made_by": list, "inputs": dict, "library": str, "digest": str}
        is_whole = isinstance(record, dict) and all(
            isinstance(record.get(name), kind) for name, kind in kinds.items()
        )
        return record if is_whole else None

    def _is_fresh(self, record: dict[str, Any]) -> bool:
        try:
            whole = _digest(self.folder / record["library"]) == record["digest"]
            return whole and all(
                _digest(Path(path)) == digest for path, digest in record["inputs"].items()
            )
        except OSError:  # a file that is gone
            return False

    def _compile(self, source: Path, number: int) -> tuple[Path, list[str]]:
        """The object file of a source, and what it includes but for headers of the system."""
        if not source.exists():
            raise FileNotFoundError(f"Error building extension '{self.name}': no file {source}")
        made = self.folder / f"{self.name}-{number}.o"
        listed = made.with_suffix(".d")
        self._run(
            [*self.compile_command, "-c", str(source), "-o", str(made), "-MMD", "-MF", str(listed)]
        )
        text = listed.read_text(encoding="utf-8").replace("\\\n", " ")
        listed.unlink()
        paths = re.split(r"(?<!\\)\s+", text.partition(":")[2].strip())
        return made, [path.replace("\\ ", " ") for path in paths]

    def _run(self, command: list[str]) -> None:
        if self.verbose:
            print(" ".join(command), flush=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if self.verbose and done.stderr:
            print(done.stderr, flush=True)
        if done.returncode:
            raise RuntimeError(f"Error building extension '{self.name}':\n{done.stderr}")
