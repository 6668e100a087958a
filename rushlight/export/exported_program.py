"""ExportedProgram: a recorded module as a graph whose inputs are its parameters too."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.export._program import Program
from rushlight.export.dynamic_shapes import Dim
from rushlight.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.shape_prop import TensorMetadata, _extract_tensor_metadata

__all__ = ["ExportedProgram"]

_PREFIXES = {InputKind.PARAMETER: "p", InputKind.BUFFER: "b", InputKind.CONSTANT_TENSOR: "c"}


class ExportedProgram:
    """A module as it ran on an example; see torch.export.export.

    Attributes:
        graph_module: runs the graph: takes all parameters, buffers and constants before the user's
            inputs, and returns a flat tuple.
        graph_signature: what its inputs and outputs mean.
        state_dict: parameters and persistent buffers by path.
        constants: other tensors by path.
        example_inputs: the arguments and keyword arguments of the export; None after load.

    The nodes of its graph note in meta["val"] what they are in the example: tensors on meta, or
    numbers.
    """

    def __init__(
        self,
        program: Program,
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
    ) -> None:
        self._program = program
        self.example_inputs = example_inputs
        graph, self.graph_signature = _lifted(program)
        self.graph_module = GraphModule({}, graph)
        temporary = program.temporary
        self.state_dict = {k: v for k, v in program.tensors.items() if k not in temporary}
        self.constants = {k: v for k, v in program.tensors.items() if k in temporary}

    def module(self) -> GraphModule:
        """Returns a module that takes the arguments that the exported one took.

        It has the same parameters, under the same paths, and refuses arguments whose shapes and
        dtypes the export does not cover.
        """
        return self._program.module()

    def run_decompositions(self, decomp_table: Mapping[Any, Any] | None = None) -> ExportedProgram:
        """Returns a copy of the program: its ops are Rushlight's own, which are not made of others.

        Args:
            decomp_table: functions in the place of ops; PyTorch's names of ops do not occur here.

        Raises:
            NotImplementedError: if there is such a function.
        """
        if decomp_table:
            raise NotImplementedError(
                "run_decompositions: the ops of the program are Rushlight's, which a table cannot "
                "name. Change the nodes of module().graph instead."
            )
        return ExportedProgram(copy.copy(self._program), self.example_inputs)

    @property
    def graph(self) -> Graph:
        """The graph of graph_module."""
        return self.graph_module.graph

    @property
    def range_constraints(self) -> dict[str, Dim]:
        """The Dims that the inputs' sizes follow, by name."""
        sizes = [size for leaf in self._program.calling.inputs for size in leaf.shape]
        return {dim.root.__name__: dim.root for dim in sizes if not isinstance(dim, int)}

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yields the parameters with their paths."""
        for path, tensor in self._program.tensors.items():
            if isinstance(tensor, nn.Parameter):
                yield path, tensor

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yields the parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yields the buffers with their paths."""
        for path in self.graph_signature.buffers:
            yield path, self._program.tensors[path]

    def buffers(self) -> Iterator[Tensor]:
        """Yields the buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` "
            "instead."
        )

    def __str__(self) -> str:
        body = self.graph_module.print_readable(print_output=False)
        code = "".join(f"    {line}\n" for line in body.splitlines())
        return (
            f"ExportedProgram:\n{code}\nGraph signature: {self.graph_signature}"
            f"Range constraints: {self.range_constraints}\n"
        )

    __repr__ = __str__


def _lifted(program: Program) -> tuple[Graph, ExportGraphSignature]:
    """The graph with parameters, buffers and constants as inputs."""
    graph, made = Graph(), {}
    specs, by_path = [], {}
    constants = {node.target for node in program.graph.find_nodes(op="get_attr")}
    for kind in _PREFIXES:
        for path, tensor in program.tensors.items():
            if _kind(program, path, tensor) is kind and (
                kind is not InputKind.CONSTANT_TENSOR or path in constants
            ):
                name = re.sub(r"\W", "_", path).strip("_")
                node = graph.placeholder(f"{_PREFIXES[kind]}_{name}")
                node.meta["val"] = _in_example(_extract_tensor_metadata(tensor))
                by_path[path] = node
                persistent = path not in program.temporary if kind is InputKind.BUFFER else None
                specs.append(InputSpec(kind, TensorArgument(node.name), path, persistent))
    for node in program.graph.nodes:
        if node.op == "get_attr":
            made[node] = by_path[node.target]
        elif node.op != "output":
            made[node] = graph.node_copy(node, lambda n: made[n])
            if "tensor_meta" in node.meta:  # not in files
                made[node].meta["val"] = _in_example(node.meta["tensor_meta"])
        if node.op == "placeholder":
            argument = TensorArgument(made[node].name)
            specs.append(InputSpec(InputKind.USER_INPUT, argument, None))
    results = program.graph.output_node().args[0]
    assert isinstance(results, (list, tuple))
    graph.output(tuple(made[r] if isinstance(r, Node) else r for r in results))
    outputs = [
        TensorArgument(made[r].name) if isinstance(r, Node) else ConstantArgument("", r)
        for r in results
    ]
    kind = OutputKind.USER_OUTPUT
    return graph, ExportGraphSignature(specs, [OutputSpec(kind, arg, None) for arg in outputs])


def _in_example(noted: Any) -> Any:
    """A result from what was noted of it."""
    if isinstance(noted, TensorMetadata):
        return rl.empty_strided(noted.shape, noted.stride, dtype=noted.dtype, device="meta")
    return [*map(_in_example, noted)] if isinstance(noted, (list, tuple)) else noted


def _kind(program: Program, path: str, tensor: Tensor) -> InputKind:
    if isinstance(tensor, nn.Parameter):
        return InputKind.PARAMETER
    return InputKind.CONSTANT_TENSOR if path in program.constants else InputKind.BUFFER
