"""Changes of exported programs."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.export.exported_program import ExportedProgram
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, map_aggregate
from rushlight.utils._pytree import tree_map_only

__all__ = ["move_to_device_pass"]


def move_to_device_pass(
    ep: ExportedProgram, location: rl.device | str | dict[str, str]
) -> ExportedProgram:
    """Moves an exported program to another device, and returns it.

    Its tensors, its example, and the devices that its steps name are moved. Steps that make tensors
    on the default device, which was the CPU, name one from then on.

    Args:
        ep: the program.
        location: the device; or those that take the place of others, by name.

    Example:
        >>> from rushlight.export.passes import move_to_device_pass
        >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
        >>> moved = move_to_device_pass(program, "meta")
        >>> moved.module()(torch.ones(1, 2, device="meta")).device
        device(type='meta')
    """

    def place(before: rl.device | str) -> rl.device:
        if isinstance(location, dict):
            return rl.device(location.get(str(before), before))
        return rl.device(location)

    moved: dict[int, Tensor] = {}  # a tensor that has two names stays one

    def move(tensor: Tensor) -> Tensor:
        if id(tensor) not in moved:
            made = tensor.detach().to(place(tensor.device))
            is_param = isinstance(tensor, nn.Parameter)
            moved[id(tensor)] = nn.Parameter(made, tensor.requires_grad) if is_param else made
        return moved[id(tensor)]

    def move_steps(graph: Graph) -> None:
        def placed(value: Any) -> Any:
            return place(value) if isinstance(value, rl.device) else value

        fresh = _fresh(graph)
        for node in graph.nodes:
            node.args, kwargs = map_aggregate(node.args, placed), map_aggregate(node.kwargs, placed)
            named = node.kwargs.get("device")
            if node in fresh or isinstance(named, str):
                kwargs = {**kwargs, "device": place(named or "cpu")}
            node.kwargs = kwargs

    program = ep._program
    program.tensors = {path: move(tensor) for path, tensor in program.tensors.items()}
    ep.state_dict = {path: move(tensor) for path, tensor in ep.state_dict.items()}
    ep.constants = {path: move(tensor) for path, tensor in ep.constants.items()}
    if ep.example_inputs is not None:
        ep.example_inputs = tree_map_only(Tensor, move, ep.example_inputs)
    move_steps(program.graph)
    move_steps(ep.graph_module.graph)
    ep.graph_module.recompile()
    return ep


def _fresh(graph: Graph) -> set[Node]:
    """The steps that make tensors of numbers alone."""
    numbers: set[Node] = set()
    fresh: set[Node] = set()
    for node in graph.nodes:
        sources = node.all_input_nodes
        if node.op == "call_method" and node.target == "size":
            numbers.add(node)
        elif node.op == "call_function" and numbers.issuperset(sources):
            counts = getattr(node.target, "__module__", "") == "_operator"
            (numbers if counts else fresh).add(node)
    return fresh
