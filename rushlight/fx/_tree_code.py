"""Code of graphs whose forward takes arguments made of several inputs, and gives such results."""

from __future__ import annotations

import re
from typing import Any

from rushlight.fx._code import CodeGen
from rushlight.utils import _pytree as pytree

__all__ = ["TreeCodeGen"]


class TreeCodeGen(CodeGen):
    """Takes arguments apart and puts the result together, as the function had them.

    Args:
        names: of the arguments.
        in_spec: how the tuple of arguments is made of the graph's inputs.
        out_spec: how the result is made of the graph's; None if that is the result.
    """

    def __init__(
        self, names: list[str], in_spec: pytree.TreeSpec, out_spec: pytree.TreeSpec | None
    ) -> None:
        self.names = names
        self.in_spec = in_spec
        self.out_spec = out_spec

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        head = f"def forward(self, {', '.join(self.names)}){maybe_return_annotation}:"
        if not free_vars:
            return head
        # Without annotations and defaults, which only parameters have.
        names = [re.split(r"\W", variable)[0] for variable in free_vars]
        inputs = f"self._graph._codegen.process_inputs({', '.join(self.names)})"
        return f"{head}\n    {', '.join(names)}, = {inputs}"

    def generate_output(self, output_args: Any) -> str:
        if self.out_spec is None:
            return super().generate_output(output_args)
        return f"return self._graph._codegen.process_outputs({output_args!r})"

    def process_inputs(self, *args: Any) -> Any:
        leaves, spec = pytree.tree_flatten(args)
        if spec != self.in_spec:
            raise ValueError(f"the arguments are {spec}, those that were traced {self.in_spec}.")
        return leaves

    def process_outputs(self, outputs: Any) -> Any:
        if self.out_spec is None:
            return outputs
        return pytree.tree_unflatten(outputs, self.out_spec)
