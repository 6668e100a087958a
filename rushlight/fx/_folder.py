"""GraphModules as packages: module.py with the code, and files for what code cannot say."""

from __future__ import annotations

import pickle
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import nn

if TYPE_CHECKING:
    from rushlight.fx.graph_module import GraphModule

__all__ = ["write_folder"]

_HEAD = """import pickle
import typing
from pathlib import Path

import rushlight
import rushlight as torch
from rushlight import device, inf, nan, nn

NoneType = type(None)
_HERE = Path(__file__).parent
"""


def write_folder(module: GraphModule, folder: Path, name: str) -> None:
    """Writes a module as a package whose class has a name."""
    folder.mkdir(parents=True, exist_ok=True)
    rl.save(module.state_dict(), folder / "state_dict.pt")
    lines = [
        "super().__init__()",
        *_submodules(module, "self", "", folder),
        *_tensors(module),
        'self.load_state_dict(torch.load(_HERE / "state_dict.pt"))',
        f"self.train({module.training})",
    ]
    marks, _, forward = module.code.strip().rpartition("def forward(")
    text = (
        f"{_HEAD}{_imports(module)}{marks}\n\nclass {name}(nn.Module):\n    def __init__(self):\n"
    )
    text += textwrap.indent("\n".join(lines), " " * 8) + "\n\n"
    text += textwrap.indent(f"def forward({forward}", " " * 4) + "\n"
    (folder / "module.py").write_text(text, encoding="utf-8")
    (folder / "__init__.py").write_text("from .module import *\n", encoding="utf-8")


def _submodules(module: nn.Module, owner: str, path: str, folder: Path) -> Iterator[str]:
    """Lines that make the submodules: by what repr shows where that is code, else by files."""
    for name, child in module.named_children():
        where = f"{path}{name}"
        if type(child) is nn.Module:
            yield f"{owner}.add_module({name!r}, nn.Module())"
            yield from _submodules(child, f"self.get_submodule({where!r})", f"{where}.", folder)
        elif _is_shown(child):
            yield f"{owner}.add_module({name!r}, nn.{child!r})"
        else:
            with open(folder / f"{where}.pickle", "wb") as file:
                pickle.dump(child, file)
            content = f"(_HERE / {where + '.pickle'!r}).read_bytes()"
            yield f"{owner}.add_module({name!r}, pickle.loads({content}))"


def _is_shown(module: nn.Module) -> bool:
    """Whether a layer's repr is the code that makes it."""
    if not type(module).__module__.startswith("rushlight.nn.") or list(module.children()):
        return False
    try:
        return repr(eval(f"nn.{module!r}", {"nn": nn})) == repr(module)
    except Exception:
        return False


def _tensors(module: nn.Module) -> Iterator[str]:
    """Lines that make the parameters and buffers of the module and of its empty modules."""
    for path, owner in module.named_modules():
        if owner is not module and type(owner) is not nn.Module:
            continue
        where = f"self.get_submodule({path!r})" if path else "self"
        for name, value in owner.named_parameters(recurse=False):
            made = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
            made = f"nn.Parameter({made}, requires_grad={value.requires_grad})"
            yield f"{where}.register_parameter({name!r}, {made})"
        for name, value in owner.named_buffers(recurse=False):
            made = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
            yield f"{where}.register_buffer({name!r}, {made})"


def _imports(module: GraphModule) -> str:
    """Lines that give the code the functions and annotations that it has by name."""
    known = {"NoneType", "device", "inf", "nan", "rushlight", "torch"}
    lines = []
    for name, value in module.graph.python_code("self").globals.items():
        if name in known:
            continue
        lines.append(_import(name, value))
    return "".join(f"{line}\n" for line in lines)


def _import(name: str, value: Any) -> str:
    home, path = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if home is None or path is None or "<" in path:
        return f"{name} = {value!r}"
    first, _, rest = path.partition(".")
    return f"from {home} import {first} as {name}" + (f"; {name} = {name}.{rest}" if rest else "")
