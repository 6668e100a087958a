"""What packages import when it is first asked for, so that they themselves are imported fast."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def imports(
    module: str,
    submodules: Iterable[str] = (),
    names_in: Mapping[str, str] | None = None,
    package: str | None = None,
) -> Callable[[str], Any]:
    """Makes the __getattr__ of a module that imports what it is asked for, and lists it in dir().

    Args:
        module: its __name__.
        submodules: the names of submodules.
        names_in: names that are the module's too, in one text for each submodule that has them.
        package: where the submodules are, if not in the module itself.

    Example:
        >>> import rushlight.optim
        >>> find = imports("rushlight.optim", names_in={"_muon": "Muon"})
        >>> find("Muon").__name__
        'Muon'
    """
    package = package or module
    homes = {name: home for home, names in (names_in or {}).items() for name in names.split()}

    def find(name: str) -> Any:
        import importlib

        if name in homes:
            value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
            setattr(sys.modules[module], name, value)
            return value
        if name in submodules:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *homes, *submodules})

    vars(sys.modules[module])["__dir__"] = names
    return find
