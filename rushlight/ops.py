"""torch.ops: the operators that programs added with torch.library, as torch.ops.namespace.name.

The namespace aten has PyTorch's own names for what is in this package, the namespace quantized
those for quantized tensors, the namespace torchvision torchvision's, the namespace rushlight what
this package computes with and PyTorch has no name for.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight._op_overload import OpOverloadPacket
    from rushlight.library._operator import Operator, OperatorPacket

__all__: list[str] = []


class _OpNamespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = f"rushlight.ops.{name}"

    def __getattr__(self, op_name: str) -> Operator | OperatorPacket | OpOverloadPacket:
        from rushlight.library._operator import found_operator

        found: Operator | OperatorPacket | OpOverloadPacket | None = found_operator(
            f"{self.name}::{op_name}"
        )
        if found is None and not op_name.startswith("__"):
            found = _own_packet(self.name, op_name)
            if found is not None:
                self.__dict__[op_name] = found
        if found is None:
            raise AttributeError(
                f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'"
            )
        return found

    def __repr__(self) -> str:
        return f"<namespace torch.ops.{self.name}>"

    def __dir__(self) -> list[str]:
        from rushlight.library._operator import operators

        return sorted({op._opname for op in operators.values() if op.namespace == self.name})


def _own_packet(namespace: str, name: str) -> Any:
    """What this package has by a name, None for nothing."""
    if namespace == "aten":
        from rushlight._aten import packet_of

        return packet_of(name)
    if namespace == "rushlight":
        from rushlight._dispatch import internal_packet

        return internal_packet(name)
    if namespace == "quantized":
        from rushlight._quantized_library import function_of

        return function_of(name)
    if namespace == "torchvision":
        from rushlight.vision.ops._operators import packet_of as vision_packet_of

        return vision_packet_of(name)
    if namespace == "quantized_decomposed":
        from rushlight.ao.quantization.fx import _decomposed as _decomposed
        from rushlight.library._operator import found_operator

        return found_operator(f"{namespace}::{name}")
    if namespace in ("_c10d_functional", "c10d", "c10d_functional"):
        from rushlight.distributed import _operators as _operators
        from rushlight.library._operator import operators

        return operators.get(f"{namespace}::{name}")
    return None


loaded_libraries: set[str] = set()


def load_library(path: str | os.PathLike[str]) -> None:
    """Loads a library whose TORCH_LIBRARY blocks add operators; see utils.cpp_extension.

    Args:
        path: of the shared library.

    Raises:
        OSError: if it cannot be loaded.

    Example:
        >>> torch.ops.load_library("no/such/library.so")
        Traceback (most recent call last):
        OSError: Could not load this library: ...
    """
    import ctypes

    path = os.path.abspath(path)
    try:
        ctypes.CDLL(path)
    except OSError as error:
        raise OSError(f"Could not load this library: {path}") from error
    loaded_libraries.add(path)


def __getattr__(name: str) -> _OpNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, _OpNamespace(name))
