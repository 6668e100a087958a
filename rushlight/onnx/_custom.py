"""Symbolic functions: what programs say the ONNX nodes of an op are, instead of _ops/."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.library._operator import Operator
from rushlight.onnx._builder import Builder, Value, tensor_proto
from rushlight.onnx.errors import OnnxExporterError

__all__ = [
    "ALIASES",
    "GraphContext",
    "arguments",
    "register_custom_op_symbolic",
    "symbolic_of",
    "unregister_custom_op_symbolic",
]

ALIASES = {"axis": "dim", "keepdims": "keepdim"}  # of arguments

# By the name of the op and the first version of ONNX's operators that it is for.
_registered: dict[str, dict[int, Callable[..., Any]]] = {}


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Says what ONNX nodes onnx.export makes of an op.

    Args:
        symbolic_name: "namespace::name" of an operator of the library, or "aten::name" of an op.
        symbolic_fn: gets a graph and the arguments of a call, tensors as values of the graph, and
            returns what graph.op("Kind", *inputs, name_i=1) returns, or a tuple of such values.
            Kind may be "domain::Kind"; the names of attributes end in _i, _f, _s or _t for
            integers, floats, texts and tensors, or lists of them.
        opset_version: the first version of ONNX's operators for which it holds.

    Raises:
        OnnxExporterError: if the name has another form.

    Example:
        >>> def symbolic(g, x, slope):
        ...     return g.op("LeakyRelu", x, alpha_f=slope)
        >>> torch.onnx.register_custom_op_symbolic("docs::leaky", symbolic, 18)
        >>> torch.onnx.unregister_custom_op_symbolic("docs::leaky", 18)
    """
    _registered.setdefault(_full_name(symbolic_name), {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back what register_custom_op_symbolic said, if it did.

    Args:
        symbolic_name, opset_version: see there.
    """
    _registered.get(_full_name(symbolic_name), {}).pop(opset_version, None)


def _full_name(name: str) -> str:
    name = f"aten{name}" if name.startswith("::") else name
    if not re.fullmatch(r"[\w-]+::[A-Za-z_-][\w-]*", name):
        raise OnnxExporterError(
            f"Failed to register operator {name}. The symbolic name must match the format "
            "domain::name, and should start with a letter and contain only alphanumerical "
            "characters."
        )
    return name


def symbolic_of(target: Any, name: str, opset: int) -> Callable[..., Any] | None:
    """The function for an op that is called by that name, None if there is none."""
    known = _registered.get(target.name() if isinstance(target, Operator) else f"aten::{name}", {})
    version = max((version for version in known if version <= opset), default=None)
    return None if version is None else known[version]


def arguments(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments of a call in the order of the signature.

    All of an operator's; of an op of aten those up to the last one given, inplace left out.
    """
    if isinstance(target, Operator):
        parameters: Sequence[Any] = target._schema.parameters
    else:
        named = {ALIASES.get(name, name): value for name, value in kwargs.items()}
        kwargs = {name: value for name, value in named.items() if name != "inplace"}
        try:
            parameters = list(inspect.signature(target).parameters.values())
        except ValueError:  # it has several forms
            return [*args, *kwargs.values()]
        last = [place for place, p in enumerate(parameters) if p.name in kwargs]
        parameters = parameters[: last[-1] + 1 if last else len(args)]
    given = {p.name: value for p, value in zip(parameters, args, strict=False)} | kwargs
    return [given.get(p.name, p.default) for p in parameters]


class GraphContext:
    """The graph as symbolic functions see it.

    Args:
        builder: the graph.

    Attributes:
        opset: the version of ONNX's operators.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.opset = builder.opset

    def op(self, opname: str, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
        """Adds a node.

        Args:
            opname: its kind, "Kind" or "domain::Kind".
            *raw_args: its inputs: values of the graph, or tensors and numbers that become
                constants; None for one that is left out.
            outputs: how many outputs it has.
            **kwargs: its attributes, see register_custom_op_symbolic.

        Returns:
            Its output, or a tuple of several.
        """
        domain, _, kind = opname.rpartition("::")
        inputs = [self._value(arg) for arg in raw_args]
        first = next((value for value in inputs if value is not None), None)
        return self._builder.add(
            kind,
            inputs,
            dict(_attribute(name, value) for name, value in kwargs.items()),
            outputs,
            rl.float32 if first is None else first.dtype,
            "" if domain == "onnx" else domain,
        )

    def _value(self, arg: Any) -> Value | None:
        if arg is None or isinstance(arg, Value):
            return arg
        if isinstance(arg, Tensor):
            return self._builder.initializer("constant", arg)
        number = arg[0] if isinstance(arg, (list, tuple)) and arg else arg
        kinds = {bool: rl.bool, float: rl.float32}
        return self._builder.constant(arg, kinds.get(type(number), rl.int64))


def _attribute(name: str, value: Any) -> tuple[str, Any]:
    """The name of an attribute without its ending, and its value of that kind."""
    plain, _, kind = name.rpartition("_")
    makers: dict[str, Callable[[Any], Any]] = {
        "i": int,
        "f": float,
        "s": str,
        "t": lambda value: tensor_proto("", rl.as_tensor(value)),
    }
    if not plain or kind not in makers:
        raise ValueError(
            f"op: the attribute {name} does not say what it is. Let its name end in _i, _f, _s or "
            "_t."
        )
    make = makers[kind]
    return plain, [make(part) for part in value] if isinstance(value, (list, tuple)) else make(
        value
    )
