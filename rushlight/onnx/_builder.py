"""Builds ONNX graphs: values with their dtypes and shapes, nodes, and constants.

Owns names in the graph and what many converters need: casts, integers as tensors, sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import rushlight as rl
from rushlight import Tensor
from rushlight.fx.node import Node
from rushlight.onnx.errors import UnsupportedOperatorError

__all__ = ["Builder", "Value", "element_type", "tensor_proto"]

_TYPES = {
    rl.float32: "FLOAT",
    rl.float64: "DOUBLE",
    rl.float16: "FLOAT16",
    rl.bfloat16: "BFLOAT16",
    rl.int8: "INT8",
    rl.int16: "INT16",
    rl.int32: "INT32",
    rl.int64: "INT64",
    rl.uint8: "UINT8",
    rl.uint16: "UINT16",
    rl.uint32: "UINT32",
    rl.uint64: "UINT64",
    rl.bool: "BOOL",
}


def element_type(dtype: rl.dtype) -> int:
    """ONNX's number for a dtype."""
    import onnx

    if dtype not in _TYPES:
        raise UnsupportedOperatorError(str(dtype), "the model", "ONNX has no such dtype")
    return onnx.TensorProto.DataType.Value(_TYPES[dtype])


def tensor_proto(name: str, tensor: Tensor) -> Any:
    """A tensor as ONNX writes it."""
    import onnx

    plain = tensor.detach().cpu().contiguous()
    data = plain.reshape(-1).view(rl.uint8).numpy().tobytes() if plain.numel() else b""
    return onnx.TensorProto(
        name=name, dims=tuple(plain.shape), data_type=element_type(plain.dtype), raw_data=data
    )


@dataclass(frozen=True)
class Value:
    """A tensor in the graph.

    Attributes:
        name: its name.
        dtype: its dtype.
        shape: its sizes, text where they may change; None where the converter did not say.
    """

    name: str
    dtype: rl.dtype
    shape: tuple[int | str, ...] | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        assert self.shape is not None
        return len(self.shape)

    def dim(self, dim: int) -> int:
        """A dimension counted from the front."""
        return dim % max(self.rank, 1)

    # What symbolic functions ask (_custom.py)

    def type(self) -> Value:
        """What is known of the value, which it knows itself."""
        return self

    def setType(self, like: Value) -> Value:
        """The value with the dtype and the shape of another one."""
        return replace(self, dtype=like.dtype, shape=like.shape)

    def sizes(self) -> list[int | None] | None:
        """Its sizes, None for those that may change."""
        if self.shape is None:
            return None
        return [size if isinstance(size, int) else None for size in self.shape]


class Builder:
    """An ONNX graph that grows.

    Args:
        opset: the version of the operators.
        taken: names that stand for something else.

    Attributes:
        node: the step of the program that is converted.
        opset: as given.
        domains: those of the operators.
    """

    node: Node

    def __init__(self, opset: int, taken: Iterable[str] = ()) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.domains: set[str] = set()
        self.initializers: dict[str, Tensor] = {}
        self._constants: dict[Any, Value] = {}
        self._used = set(taken)

    def name(self, wanted: str) -> str:
        """A name that nothing else has."""
        name, number = wanted, 0
        while name in self._used:
            number += 1
            name = f"{wanted}_{number}"
        self._used.add(name)
        return name

    def op(
        self,
        kind: str,
        *inputs: Value | None,
        outputs: int = 1,
        dtype: rl.dtype | None = None,
        **attributes: Any,
    ) -> Any:
        """Adds a node.

        Args:
            kind: the operator.
            inputs: its inputs; None for one that is left out.
            outputs: how many outputs it has.
            dtype: that of the outputs; by default that of the first input.
            attributes: its attributes; None for one that is left out.

        Returns:
            Its output, or a tuple of several.
        """
        if dtype is None:
            assert inputs[0] is not None
            dtype = inputs[0].dtype
        given = {key: value for key, value in attributes.items() if value is not None}
        return self.add(kind, inputs, given, outputs, dtype)

    def add(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        attributes: dict[str, Any],
        outputs: int,
        dtype: rl.dtype,
        domain: str = "",
    ) -> Any:
        """Adds a node, whose operator may be of another domain; see op."""
        import onnx

        made = [self.name(f"{self.node.name}_{kind.lower()}") for _ in range(outputs)]
        names = [value.name if value else "" for value in inputs]
        while names and not names[-1]:
            names.pop()
        node = onnx.helper.make_node(kind, names, made, self.name(f"node_{made[0]}"))
        node.domain = domain
        for key, value in sorted(attributes.items()):
            node.attribute.append(onnx.helper.make_attribute(key, value))
        self.nodes.append(node)
        self.domains.add(domain)
        values = tuple(Value(name, dtype) for name in made)
        return values if outputs > 1 else values[0]

    # Constants

    def initializer(self, name: str, tensor: Tensor) -> Value:
        """A tensor that the model keeps."""
        name = self.name(name)
        self.initializers[name] = tensor
        return Value(name, tensor.dtype, tuple(tensor.shape))

    def constant(self, value: Any, dtype: rl.dtype = rl.int64) -> Value:
        """A small tensor from numbers; equal ones are kept once."""
        key = (str(value), dtype)
        if key not in self._constants:
            self._constants[key] = self.initializer("constant", rl.tensor(value, dtype=dtype))
        return self._constants[key]

    def number(self, value: Any, like: Value) -> Value:
        """A number as a tensor of the dtype of another one; a tensor is cast to it."""
        if isinstance(value, Value):
            return self.cast(value, like.dtype)
        return self.constant(value, like.dtype)

    def ints(self, values: Iterable[Any]) -> Value:
        """Integers and sizes as a tensor of one dimension."""
        values = list(values)
        if all(isinstance(value, int) for value in values):
            return self.constant([int(value) for value in values])
        parts = [
            self.op("Reshape", self.cast(value, rl.int64), self.constant([1]))
            if isinstance(value, Value)
            else self.constant([value])
            for value in values
        ]
        return self.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    # What converters share

    def cast(self, value: Value, dtype: rl.dtype) -> Value:
        """A value in another dtype."""
        if value.dtype is dtype:
            return value
        cast = self.op("Cast", value, to=element_type(dtype), dtype=dtype)
        return replace(cast, shape=value.shape)

    def shape(self, value: Value) -> Value:
        """The sizes of a value as a tensor."""
        if value.shape is not None and all(isinstance(size, int) for size in value.shape):
            return self.constant(list(value.shape))
        return self.op("Shape", value, dtype=rl.int64)

    def size(self, value: Value, dim: int) -> Any:
        """One size: an integer where it cannot change, a value where it can."""
        if value.shape is not None and isinstance(value.shape[dim], int):
            return value.shape[dim]
        axis = dim if value.shape is None or dim >= 0 else dim + len(value.shape)
        sizes = self.op("Shape", value, dtype=rl.int64)
        return self.op("Gather", sizes, self.constant(axis), axis=0)

    def reshape(self, value: Value, sizes: Sequence[Any]) -> Value:
        """A value in another shape."""
        shaped = self.op("Reshape", value, self.ints(sizes), allowzero=None)
        static = all(isinstance(size, int) and size >= 0 for size in sizes)
        return replace(shaped, shape=tuple(sizes)) if static else shaped

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """A value with its dimensions in another order."""
        if list(order) == list(range(len(order))):
            return value
        shape = None if value.shape is None else tuple(value.shape[i] for i in order)
        return replace(self.op("Transpose", value, perm=list(order)), shape=shape)

    def unsqueeze(self, value: Value, *dims: int) -> Value:
        """A value with dimensions of size 1 inserted."""
        return self.op("Unsqueeze", value, self.constant(list(dims)))

    def squeeze(self, value: Value, *dims: int) -> Value:
        """A value without some dimensions of size 1."""
        return self.op("Squeeze", value, self.constant(list(dims)))

    def slice(self, value: Value, dim: int, start: Any, stop: Any, step: int = 1) -> Value:
        """A part of a value along a dimension."""
        bounds = (
            self.ints([start]),
            self.ints([stop]),
            self.constant([dim]),
            self.constant([step]),
        )
        return self.op("Slice", value, *bounds)

    def reduce(self, kind: str, value: Value, dims: Sequence[int] | None, keepdim: bool) -> Value:
        """A reduction over some dimensions; None or none of them is all."""
        axes = self.constant(list(dims)) if dims else None
        return self.op(kind, value, axes, keepdims=int(keepdim))

    def refuse(self, reason: str) -> NoReturn:
        """Says that what the program calls has no ONNX form."""
        name = getattr(self.node.target, "__name__", str(self.node.target))
        raise UnsupportedOperatorError(name, str(self.node.meta.get("site")), reason)
