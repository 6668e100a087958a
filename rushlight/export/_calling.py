"""How a recorded program is called: arguments to the graph's inputs, its outputs to results.

Owns the check that arguments fit the recording, and the part of the generated code that does this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rushlight import Tensor, dtype
from rushlight.export.dynamic_shapes import Dim
from rushlight.fx.graph import CodeGen
from rushlight.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

__all__ = ["Calling", "Constant", "Input"]


@dataclass(frozen=True)
class Input:
    """A tensor among the arguments.

    Attributes:
        name: that of the graph's placeholder.
        shape: its sizes, a Dim where they may change.
    """

    name: str
    dtype: dtype
    shape: tuple[int | Dim, ...]


@dataclass(frozen=True)
class Constant:
    """An argument that is no tensor, which the recording knows."""

    value: Any


class Calling(CodeGen):
    """Writes code that takes arguments as the recorded program did.

    Args:
        names: of the parameters of forward that were given; *args and **kwargs with their stars.
        in_spec: how the arguments, a list in the order of names, are made of leaves.
        leaves: what the leaves are.
        out_spec: how the results are made of the graph's outputs.
        is_checked: whether shapes and dtypes must be those of the recording.
    """

    def __init__(
        self,
        names: list[str],
        in_spec: TreeSpec,
        leaves: list[Input | Constant],
        out_spec: TreeSpec,
        is_checked: bool = True,
    ) -> None:
        self.names = names
        self.in_spec = in_spec
        self.leaves = leaves
        self.out_spec = out_spec
        self.is_checked = is_checked

    def __deepcopy__(self, memo: dict[int, Any]) -> Calling:
        return self

    @property
    def inputs(self) -> list[Input]:
        """The tensors among the leaves."""
        return [leaf for leaf in self.leaves if isinstance(leaf, Input)]

    # What CodeGen asks

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        head = f"def forward({', '.join(['self', *self.names])}){maybe_return_annotation}:"
        if free_vars == self.names and not self.is_checked:
            return head
        given = ", ".join(name.lstrip("*") for name in self.names)
        return f"{head}\n    [{', '.join(free_vars)}] = _inputs({given})"

    def generate_output(self, output_args: Any) -> str:
        text = f"{output_args!r}"
        if self.out_spec.is_leaf():
            return f"return {text.removeprefix('(').removesuffix(',)')}"
        is_flat = self.out_spec.type is tuple and all(c.is_leaf() for c in self.out_spec.children())
        return f"return {text}" if is_flat else f"return _outputs({text})"

    def process_inputs(self, *args: Any) -> Any:
        return self._inputs(*args)

    def process_outputs(self, outputs: Any) -> Any:
        return self._outputs(outputs)

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [("_inputs", self._inputs), ("_outputs", self._outputs)]

    # What the code calls

    def _outputs(self, results: Sequence[Any]) -> Any:
        return tree_unflatten(results, self.out_spec)

    def _inputs(self, *arguments: Any) -> list[Tensor]:
        """The tensors among the arguments, in the order of the placeholders."""
        given, spec = tree_flatten(list(arguments))
        if spec != self.in_spec:
            raise ValueError(
                f"forward: the arguments {', '.join(self.names)} are nested as {spec}, but the "
                f"recording had {self.in_spec}. Call it with arguments of the same kinds."
            )
        sizes: dict[str, int] = {}
        for leaf, value in zip(self.leaves, given, strict=True):
            if isinstance(leaf, Input):
                if not isinstance(value, Tensor):
                    raise TypeError(f"forward: {leaf.name} must be a Tensor, not {value!r}.")
                if self.is_checked:
                    _check(leaf, value, sizes)
            elif not _is_same(value, leaf.value):
                raise ValueError(
                    f"forward: an argument is {value!r}, but the program was recorded with "
                    f"{leaf.value!r}. Record it again for other values."
                )
        return [v for leaf, v in zip(self.leaves, given, strict=True) if isinstance(leaf, Input)]


def _is_same(a: Any, b: Any) -> bool:
    """Whether two arguments cannot be told apart; those that do not compare can."""
    if a is b or type(a) is not type(b):
        return a is b
    try:
        return bool(a == b) or bool(a != a and b != b)  # NaN
    except Exception:
        return False


def _check(leaf: Input, value: Tensor, sizes: dict[str, int]) -> None:
    """Refuses what the recording is not for; notes the sizes of Dims."""

    def refuse(what: str, rule: str) -> None:
        raise AssertionError(f"forward: {leaf.name} has {what}. {rule}")

    if value.dtype != leaf.dtype:
        refuse(f"dtype {value.dtype}", f"The recording is for {leaf.dtype}.")
    if value.dim() != len(leaf.shape):
        refuse(f"shape {tuple(value.shape)}", f"The recording has {len(leaf.shape)} dimensions.")
    for place, (size, meant) in enumerate(zip(value.shape, leaf.shape, strict=True)):
        if isinstance(meant, Dim):
            root = meant.root_at(size)
            if root is None:
                refuse(f"size {size} in dimension {place}", f"It must be a value of {meant!r}.")
            elif sizes.setdefault(meant.root.__name__, root) != root:
                refuse(
                    f"size {size} in dimension {place}, its {meant.__name__}",
                    f"Another input says that it is {meant.at(sizes[meant.root.__name__])}.",
                )
        elif size != meant:
            refuse(
                f"size {size} in dimension {place}",
                f"The recording is for {meant}; dynamic_shapes says what may change.",
            )
