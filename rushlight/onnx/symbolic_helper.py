"""What symbolic functions of programs are written with; see register_custom_op_symbolic."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight import Tensor
from rushlight.onnx._builder import Value
from rushlight.onnx.errors import OnnxExporterError

__all__ = ["parse_args"]

F = TypeVar("F", bound=Callable[..., Any])


def _listed(kind: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda value: [kind(part) for part in value]


_KINDS: dict[str, Callable[[Any], Any]] = {
    "v": lambda value: value,
    "i": int,
    "f": float,
    "b": bool,
    "s": str,
    "is": _listed(int),
    "fs": _listed(float),
    "t": lambda value: value,
    "none": lambda value: value,
}
_TYPES: dict[str, Any] = {"t": Tensor | None, "none": type(None)}


def parse_args(*arg_descriptors: str) -> Callable[[F], F]:
    """Makes a decorator that says what the arguments of a symbolic function are, after the graph.

    Args:
        *arg_descriptors: "v" for values of the graph; "i", "f", "b", "s" and "t" for integers,
            floats, bools, texts and tensors that do not depend on the inputs; "is" and "fs" for
            lists; "none" for None. Other arguments than values may be None.

    Raises:
        OnnxExporterError: by the function, if one depends on an input but must not.

    Example:
        >>> from rushlight.onnx.symbolic_helper import parse_args
        >>> @parse_args("v", "f", "i")
        ... def scaled(g, x, factor, times):
        ...     return factor * times
        >>> scaled(None, None, 2, 3)
        6.0
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def parsed(g: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > len(arg_descriptors):
                raise OnnxExporterError(
                    f"{function.__name__}: parse_args describes {len(arg_descriptors)} arguments, "
                    f"but there are {len(args)}."
                )
            pairs = zip(arg_descriptors, args, strict=False)
            return function(g, *(_parsed(function, *pair) for pair in pairs), **kwargs)

        return parsed  # pyright: ignore[reportReturnType]

    return decorate


def _parsed(function: Any, kind: str, value: Any) -> Any:
    if kind != "v" and isinstance(value, Value):
        raise OnnxExporterError(
            f"{function.__name__}: an argument that parse_args calls {kind!r} depends on the "
            "inputs of the model. Let it be a constant, or call it 'v'."
        )
    if not isinstance(value, _TYPES.get(kind, object)):
        raise OnnxExporterError(f"{function.__name__}: {value!r} is not what {kind!r} says.")
    return None if value is None else _KINDS[kind](value)
