"""Cutting a network into stages by itself: its ops are recorded, and divided at marks.

The recording is that of torch.export. Every stage gets all that it needs from the one before, which
hands on what it does not use itself; so any order of stages over ranks will do.
"""

from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.distributed import ProcessGroup
from rushlight.distributed.pipelining.stage import PipelineStage
from rushlight.export import export
from rushlight.export._calling import Calling, Input
from rushlight.export._program import Program
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.overrides import handle_torch_function, has_torch_function
from rushlight.utils._pytree import tree_leaves, tree_structure

__all__ = ["Pipe", "PipeInfo", "SplitPoint", "build_stage", "pipe_split", "pipeline"]


class SplitPoint(Enum):
    """Where a submodule begins a stage or ends one, see pipeline."""

    BEGINNING = 1
    END = 2


def pipe_split() -> None:
    """Marks the end of a stage, in the forward of a module that pipeline cuts.

    Elsewhere it does nothing.
    """
    if has_torch_function(()):
        handle_torch_function(pipe_split, ())


pipe_split.is_mark = True  # pyright: ignore[reportFunctionMemberAccess]


def pipeline(
    module: nn.Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[GraphModule], GraphModule] | None = None,
) -> Pipe:
    """Returns a module cut into stages: at pipe_split() in its forward, or where an argument says.

    The module runs once on an example, and its ops are recorded; what torch.export says of sizes,
    control flow and the mode of training is true here, too. Stages have the module's own parameters
    under their own names. All arguments of step go to the first stage, by position or by name.

    Args:
        module: what is cut.
        mb_args: its arguments for one microbatch.
        mb_kwargs: its keyword arguments.
        split_spec: submodules by their paths, with which a stage begins or ends.
        split_policy: gets the recorded graph and returns it with calls of pipe_split.

    Raises:
        ValueError: if both are given, or a stage would write to memory of the one before.
        AttributeError: if there is no such submodule.
        RuntimeError: if the module cannot be recorded.

    Example:
        >>> from rushlight.distributed.pipelining import SplitPoint, pipeline
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        >>> pipe = pipeline(net, (torch.ones(2, 4),), split_spec={"2": SplitPoint.BEGINNING})
        >>> pipe.num_stages
        2
        >>> list(pipe.get_stage_module(1).state_dict())
        ['2.weight', '2.bias']
        >>> torch.equal(pipe(torch.ones(2, 4))[0], net(torch.ones(2, 4)))
        True
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError(
            "Cannot specify both `split_spec` and `split_policy`. Please use only one of them."
        )
    with _marked(module, split_spec or {}):
        program = export(module, mb_args, mb_kwargs)._program
    traced = program.module()
    if split_policy is not None:
        traced = split_policy(traced)
    return Pipe(program, traced.graph)


@contextlib.contextmanager
def _marked(module: nn.Module, spec: dict[str, SplitPoint]) -> Any:
    """Lets submodules mark where they begin or end, in the scope of a `with`."""
    handles = []
    try:
        for path, point in spec.items():
            part = module.get_submodule(path)
            register = {
                SplitPoint.BEGINNING: part.register_forward_pre_hook,
                SplitPoint.END: part.register_forward_hook,
            }.get(point)
            if register is None:
                raise ValueError(f"pipeline: {path} has {point!r}, which is no SplitPoint.")
            handles.append(register(lambda *_: pipe_split()))
        yield
    finally:
        for handle in handles:
            handle.remove()


@dataclass
class PipeInfo:
    """What build_stage knows of a Pipe.

    Attributes:
        num_stages: how many stages there are.
        has_loss_and_backward: False; losses are those of the schedule.
    """

    num_stages: int
    has_loss_and_backward: bool = False


class Pipe(nn.Module):
    """A network in stages, made by pipeline. Calling it runs all of them here.

    What it returns is a tuple of all tensors that the network returns, also if that is one.

    Attributes:
        split_gm: the stages, named submod_0 and so on.
        num_stages: how many there are.
        replicated_params: for each parameter that several stages use, its path by stage. Each stage
            has a copy; add their gradients up before the optimizer's step.
    """

    def __init__(self, program: Program, graph: Graph) -> None:
        super().__init__()
        self.split_gm = nn.Module()
        self.replicated_params: list[dict[str, str]] = []
        users: dict[str, dict[str, str]] = {}
        for number, part in enumerate(_divided(program, graph)):
            name = f"submod_{number}"
            for path, tensor in part.tensors.items():
                if isinstance(tensor, nn.Parameter):
                    users.setdefault(path, {})[name] = path
                    if len(users[path]) > 1:
                        part.tensors[path] = copy.deepcopy(tensor)
            self.split_gm.add_module(name, part.module())
        self.replicated_params = [paths for paths in users.values() if len(paths) > 1]
        self.num_stages = len(list(self.split_gm.children()))

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        value = self.get_stage_module(0)(*args, **kwargs)
        for number in range(1, self.num_stages):
            value = self.get_stage_module(number)(*value if isinstance(value, tuple) else (value,))
        return tuple(tree_leaves(value))

    def get_stage_module(self, stage_idx: int) -> GraphModule:
        """Returns the module of a stage.

        Raises:
            ValueError: if there is no such stage.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(
                f"Invalid stage index {stage_idx}! There are {self.num_stages} stages, from 0."
            )
        part = self.split_gm.get_submodule(f"submod_{stage_idx}")
        assert isinstance(part, GraphModule)
        return part

    def info(self) -> PipeInfo:
        """Returns what build_stage needs."""
        return PipeInfo(self.num_stages)

    def build_stage(
        self, stage_index: int, device: rl.device | str, group: ProcessGroup | None = None
    ) -> PipelineStage:
        """Returns a stage for the schedules; see build_stage."""
        return build_stage(
            self.get_stage_module(stage_index), stage_index, self.info(), device, group
        )


class _PipelineStage(PipelineStage):
    """A stage of a Pipe: what all stages need goes through the first."""

    def forward_one_chunk(
        self, fwd_chunk_id: int, args: Sequence[Any], kwargs: dict[str, Any] | None = None
    ) -> Any:
        return super().forward_one_chunk(fwd_chunk_id, args, kwargs if self.is_first else None)


def build_stage(
    stage_module: nn.Module,
    stage_index: int,
    pipe_info: PipeInfo,
    device: rl.device | str,
    group: ProcessGroup | None = None,
) -> PipelineStage:
    """Returns a stage of a Pipe for the schedules, moved to a device.

    Args:
        stage_module: of Pipe.get_stage_module, perhaps wrapped since.
        stage_index: which stage it is.
        pipe_info: of Pipe.info.
        device: where the stage runs; tensors that it makes are made there.
        group: the ranks of the pipeline; all by default.
    """
    device = rl.device(device)
    if isinstance(stage_module, GraphModule):
        for node in stage_module.graph.nodes:
            if node.op == "call_function" and "device" in node.kwargs:
                node.kwargs = {**node.kwargs, "device": device}
        stage_module.recompile()
    if not any(param.is_meta for param in stage_module.parameters()):
        stage_module.to(device)
    return _PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)


# Dividing a graph


def _divided(program: Program, graph: Graph) -> list[Program]:
    """A program as the programs of its stages."""
    homes = _homes(graph)
    count = max([0, *homes.values()]) + 1
    last_use = {node: max([-1, *map(homes.__getitem__, node.users)]) for node in homes}
    inputs = [  # of each stage, in the order in which they are made
        [node for node in homes if homes[node] < stage <= last_use[node]] for stage in range(count)
    ]
    inputs[0] = [node for node in homes if node.op == "placeholder"]
    return [
        _Stage(program, stage, homes, inputs[stage]).build(inputs[stage + 1 : stage + 2])
        for stage in range(count)
    ]


def _homes(graph: Graph) -> dict[Node, int]:
    """The stage of each node; -1 for inputs of the whole. Parameters are everywhere, not here."""
    homes: dict[Node, int] = {}
    stage, is_empty = 0, True
    for node in graph.nodes:
        if node.op == "placeholder":
            homes[node] = -1
        elif node.target is pipe_split:
            stage, is_empty = (stage, True) if is_empty else (stage + 1, True)
        elif node.op == "output":
            homes[node] = max([0, *homes.values()])
        elif node.op != "get_attr":
            source = node.args[0] if node.target is operator.getitem else None
            if isinstance(source, Node) and isinstance(
                source.meta.get("tensor_meta"), tuple | list
            ):
                homes[node] = homes[source]  # only tensors go from stage to stage
                continue
            homes[node], is_empty = stage, False
            for written in node.meta.get("written", ()):
                _check_is_near(node, stage, written, homes)
    return homes


def _check_is_near(node: Node, stage: int, written: Node, homes: dict[Node, int]) -> None:
    """Refuses an op that writes to what another stage has made; `written` may be of a copy."""
    home = next((homes[other] for other in homes if other.name == written.name), stage)
    if home not in (stage, -1):
        raise ValueError(
            f"pipeline: {node.name} of stage {stage} writes to {written.name}, which stage {home} "
            "has made. Split elsewhere, or use the op that returns a new tensor."
        )


class _Stage:
    """Writes the graph of a stage.

    Args:
        program: the whole.
        number: of the stage.
        homes: the stage of each node.
        inputs: what it gets.
    """

    def __init__(
        self, program: Program, number: int, homes: dict[Node, int], inputs: list[Node]
    ) -> None:
        self._program = program
        self._number = number
        self._homes = homes
        self._inputs = inputs
        self._graph = Graph()
        self._made: dict[Node, Node] = {}
        self._tensors: dict[str, Tensor] = {}

    def build(self, next_inputs: list[list[Node]]) -> Program:
        """Returns the program; `next_inputs` has what the next stage gets, if there is one."""
        whole = self._program.calling
        for node in self._inputs:
            self._made[node] = made = self._graph.placeholder(node.name)
            made.meta = dict(node.meta)
        results: Any = tuple(next_inputs[0]) if next_inputs else None
        for node, home in self._homes.items():
            if node.op == "output":
                results = node.args[0] if results is None else results
            elif home == self._number:
                self._made[node] = self._graph.node_copy(node, self._value)
        self._graph.output(map_arg(results, self._value))
        names = [self._made[node].name for node in self._inputs]
        out_spec = whole.out_spec
        if next_inputs:
            out_spec = tree_structure(0 if len(results) == 1 else (0,) * len(results))
        calling = Calling(whole.names, whole.in_spec, whole.leaves, out_spec, whole.is_checked)
        if self._number:
            leaves = [_input(name, node) for name, node in zip(names, self._inputs, strict=True)]
            calling = Calling(names, tree_structure([0] * len(names)), leaves, out_spec, False)
        self._graph.set_codegen(calling)
        return Program(
            f"submod_{self._number}",
            self._graph,
            self._tensors,
            self._program.temporary,
            self._program.constants,
            self._program.training,
        )

    def _value(self, node: Node) -> Node:
        """The node of this stage for one of the whole."""
        if node not in self._made:
            assert node.op == "get_attr"
            path = str(node.target)
            self._tensors[path] = self._program.tensors[path]
            self._made[node] = self._graph.get_attr(path)
        return self._made[node]


def _input(name: str, node: Node) -> Any:
    meta = node.meta["tensor_meta"]
    return Input(name, meta.dtype, tuple(meta.shape))
