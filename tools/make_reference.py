"""Writes the reference: a page for each public module, made of its docstrings by pdoc.

python tools/make_reference.py [FOLDER]    build/reference unless given
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import pdoc

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import rushlight  # noqa: E402

OpFunction = type(rushlight.add)

# Their names are on the page of the package.
PARTS = ("rushlight.nn.modules",)


def public_modules() -> list[str]:
    names = ["rushlight"]
    for module in pkgutil.walk_packages(rushlight.__path__, "rushlight."):
        private = any(part.startswith("_") for part in module.name.split("."))
        if not private and not module.name.startswith(PARTS):
            names.append(module.name)
    return names


def belongs(value: object, module: str) -> bool:
    """Whether a name of a module is its own: an op, or from the module or a private one."""
    home = str(getattr(value, "__module__", ""))
    private = home.startswith("rushlight") and "._" in home and callable(value)
    return home == module or type(value) is OpFunction or private


def show_ops(name: str) -> None:
    """pdoc leaves out what a module imports, which ops are, unless they are in __all__."""
    module = importlib.import_module(name)
    if not hasattr(module, "__all__"):
        public = [key for key in vars(module) if not key.startswith("_")]
        module.__dict__["__all__"] = [key for key in public if belongs(vars(module)[key], name)]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "reference"
    modules = public_modules()
    for name in modules:
        show_ops(name)
    pdoc.render.configure(docformat="google", show_source=False, footer_text="Rushlight")
    pdoc.pdoc(*modules, "!rushlight[.]_", *(f"!{part}" for part in PARTS), output_directory=folder)
    print(f"wrote {folder / 'rushlight.html'}")


if __name__ == "__main__":
    main()
