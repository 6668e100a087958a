"""Sizes that may change: recordings of one program at several sizes become one graph.

Where the recordings differ in an integer, it is found among the sizes of the tensors before, or as
a number times one, plus another, or as a product of two: that becomes a step of the graph. The
three sizes are unevenly spaced, so that rounding shows. What is not found so cannot change.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import Tensor
from rushlight.export.dynamic_shapes import Dim
from rushlight.fx.node import Node
from rushlight.fx.passes.shape_prop import TensorMetadata

if TYPE_CHECKING:
    from rushlight.export._recording import Recording

__all__ = ["merge", "resized", "trial_sizes"]

_Sequence = tuple[int, ...]  # an integer in each of the recordings


def trial_sizes(roots: dict[Dim, int]) -> list[dict[Dim, int]]:
    """Sizes at which to record: three for each Dim, whose steps differ from those of the others.

    Args:
        roots: Dims that follow no other, with their sizes in the example.

    Raises:
        ValueError: if a Dim has fewer than three sizes above 1.
    """
    trials: list[dict[Dim, int]] = [{}, {}, {}]
    for number, (dim, size) in enumerate(roots.items(), 1):
        steps = (0, number, 2 * number + 1)
        start = max(size, dim.min, 2)
        if start + steps[-1] > dim.max:
            start, steps = int(dim.max), tuple(-step for step in steps)
        if start + min(steps) < max(dim.min, 1):
            raise ValueError(
                f"export: {dim!r} has too few sizes to find out what depends on it. Give it a "
                "wider range, or None for a size that does not change."
            )
        for trial, step in zip(trials, steps, strict=True):
            trial[dim] = start + step
    return trials


def resized(tensor: Tensor, dims: dict[int, Dim], sizes: dict[Dim, int]) -> Tensor:
    """An example of another size, made of the elements of the given one."""
    for place, dim in dims.items():
        size, wanted = tensor.shape[place], dim.at(sizes[dim.root])
        if size == 0:
            raise ValueError("export: an example with no elements cannot be enlarged. Use size 2.")
        if size != wanted:
            tensor = tensor.index_select(place, rl.arange(wanted, device=tensor.device) % size)
    return tensor


def merge(recordings: Sequence[Recording], roots: dict[str, _Sequence]) -> None:
    """Makes the first recording hold for all sizes.

    Its nodes note in meta the "shape" of their results: an integer for each size that is the same
    in all recordings, else the name of the root that it equals, or another.

    Args:
        recordings: of one program at several sizes.
        roots: the sizes that were changed, by name.

    Raises:
        ValueError: if the program depends on a size in another way.
    """
    _Merge(recordings, roots).run()


class _Merge:
    def __init__(self, recordings: Sequence[Recording], roots: dict[str, _Sequence]) -> None:
        self._recordings = recordings
        self._graph = recordings[0].graph
        self._what = " and ".join(roots)
        self._names = {sizes: name for name, sizes in roots.items()}
        self._sources: dict[_Sequence, tuple[Node, int]] = {}  # a size that varies like this
        self._made: dict[_Sequence, Node] = {}
        self._node: Node  # the one that is looked at

    def run(self) -> None:
        rows = list(itertools.zip_longest(*(list(r.graph.nodes) for r in self._recordings)))
        places = [{node: i for i, node in enumerate(r.graph.nodes)} for r in self._recordings]
        self._places = places
        for row in rows:
            self._check_same_step(row)
            self._node = row[0]
            args = self._merged([node.args for node in row])
            kwargs = self._merged([node.kwargs for node in row])
            self._node.args, self._node.kwargs = args, kwargs
            self._learn(row)

    def _check_same_step(self, row: tuple[Node | None, ...]) -> None:
        present = [node for node in row if node is not None]
        steps = {(node.op, node.target) for node in present}
        if len(present) == len(row) and len(steps) == 1:
            if present[0].op == "get_attr":
                self._check_same_constant(present[0].target)
            return
        sites = " or ".join(dict.fromkeys(f"{n.target} ({n.meta.get('site')})" for n in present))
        raise ValueError(
            f"export: which ops run depends on {self._what}: {sites}. The recording follows one "
            "way. Let the size be static, or write the choice with ops."
        )

    def _check_same_constant(self, path: str) -> None:
        first, *others = (recording.tensors[path] for recording in self._recordings)
        for other in others:
            if other is not first and not (
                other.shape == first.shape and other.dtype == first.dtype and rl.equal(other, first)
            ):
                raise ValueError(
                    f"export: the program makes a constant of shape {tuple(first.shape)} that "
                    f"depends on {self._what}, by something that is no op, such as torch.tensor. "
                    "Make it with ops, such as torch.full or torch.arange."
                )

    def _merged(self, values: Sequence[Any]) -> Any:
        first = values[0]
        if isinstance(first, Node):
            if len({p.get(v) for p, v in zip(self._places, values, strict=True)}) == 1:
                return first
        elif isinstance(first, slice):
            parts = [(v.start, v.stop, v.step) for v in values]
            return slice(*self._merged(parts))
        elif isinstance(first, (list, tuple)):
            if len({len(v) for v in values}) == 1:
                items = [self._merged(column) for column in zip(*values, strict=True)]
                return items if isinstance(first, list) else tuple(items)
        elif isinstance(first, dict):
            if len({tuple(v) for v in values}) == 1:
                return {key: self._merged([v[key] for v in values]) for key in first}
        elif all((type(v) is type(first) and v == first) or v is first for v in values):
            return first
        elif all(type(v) is int for v in values):
            found = self._find(tuple(values))
            if found is not None:
                return found
        shown = ", ".join(map(repr, values))
        raise ValueError(
            f"export: {self._node.target} at {self._node.meta.get('site')} has an argument that "
            f"depends on {self._what}: {shown}. Only sizes of tensors, their products and their "
            "sums with numbers can. Let the size be static, or compute it from x.shape."
        )

    # Integers as sizes

    def _learn(self, row: Sequence[Node]) -> None:
        """Notes the shapes of what a step returns, and sizes that differ between the recordings."""
        metas = [node.meta.get("tensor_meta") for node in row]
        if isinstance(metas[0], TensorMetadata):
            shapes: list[Any] = [getattr(meta, "shape", ()) for meta in metas]
            row[0].meta["shape"] = self._shape(shapes)
            if "sized_by_elements" in row[0].meta:
                row[0].meta["shape"] = tuple(f"{row[0].name}_{d}" for d in range(len(shapes[0])))
            for place, sizes in enumerate(zip(*shapes, strict=True)):
                if len(set(sizes)) > 1:
                    self._sources.setdefault(tuple(sizes), (row[0], place))
        elif isinstance(metas[0], (tuple, list)):
            row[0].meta["shape"] = [
                self._shape([getattr(meta, "shape", ()) for meta in items])
                for items in zip(*metas, strict=True)
            ]

    def _shape(self, shapes: Sequence[Sequence[int]]) -> tuple[int | str, ...]:
        if len({len(shape) for shape in shapes}) > 1:
            raise ValueError(
                f"export: the number of dimensions of {self._node.target} at "
                f"{self._node.meta.get('site')} depends on {self._what}. Let the size be static."
            )
        return tuple(
            sizes[0]
            if len(set(sizes)) == 1
            else self._names.setdefault(tuple(sizes), f"size{len(self._names)}")
            for sizes in zip(*shapes, strict=True)
        )

    def _find(self, values: _Sequence) -> Node | None:
        if values in self._made:
            return self._made[values]
        node = self._expression(values)
        if node is not None:
            self._made[values] = node
        return node

    def _expression(self, values: _Sequence) -> Node | None:
        if values in self._sources:
            return self._size(values)
        for sizes in self._sources:
            scale, rest = divmod(values[1] - values[0], sizes[1] - sizes[0] or 1)
            offset = values[0] - scale * sizes[0]
            if scale and not rest and _all(values, (scale * s + offset for s in sizes)):
                scaled = self._call(operator.mul, self._size(sizes), scale)
                return self._call(operator.add, scaled, offset)
            divisor = sizes[0] // values[0] if values[0] > 0 else 0
            if divisor > 1 and _all(sizes, (v * divisor for v in values)):
                return self._call(operator.floordiv, self._size(sizes), divisor)
        for a, b in itertools.combinations_with_replacement(list(self._sources), 2):
            scale = values[0] // (a[0] * b[0] or 1)
            if scale and _all(values, (scale * x * y for x, y in zip(a, b, strict=True))):
                product = self._call(operator.mul, self._size(a), self._size(b))
                return self._call(operator.mul, product, scale)
        return None

    def _size(self, values: _Sequence) -> Node:
        """The step that asks a tensor for a size."""
        if values not in self._made:
            source, place = self._sources[values]
            with self._graph.inserting_after(_last_input(source)):
                self._made[values] = self._graph.call_method("size", (source, place))
        return self._made[values]

    def _call(self, function: Any, a: Node, b: Any) -> Node:
        """An arithmetic step before the current one; none where it changes nothing."""
        if (function is operator.mul and b == 1) or (function is operator.add and b == 0):
            return a
        if function is operator.add and b < 0:
            function, b = operator.sub, -b
        with self._graph.inserting_before(self._node):
            return self._graph.call_function(function, (a, b))


def _all(values: _Sequence, others: Any) -> bool:
    return all(a == b for a, b in zip(values, others, strict=True))


def _last_input(node: Node) -> Node:
    """The node itself, or the last placeholder: they stay together."""
    while node.op == "placeholder" and node.next.op == "placeholder":
        node = node.next
    return node
