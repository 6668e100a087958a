"""From a recorded program to an ONNX model.

Steps that depend on no input are run here and become constants. ONNX has no memory: what a program
writes in place gets a new value, and views of it are made anew when they are used again. A write
through a view scatters to the places that the same view of 0, 1, 2, ... shows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.export._program import Program
from rushlight.fx.node import Node, map_arg
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._custom import ALIASES, GraphContext, arguments, symbolic_of
from rushlight.onnx._ops import TABLE
from rushlight.onnx._ops._index import getitem
from rushlight.onnx.errors import UnsupportedOperatorError

__all__ = ["Converter"]


class Converter:
    """Converts one program.

    Args:
        program: the recording.
        opset: the version of ONNX's operators.
        folds: whether steps that depend on no input are run now.
        input_names: those that inputs get instead of their own, as far as there are any.
        output_names: those of outputs.

    Attributes:
        builder: holds the nodes and constants.
        inputs: the model's inputs.
        outputs: its outputs.
    """

    def __init__(
        self,
        program: Program,
        opset: int,
        folds: bool,
        input_names: Sequence[str],
        output_names: Sequence[str],
    ) -> None:
        self.builder = Builder(opset, [*input_names, *output_names])
        self._input_names = iter(input_names)
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self._program = program
        self._folds = folds
        self._known: dict[Node, Any] = {}  # results of steps that depend on no input
        self._values: dict[Node, tuple[int, Any]] = {}  # with the version of their memory
        self._initializers: dict[tuple[int, int], Value] = {}  # by tensor and version
        self._bases: dict[Any, Node] = {}  # the first node of each piece of memory
        self._versions: dict[Any, int] = {}  # of memory that was written to
        self._shadow: dict[Node, Value] | None = None  # see _places
        self._shadow_storage: Any = None
        self._writers: dict[Any, Node] = {}  # for each piece of memory who writes to it
        for node in program.graph.nodes:
            for target in node.meta.get("written", ()):
                self._writers.setdefault(target.meta.get("storage"), node)

    def run(self) -> None:
        """Converts all steps."""
        with rl.no_grad():
            for node in self._program.graph.nodes:
                self.builder.node = node
                if node.op == "placeholder":
                    name = next(self._input_names, None) or self.builder.name(node.target)
                    meta = node.meta["tensor_meta"]
                    value = Value(name, meta.dtype, node.meta["shape"])
                    self.inputs.append(value)
                    self._values[node] = 0, value
                elif node.op == "output":
                    self._finish(node.args[0])
                else:
                    self._step(node)
                if "storage" in node.meta:
                    self._bases.setdefault(node.meta["storage"], node)

    def _finish(self, results: Any) -> None:
        for result in results:
            if isinstance(result, Node):
                value = self._current(result)
            elif result is None:
                continue  # ONNX has no None
            elif isinstance(result, (bool, int, float)):
                value = self.builder.constant(result, rl.tensor(result).dtype)
            else:
                self.builder.refuse(f"the model returns {result!r}")
            self.outputs.append(value)

    def _step(self, node: Node) -> None:
        used = node.all_input_nodes
        fixed = node.meta.get("storage") not in self._versions and all(
            n in self._known and n.meta.get("storage") not in self._versions for n in used
        )
        if node.op == "get_attr":
            writer = self._writers.get(node.meta.get("storage"))
            if writer is not None:
                self.builder.node = writer
                self.builder.refuse(
                    f"it writes to {node.target}, but a model in ONNX has no memory"
                )
            self._known[node] = self._program.tensors[node.target]
        elif fixed and (self._folds or not used) and node.op == "call_function":
            self._check_not_random(node)
            args, kwargs = map_arg((node.args, node.kwargs), lambda n: self._known[n])
            self._known[node] = node.target(*args, **kwargs)
        elif node.meta.get("written"):
            self._write(node)
        else:
            version = self._versions.get(node.meta.get("storage"), 0)
            self._values[node] = version, self._convert(node)

    def _check_not_random(self, node: Node) -> None:
        if _base_name(node.target) in _RANDOM:
            self.builder.node = node
            self.builder.refuse("random numbers have no ONNX form that gives the same ones")

    # What nodes are now

    def _current(self, node: Node) -> Any:
        """The value of a node after all writes so far."""
        storage = node.meta.get("storage")
        if self._shadow is not None and storage == self._shadow_storage:
            if node not in self._shadow:
                self._shadow[node] = self._again(node)
            return self._shadow[node]
        version = self._versions.get(storage, 0)
        if node in self._known and not version:
            return self._initializer(node, self._known[node])
        made = self._values.get(node)
        if made is None or made[0] != version:
            made = version, self._again(node)
            self._values[node] = made
        return made[1]

    def _again(self, node: Node) -> Any:
        """A node's value from what it shares memory with."""
        written = node.meta.get("written")
        if written:
            return self._current(written[0])
        before, self.builder.node = self.builder.node, node
        value = self._convert(node)
        self.builder.node = before
        return value

    def _initializer(self, node: Node, value: Any) -> Any:
        """A known value as a constant of the model."""
        if isinstance(value, (tuple, list)):
            return type(value)(self._initializer(node, item) for item in value)
        if not isinstance(value, Tensor):
            return value
        key = id(value), value._version
        if key not in self._initializers:
            name = node.target if node.op == "get_attr" else node.name
            held = value.clone() if node.meta.get("storage") in self._writers else value
            self._initializers[key] = self.builder.initializer(name, held)
        return self._initializers[key]

    def _convert(self, node: Node) -> Any:
        """Adds the nodes of a step."""
        if node.op == "call_method":  # only size is recorded so
            source, place = node.args
            assert isinstance(source, Node)
            return self.builder.size(self._current(source), place)
        if node.target is operator.getitem:
            source = self._current(node.args[0])
            if isinstance(source, (tuple, list)):
                return source[node.args[1]]
        args, kwargs = map_arg((node.args, node.kwargs), self._current)
        return self._call(node, args, kwargs)

    def _call(self, node: Node, args: Any, kwargs: dict[str, Any]) -> Any:
        """What the converter of a node's op makes of some arguments."""
        symbolic = symbolic_of(node.target, _base_name(node.target), self.builder.opset)
        if symbolic is not None:
            made = symbolic(GraphContext(self.builder), *arguments(node.target, args, kwargs))
            return self._as_noted(node, made)
        converter = self._converter(node)
        kwargs = {ALIASES.get(key, key): value for key, value in kwargs.items()}
        if kwargs.pop("out", None) is not None:
            self.builder.refuse("out= has no ONNX form")
        try:
            made = converter(self.builder, *args, **kwargs)
        except TypeError as error:
            if "argument" not in str(error):
                raise
            self.builder.refuse(str(error))
        meta = node.meta.get("tensor_meta")
        if meta is None:
            return made
        if isinstance(made, Value):
            return self._described(made, meta.dtype, node.meta["shape"])
        return tuple(
            self._described(value, m.dtype, shape) if isinstance(value, Value) else value
            for value, m, shape in zip(made, meta, node.meta["shape"], strict=False)
        )

    def _as_noted(self, node: Node, made: Any) -> Any:
        """What a symbolic function has made, with the dtypes and shapes of the recording."""
        meta, shape = node.meta.get("tensor_meta"), node.meta.get("shape")
        if isinstance(made, Value):
            return replace(made, dtype=meta.dtype, shape=shape) if meta is not None else made
        return tuple(
            replace(value, dtype=m.dtype, shape=sizes)
            for value, m, sizes in zip(made, meta or (), shape or (), strict=True)
        )

    def _described(self, value: Value, dtype: rl.dtype, shape: Any) -> Value:
        if self._shadow is not None:  # places remain integers
            dtype = value.dtype
        return replace(self.builder.cast(value, dtype), shape=shape)

    def _converter(self, node: Node) -> Callable[..., Any]:
        self._check_not_random(node)
        name = _base_name(node.target)
        home = getattr(node.target, "__module__", "").removeprefix("rushlight.")
        found = TABLE.get(f"{home}.{name}") or TABLE.get(name)
        if found is None:
            raise UnsupportedOperatorError(name, str(node.meta.get("site")))
        return found

    # Writes

    def _write(self, node: Node) -> None:
        """Gives what a step writes to its new value."""
        target, *others = node.meta["written"]
        if others:
            self.builder.refuse("it writes to several tensors")
        if target in self._known and target.meta.get("storage") not in self._versions:
            self._current(target)  # its present value stays a constant
            self._let_vary(target.meta["storage"])
        if node.target is operator.setitem:
            _, index, value = map_arg(node.args, lambda n: n if n is target else self._current(n))
            self._set_items(target, index, value)
        else:
            args, kwargs = map_arg((node.args, node.kwargs), self._current)
            made = self._call(node, args, kwargs)
            self._store(target, made)
        if "tensor_meta" in node.meta:
            version = self._versions.get(node.meta.get("storage"), 0)
            self._values[node] = version, self._current(target)

    def _let_vary(self, storage: Any) -> None:
        """Memory that was constant gets its first value from an input."""
        base = self._bases[storage]
        self._values[base] = 1, self._initializer(base, self._known[base])
        self._versions[storage] = 1

    def _store(self, target: Node, value: Value) -> None:
        """Writes a value to all of a tensor."""
        base = self._bases[target.meta["storage"]]
        if _same_place(target, base):
            self._set_base(base, self.builder.cast(value, self._current(base).dtype))
        else:
            self._scatter(base, self._places(target, base), value)

    def _set_items(self, target: Node, index: Any, value: Any) -> None:
        """Writes to what an index selects."""
        builder, base = self.builder, self._bases[target.meta["storage"]]
        current = self._current(target)
        if not isinstance(value, Value):
            value = builder.constant(value, current.dtype)
        mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
        if isinstance(mask, Value) and mask.dtype is rl.bool and value.shape == ():
            if mask.rank < current.rank:
                mask = builder.unsqueeze(mask, *range(mask.rank, current.rank))
            chosen = builder.op(
                "Where", mask, builder.cast(value, current.dtype), current, dtype=current.dtype
            )
            self._store(target, replace(chosen, shape=current.shape))
            return
        places = getitem(builder, self._places(target, base), index)
        sizes = builder.op("Shape", places, dtype=rl.int64)
        spread = builder.op("Expand", builder.cast(value, current.dtype), sizes)
        self._scatter(base, places, spread)

    def _places(self, target: Node, base: Node) -> Value:
        """Where the elements of a view lie in its base, as a view of 0, 1, 2, ... in its shape."""
        builder, current = self.builder, self._current(base)
        sizes = builder.shape(current)
        count = builder.op("ReduceProd", sizes, keepdims=0)
        count = builder.op("Range", builder.constant(0), count, builder.constant(1))
        shaped = replace(builder.op("Reshape", count, sizes), shape=current.shape)
        self._shadow, self._shadow_storage = {base: shaped}, target.meta["storage"]
        try:
            return self._current(target)
        finally:
            self._shadow = None

    def _scatter(self, base: Node, places: Value, value: Value) -> None:
        builder, current = self.builder, self._current(base)
        flat = [
            builder.reshape(v, [-1]) for v in (current, places, builder.cast(value, current.dtype))
        ]
        changed = builder.op("ScatterElements", *flat, axis=0)
        shaped = builder.op("Reshape", changed, builder.shape(current))
        self._set_base(base, replace(shaped, shape=current.shape))

    def _set_base(self, base: Node, value: Value) -> None:
        storage = base.meta["storage"]
        self._versions[storage] = self._versions.get(storage, 0) + 1
        self._values[base] = self._versions[storage], value


_RANDOM = {
    *("bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randn"),
    *("randint_like", "randn_like", "randperm", "uniform", "exponential", "random", "geometric"),
    *("cauchy", "log_normal", "binomial"),
}


def _base_name(target: Any) -> str:
    """The name of an op, of its plain form if it is one in place."""
    name: str = getattr(target, "__name__", str(target))
    return name.rstrip("_") if not name.startswith("__") else name


def _same_place(node: Node, base: Node) -> bool:
    """Whether a node is the whole of its base."""
    if node is base:
        return True
    a, b = node.meta["tensor_meta"], base.meta["tensor_meta"]
    return (a.shape, a.stride) == (b.shape, b.stride)
