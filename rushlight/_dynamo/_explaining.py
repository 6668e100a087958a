"""torch._dynamo.explain: whether a program has a graph, and what stands in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rushlight._dynamo._graphs import Graphs
from rushlight._dynamo.backends.registry import run_as_it_is
from rushlight.export._recording import RefusedError

if TYPE_CHECKING:
    from rushlight.fx import GraphModule

_CALLS = ("call_function", "call_method", "call_module")


@dataclass
class ExplainOutput:
    """What a program came to: one graph, or none and the reason for it."""

    graphs: list[GraphModule] = field(default_factory=list)
    ops_per_graph: list[list[Any]] = field(default_factory=list)
    break_reasons: list[str] = field(default_factory=list)

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        return sum(map(len, self.ops_per_graph))

    def __str__(self) -> str:
        reasons = "".join(f"\n  {reason}" for reason in self.break_reasons)
        return (
            f"Graph Count: {self.graph_count}\nGraph Break Count: {self.graph_break_count}\n"
            f"Op Count: {self.op_count}\nBreak Reasons:{reasons}"
        )


def explain(f: Callable[..., Any]) -> Callable[..., ExplainOutput]:
    """Returns a function that says what graph a function or module has for its arguments.

    Args:
        f: what torch.compile would be given.

    Example:
        >>> report = torch._dynamo.explain(lambda x: x.sin() + 1)(torch.ones(2))
        >>> report.graph_count, report.graph_break_count, report.op_count
        (1, 0, 2)
    """

    def explained(*args: Any, **kwargs: Any) -> ExplainOutput:
        found = ExplainOutput()
        try:
            graph = Graphs(f, run_as_it_is).explain(args, kwargs)
        except RefusedError as error:
            found.break_reasons.append(str(error))
        else:
            calls = [node.target for node in graph.graph.nodes if node.op in _CALLS]
            found.graphs.append(graph)
            found.ops_per_graph.append(calls)
        return found

    return explained
