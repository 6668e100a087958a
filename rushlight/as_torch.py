"""Programs and libraries that say `import torch` run on Rushlight, unchanged.

    python -m rushlight.as_torch train.py --epochs 3

or `-m package.train`, or `import rushlight.as_torch` as the first line of a program. From then on,
in this process, `torch` and its submodules are Rushlight's own modules under a second name,
`torchvision` is `rushlight.vision`, and both count as installed, of the versions whose names
Rushlight has. `functorch`, a part of PyTorch, comes with them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import multiprocessing.spawn
import runpy
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import rushlight
from rushlight.torch_version import TorchVersion

_NAMES = {
    "torch": "rushlight",
    "torchvision": "rushlight.vision",
    "functorch": "rushlight._functorch.package",
}
_VERSIONS = {"torch": "2.14.1", "torchvision": "0.29.1"}


def _own_name(name: str) -> str | None:
    """Rushlight's name of a module of PyTorch's."""
    if name.startswith("torch._C."):
        return name.replace("torch._C", "rushlight._insides")
    package, dot, rest = name.partition(".")
    return _NAMES[package] + dot + rest if package in _NAMES else None


class _Distribution(importlib.metadata.Distribution):
    """What pip would know of PyTorch, for libraries that ask which version is installed."""

    def __init__(self, name: str) -> None:
        self._metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {_VERSIONS[name]}\n"

    def read_text(self, filename: str) -> str | None:
        return self._metadata if filename == "METADATA" else None

    def locate_file(self, path: object) -> NoReturn:
        raise FileNotFoundError(f"{path}: Rushlight stands in for this package; it has no files.")


def _keep_function(name: str) -> None:
    """Keeps a function that has the name of its module, when the module is imported by it.

    After torch.nn.utils.weight_norm is imported, Python sets it as an attribute of torch.nn.utils,
    where its function is.
    """
    parent, _, child = name.rpartition(".")
    package = sys.modules.get(parent)
    if type(package) is ModuleType and isinstance(getattr(package, child, None), FunctionType):
        package.__class__ = _Kept


class _Kept(ModuleType):
    """A package that does not take a module in the place of a function."""

    def __setattr__(self, name: str, value: object) -> None:
        is_function = isinstance(getattr(self, name, None), FunctionType)
        if not (is_function and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


class _SecondName(Loader, MetaPathFinder):
    """Finds a module of PyTorch's and gives Rushlight's for it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        own = _own_name(fullname)
        found = importlib.util.find_spec(own) if own else None
        if found is None:
            return None
        _keep_function(fullname)
        return ModuleSpec(fullname, self, is_package=found.submodule_search_locations is not None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(str(_own_name(spec.name)))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module ran when it was imported by its own name, which it keeps."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context
    ) -> Iterable[_Distribution]:
        names = [context.name] if context.name in _VERSIONS else [] if context.name else _VERSIONS
        return map(_Distribution, names)


def _inside(name: str) -> object:
    """A name of torch._C that the native core does not have."""
    # Programs ask all that torch holds for its __module__, while an import would add to that.
    if not name.startswith("__"):
        insides = importlib.import_module("rushlight._insides")
        if hasattr(insides, name):
            return getattr(insides, name)
    raise AttributeError(f"module 'rushlight._C' has no attribute {name!r}")


def _install() -> None:
    if sys.modules.get("torch", rushlight) is not rushlight:
        raise ImportError(
            "as_torch: PyTorch is imported already. One process has one torch. "
            "Import rushlight.as_torch before everything that imports torch."
        )
    sys.meta_path.insert(0, _SecondName())
    setattr(rushlight, "torch", rushlight)  # noqa: B010, some libraries say torch.torch
    # Libraries ask what the package is called, and whose a class is by the modules of its bases.
    rushlight.__name__ = "torch"
    data, optim = rushlight.utils.data, rushlight.optim
    for cls in (rushlight.Tensor, rushlight.nn.Parameter, rushlight.nn.Module, data.Dataset,
                data.IterableDataset, data.DataLoader, optim.Optimizer):  # fmt: skip
        cls.__module__ = cls.__module__.replace("rushlight", "torch", 1)
    setattr(rushlight._C, "__getattr__", _inside)  # noqa: B010, the core does not declare it
    setattr(rushlight._C, "__path__", [])  # noqa: B010, it has parts that can be imported
    rushlight.__version__ = TorchVersion(f"{_VERSIONS['torch']}+rushlight.{rushlight.__version__}")


def _tell_children() -> None:
    """Lets processes that are not forked say `import torch`, too, before they read the program."""
    prepare = multiprocessing.spawn.get_preparation_data

    def prepare_as_torch(name: str) -> dict[str, Any]:
        # Read before the program is imported; to read the function is to import its module.
        return {**prepare(name), "as_torch": importlib.import_module("rushlight.as_torch")._install}

    multiprocessing.spawn.get_preparation_data = prepare_as_torch


def _run(arguments: list[str]) -> None:
    is_module = arguments[:1] == ["-m"]
    arguments = arguments[is_module:]
    if not arguments:
        raise SystemExit(
            "usage: python -m rushlight.as_torch (PROGRAM.py | -m MODULE) [ARGUMENT ...]"
        )
    importlib.import_module("rushlight.as_torch")  # this file is __main__, which no one else finds
    sys.argv[:] = arguments
    if is_module:
        runpy.run_module(
            _own_name(arguments[0]) or arguments[0], run_name="__main__", alter_sys=True
        )
        return
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    _run(sys.argv[1:])
else:
    _install()
    _tell_children()
