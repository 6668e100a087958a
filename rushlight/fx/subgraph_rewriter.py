"""Replacing parts of graphs: all places that look like a pattern get another form.

The matching is that of passes/utils/matcher_utils.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rushlight import nn
from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, install_at, value_at
from rushlight.fx.node import Node
from rushlight.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

Pattern = Callable[..., Any] | GraphModule | Graph

__all__ = [
    "Match",
    "ReplacedPatterns",
    "replace_pattern",
    "replace_pattern_with_filters",
]


class Match(NamedTuple):
    """A place that looked like the pattern.

    Attributes:
        anchor: the pattern's node that was looked for.
        nodes_map: from the pattern's nodes to those of the place.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A Match and the nodes that took its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node] = field(default_factory=list)


def replace_pattern(gm: GraphModule, pattern: Pattern, replacement: Pattern) -> list[Match]:
    """Replaces all parts of a module's graph that look like a pattern, and recompiles it.

    Args:
        gm: the module.
        pattern: a function, or a module or graph, that does what is to be replaced. Its inputs
            stand for anything.
        replacement: what is done instead, with inputs in the same order. A module gives gm copies
            of the submodules that gm lacks; those that gm no longer uses go then.

    Returns:
        A Match for each place.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x, y: torch.relu(x + y) * 2)
        >>> matches = torch.fx.replace_pattern(
        ...     traced, lambda a, b: torch.relu(a + b), lambda a, b: torch.tanh(a - b))
        >>> len(matches)
        1
        >>> print(traced.code.strip())
        def forward(self, x, y):
            sub = x - y;  x = y = None
            tanh = rushlight.tanh(sub);  sub = None
            mul = tanh * 2;  tanh = None
            return mul
    """
    replaced = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(place.anchor, place.nodes_map) for place in replaced]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    """Does replace_pattern where some filters agree.

    Args:
        gm: the module.
        pattern: what is to be replaced.
        replacement: what is done instead.
        match_filters: functions of an InternalMatch, the module's graph and the pattern's; all
            must return True.
        ignore_literals: whether numbers in the pattern stand for any numbers.
        replacement_callback: makes the replacement for a match, from what the filters get.

    Returns:
        A ReplacedPatterns for each place.
    """
    pattern_graph = _graph_of(pattern)
    matches = [
        match
        for match in SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals).match(gm.graph)
        if all(agrees(match, gm.graph, pattern_graph) for agrees in match_filters or ())
    ]
    replaced: list[ReplacedPatterns] = []
    moved: dict[Node, Any] = {}  # what took the place of outputs that were replaced
    for match in matches:
        form = replacement
        if form is None:
            if replacement_callback is None:
                raise AssertionError("replace_pattern: pass replacement or replacement_callback.")
            form = replacement_callback(match, gm.graph, pattern_graph)
        form = _traced(form)
        if isinstance(form, GraphModule):
            _take_modules(gm, form)
        replaced.append(_replace(gm.graph, pattern_graph, _graph_of(form), match, moved))
    if isinstance(replacement, nn.Module):
        gm.delete_all_unused_submodules()
    gm.recompile()
    return replaced


def _traced(form: Pattern) -> GraphModule | Graph:
    return form if isinstance(form, (GraphModule, Graph)) else symbolic_trace(form)


def _graph_of(form: Pattern) -> Graph:
    form = _traced(form)
    return form.graph if isinstance(form, GraphModule) else form


def _inputs(graph: Graph) -> list[Node]:
    return graph.find_nodes(op="placeholder")


def _results(pattern: Graph) -> list[Node]:
    """The nodes that a pattern returns."""
    result = pattern.output_node().args[0]
    nodes: list[Node] = list(result) if isinstance(result, (tuple, list)) else [result]
    if not all(isinstance(node, Node) for node in nodes):
        raise AssertionError(
            f"replace_pattern: the pattern returns {result!r}. It must return the result of a "
            "call, or a tuple of results."
        )
    return nodes


def _replace(
    graph: Graph, pattern: Graph, replacement: Graph, match: InternalMatch, moved: dict[Node, Any]
) -> ReplacedPatterns:
    """Puts a copy of the replacement before the first node that uses the match's results."""
    given, wanted = _inputs(pattern), _inputs(replacement)
    if len(given) != len(wanted):
        raise AssertionError(
            f"replace_pattern: the pattern has {len(given)} inputs and the replacement "
            f"{len(wanted)}. They must have the same inputs."
        )
    values: dict[Node, Any] = {}
    for mine, theirs in zip(wanted, given, strict=True):
        value = match.nodes_map[theirs]
        while isinstance(value, Node) and value in moved:
            value = moved[value]
        values[mine] = value
    inside = match.inner().keys()
    results = _results(pattern)
    users = {user for node in results for user in match.nodes_map[node].users} - inside
    first = next((node for node in graph.nodes if node in users), match.nodes_map[results[-1]])
    with graph.inserting_before(first):
        before = set(graph.nodes)
        result: Any = graph.graph_copy(replacement, values)
        added = [node for node in graph.nodes if node not in before]
    old = pattern.output_node().args[0]
    several = isinstance(old, (tuple, list))
    for theirs, mine in zip(old, result, strict=True) if several else [(old, result)]:
        match.nodes_map[theirs].replace_all_uses_with(mine)
        moved[match.nodes_map[theirs]] = mine
    for theirs in reversed(pattern.nodes):
        node = match.nodes_map.get(theirs)
        if node is not None and theirs.op != "placeholder" and not node.users:
            graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _take_modules(gm: GraphModule, replacement: GraphModule) -> None:
    """Gives a module what its replacement's graph uses and it does not have."""
    for node in replacement.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            found: Any = gm
            for name in node.target.split("."):
                found = getattr(found, name, None)
            if found is None:
                install_at(gm, node.target, copy.deepcopy(value_at(replacement, node.target)))
