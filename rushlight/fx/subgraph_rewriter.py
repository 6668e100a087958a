"""Replacing parts of graphs: all places that look like a pattern get another form.

Owns the matching too. A match is a part of the graph with the pattern's calls and constants, whose
inner results nothing outside uses; matches do not overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, install_at, value_at
from rushlight.fx.node import Node

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
        replacement: what is done instead, with inputs in the same order.

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
    match_filters: list[Callable[[Match, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[Match, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    """Does replace_pattern where some filters agree.

    Args:
        gm: the module.
        pattern: what is to be replaced.
        replacement: what is done instead.
        match_filters: functions of a Match, the module's graph and the pattern's; all must return
            True.
        ignore_literals: whether numbers in the pattern stand for any numbers.
        replacement_callback: makes the replacement for a match, from what the filters get.

    Returns:
        A ReplacedPatterns for each place.
    """
    pattern_graph = _graph_of(pattern)
    matches = [
        match
        for match in _Matcher(pattern_graph, ignore_literals).find(gm.graph)
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
        if isinstance(form, GraphModule):
            _take_modules(gm, form)
        replaced.append(_replace(gm.graph, pattern_graph, _graph_of(form), match, moved))
    gm.recompile()
    return replaced


def _graph_of(form: Pattern) -> Graph:
    if isinstance(form, GraphModule):
        return form.graph
    return form if isinstance(form, Graph) else symbolic_trace(form).graph


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
    graph: Graph, pattern: Graph, replacement: Graph, match: Match, moved: dict[Node, Any]
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
        while value in moved:
            value = moved[value]
        values[mine] = value
    inside = set(match.nodes_map.values())
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
    return ReplacedPatterns(match.anchor, match.nodes_map, added)


def _take_modules(gm: GraphModule, replacement: GraphModule) -> None:
    """Gives a module what its replacement's graph uses and it does not have."""
    for node in replacement.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            found: Any = gm
            for name in node.target.split("."):
                found = getattr(found, name, None)
            if found is None:
                install_at(gm, node.target, value_at(replacement, node.target))


class _Matcher:
    """Looks for the places of a graph that look like a pattern."""

    def __init__(self, pattern: Graph, ignore_literals: bool) -> None:
        self._pattern = pattern
        self._ignore_literals = ignore_literals
        self._results = _results(pattern)

    def find(self, graph: Graph) -> list[Match]:
        """Returns the matches that do not overlap, those nearest to the output first taken."""
        found: list[Match] = []
        taken: set[Node] = set()
        for node in reversed(graph.nodes):
            nodes_map: dict[Node, Node] = {}
            if not self._matches(self._results[-1], node, nodes_map):
                continue
            if not self._complete(graph, nodes_map):
                continue
            inner = {n for p, n in nodes_map.items() if p.op != "placeholder"}
            if inner & taken or not self._is_closed(nodes_map, inner):
                continue
            taken |= inner
            found.append(Match(self._results[-1], nodes_map))
        return found[::-1]

    def _complete(self, graph: Graph, nodes_map: dict[Node, Node]) -> bool:
        """Finds places for the other results, if the pattern has several."""
        for result in self._results:
            if result in nodes_map:
                continue
            for node in reversed(graph.nodes):
                tried = dict(nodes_map)
                if node not in nodes_map.values() and self._matches(result, node, tried):
                    nodes_map.update(tried)
                    break
            else:
                return False
        return True

    def _is_closed(self, nodes_map: dict[Node, Node], inner: set[Node]) -> bool:
        """Whether nothing outside uses what the pattern does not return."""
        return all(
            all(user in inner for user in node.users)
            for pattern, node in nodes_map.items()
            if pattern.op not in ("placeholder", "get_attr") and pattern not in self._results
        )

    def _matches(self, pattern: Any, value: Any, nodes_map: dict[Node, Node]) -> bool:
        """Whether a value looks like one of the pattern; notes the nodes that do."""
        if isinstance(pattern, Node):
            if pattern in nodes_map:
                return nodes_map[pattern] is value
            if isinstance(value, Node) and value in nodes_map.values():
                return False  # different nodes of a pattern stand for different nodes
            if pattern.op == "placeholder":
                nodes_map[pattern] = value
                return isinstance(value, Node) or self._ignore_literals
            return self._same_call(pattern, value, nodes_map)
        if isinstance(pattern, (tuple, list)):
            return (
                isinstance(value, (tuple, list))
                and len(pattern) == len(value)
                and all(self._matches(p, v, nodes_map) for p, v in zip(pattern, value, strict=True))
            )
        if isinstance(pattern, dict):
            return (
                isinstance(value, dict)
                and pattern.keys() == value.keys()
                and all(self._matches(pattern[key], value[key], nodes_map) for key in pattern)
            )
        if isinstance(value, Node):
            return False
        if self._ignore_literals and isinstance(pattern, (int, float)):
            return isinstance(value, (int, float))
        return type(pattern) is type(value) and pattern == value

    def _same_call(self, pattern: Node, value: Any, nodes_map: dict[Node, Node]) -> bool:
        if not isinstance(value, Node) or pattern.op != value.op or pattern.target != value.target:
            return False
        nodes_map[pattern] = value
        same = self._matches(pattern.args, value.args, nodes_map) and self._matches(
            pattern.kwargs, value.kwargs, nodes_map
        )
        if not same:
            del nodes_map[pattern]
        return same
