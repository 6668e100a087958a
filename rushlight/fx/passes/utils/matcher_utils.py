"""Places of a graph that look like a pattern, which is a graph too.

A place has the pattern's calls and constants, fed from each other in the same way; the pattern's
inputs stand for anything. Nothing outside uses what a place does not return, and no way out of it
comes back, so that it can become one call.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rushlight import Tensor
from rushlight._op_overload import OpOverload
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import value_at
from rushlight.fx.node import Node
from rushlight.fx.passes.utils.fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A place that looks like a pattern.

    Attributes:
        anchors: the pattern's nodes that were looked for first.
        nodes_map: from the pattern's nodes to those of the place, and to constants for inputs.
        placeholder_nodes: what stands for the pattern's inputs.
        returning_nodes: what stands for the nodes that the pattern returns.
        name_node_map: nodes of the place by the names that the pattern gave them.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(self.anchors, dict(self.nodes_map))

    def inner(self) -> dict[Node, Node]:
        """The pattern's nodes by those of the place, without inputs and output."""
        outer = ("placeholder", "output")
        return {node: theirs for theirs, node in self.nodes_map.items() if theirs.op not in outer}


class SubgraphMatcher:
    """Looks for the places of a graph that look like a pattern.

    Args:
        pattern: the pattern.
        match_output: whether a place must be what the graph returns.
        match_placeholder: whether the pattern's inputs stand for inputs only.
        remove_overlapping_matches: whether, of places that overlap, only the first counts.
        ignore_literals: whether numbers and other constants stand for any.

    Raises:
        ValueError: if the pattern is empty.
        AssertionError: if it has nodes that nothing uses.

    Example:
        >>> from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher
        >>> pattern = torch.fx.symbolic_trace(lambda a: torch.relu(a + 1)).graph
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x.exp() + 1) * 2).graph
        >>> [match.returning_nodes for match in SubgraphMatcher(pattern).match(graph)]
        [[relu]]
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if not pattern.nodes:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users and not node.is_impure():
                raise AssertionError(
                    f"SubgraphMatcher cannot be initialized with a pattern with dead code: {node}"
                )
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        output = pattern.output_node()
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = (
            [output] if match_output else [n for n in output.all_input_nodes if len(n.users) == 1]
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Returns the places of a graph, in the order of its nodes.

        Args:
            graph: where to look.
            node_name_match: a node whose name has this in it counts as what is looked for first.
        """
        found: list[InternalMatch] = []
        taken: set[Node] = set()
        candidates = self._places(self.pattern_anchors, graph, node_name_match)
        for match in candidates if self.pattern_anchors else ():
            inner = match.inner()
            if self.remove_overlapping_matches and taken & inner.keys():
                continue
            if not self._is_closed(inner) or not validate_partition(inner):
                continue
            taken |= inner.keys()
            match.placeholder_nodes = [
                match.nodes_map[node] for node in self.pattern_placeholder_nodes
            ]
            match.returning_nodes = [match.nodes_map[node] for node in self.pattern_returning_nodes]
            found.append(match)
        return found

    def _places(
        self, anchors: list[Node], graph: Graph, name: str, begun: InternalMatch | None = None
    ) -> Iterator[InternalMatch]:
        """All ways to find anchors in a graph, after some have been."""
        begun = begun or InternalMatch(self.pattern_anchors)
        if not anchors:
            yield begun
            return
        for node in graph.nodes:
            match = copy.copy(begun)
            if self._match_nodes(anchors[0], node, match, name):
                yield from self._places(anchors[1:], graph, name, match)

    def _is_closed(self, inner: dict[Node, Node]) -> bool:
        """Whether nothing outside uses what the pattern does not return."""
        return all(
            theirs in self.pattern_returning_nodes or node.users.keys() <= inner.keys()
            for node, theirs in inner.items()
        )

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, name: str = "") -> bool:
        """Whether a node looks like one of the pattern, with all that feeds it; notes them."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(known is gn for known in match.nodes_map.values()):
            return False  # different nodes of a pattern stand for different nodes
        if not self._nodes_are_equal(pn, gn, name):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        return self._match_values(_arguments(pn), _arguments(gn), match)

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Whether two nodes do the same, whatever feeds them."""
        if pn.op == "placeholder" and not self.match_placeholder:
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Whether two attributes are both tensors, or the same."""
        owners = pn.graph.owning_module, gn.graph.owning_module
        if owners[0] is None or owners[1] is None:
            return pn.target == gn.target
        mine, theirs = value_at(owners[0], pn.target), value_at(owners[1], gn.target)
        if isinstance(mine, Tensor):
            return type(mine) is type(theirs)
        return mine is theirs

    def _match_values(self, pattern: Any, value: Any, match: InternalMatch) -> bool:
        """Whether an argument looks like one of the pattern."""
        if isinstance(pattern, Node):
            if isinstance(value, Node):
                return self._match_nodes(pattern, value, match)
            if pattern.op != "placeholder" or self.match_placeholder:
                return False
            known = match.nodes_map.setdefault(pattern, value)
            return type(known) is type(value) and known == value
        if isinstance(pattern, (tuple, list)) and isinstance(value, (tuple, list)):
            return len(pattern) == len(value) and all(
                self._match_values(mine, theirs, match)
                for mine, theirs in zip(pattern, value, strict=True)
            )
        if isinstance(pattern, dict) and isinstance(value, dict):
            return pattern.keys() == value.keys() and all(
                self._match_values(mine, value[key], match) for key, mine in pattern.items()
            )
        if isinstance(value, Node):
            return False
        return self.ignore_literals or (type(pattern) is type(value) and pattern == value)


def _arguments(node: Node) -> dict[Any, Any]:
    """The arguments of a call by their names; by their places where names are not known."""
    target: Any = node.target
    names = target._schema.arguments if isinstance(target, OpOverload) else ()
    keys = [argument.name for argument in names if not argument.kwarg_only]
    places = keys if len(keys) >= len(node.args) else range(len(node.args))
    return {**dict(zip(places, node.args, strict=False)), **node.kwargs}
