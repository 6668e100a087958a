"""torch.ops: the operators that programs added with torch.library, as torch.ops.namespace.name.

The namespace aten has PyTorch's own names for what is in this package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight._aten import Packet
    from rushlight.library._operator import Operator

__all__: list[str] = []


class _OpNamespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = f"rushlight.ops.{name}"

    def __getattr__(self, op_name: str) -> Operator | Packet:
        from rushlight.library._operator import operators

        found = operators.get(f"{self.name}::{op_name}")
        if found is None and self.name == "aten" and not op_name.startswith("__"):
            from rushlight._aten import packet_of

            found = packet_of(op_name)
            if found is not None:
                self.__dict__[op_name] = found
        if found is None:
            raise AttributeError(
                f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'"
            )
        return found

    def __dir__(self) -> list[str]:
        from rushlight.library._operator import operators

        names = (name.split("::") for name in operators)
        return sorted(name for namespace, name in names if namespace == self.name)


_namespaces: dict[str, _OpNamespace] = {}


def __getattr__(name: str) -> _OpNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _namespaces.setdefault(name, _OpNamespace(name))
