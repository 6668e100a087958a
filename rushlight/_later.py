"""What packages import when it is first asked for, so that they themselves are imported fast."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def imports(
    package: str, submodules: Iterable[str] = (), names_in: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Makes the __getattr__ of a package that imports what it is asked for.

    Args:
        package: its __name__.
        submodules: the names of submodules.
        names_in: names that are the package's too, in one text for each submodule that has them.

    Example:
        >>> find = imports("rushlight.optim", names_in={"_muon": "Muon"})
        >>> find("Muon").__name__
        'Muon'
    """
    homes = {name: module for module, names in (names_in or {}).items() for name in names.split()}

    def find(name: str) -> Any:
        import importlib

        if name in homes:
            value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in submodules:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
