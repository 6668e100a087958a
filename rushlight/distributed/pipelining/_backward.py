"""Backward of a stage in two parts: first the gradients of its inputs, then those of parameters.

The stage before waits for the first part only. It runs the tape from the outputs to the inputs, and
keeps what arrives at the nodes where parameters join that way. The second part goes on from there,
so nothing is computed twice (Qi et al. 2024, section 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rushlight import Tensor, autograd
from rushlight.autograd.graph import GradientEdge, Node, get_gradient_edge

__all__ = ["SplitBackward"]


class SplitBackward:
    """The backward of one microbatch, whose first part runs at once.

    Args:
        outputs: what is differentiated; all require grad.
        grads: their gradients.
        inputs: leaves that require grad.

    Attributes:
        input_grads: the gradient of each input, None for one that was not used.
    """

    def __init__(
        self, outputs: Sequence[Tensor], grads: Sequence[Tensor], inputs: Sequence[Tensor]
    ) -> None:
        roots = [get_gradient_edge(output) for output in outputs]
        ends = {get_gradient_edge(tensor).node for tensor in inputs}
        leads = _which_lead_to(ends, [root.node for root in roots])
        self._groups = _joined(
            (node, _leaves_off(node, leads)) for node in leads if leads[node] and node not in ends
        )
        # Outputs that depend on parameters alone are left to the second part as they are.
        self._apart = [
            (root, grad) for root, grad in zip(roots, grads, strict=True) if not leads[root.node]
        ]
        self._arrived: dict[Node, Any] = {}
        handles = [
            node.register_prehook(self._keeper(node)) for nodes, _ in self._groups for node in nodes
        ]
        try:
            self.input_grads = autograd.grad(
                outputs, inputs, grads, retain_graph=True, allow_unused=True
            )
        finally:
            for handle in handles:
                handle.remove()

    def _keeper(self, node: Node) -> Any:
        def keep(grads: tuple[Tensor | None, ...]) -> None:
            self._arrived[node] = grads

        return keep

    def run_rest(self) -> None:
        """Adds the gradients of parameters to their .grad."""
        for nodes, leaves in self._groups:
            nodes = [node for node in nodes if node in self._arrived]
            edges = [
                (GradientEdge(node, slot), grad)
                for node in nodes
                for slot, grad in enumerate(self._arrived[node])
                if grad is not None
            ]
            _accumulate(edges, leaves, self._arrived if len(nodes) > 1 else {})
        for root, grad in self._apart:
            _accumulate([(root, grad)], _leaves_below([root.node]), {})
        self._groups, self._apart, self._arrived = [], [], {}


def _accumulate(
    edges: Sequence[tuple[GradientEdge, Tensor]], leaves: Iterable[Node], fixed: dict[Node, Any]
) -> None:
    """Runs the tape from edges to leaves.

    Args:
        fixed: gradients of nodes that are all there: what comes from other edges has been counted.
    """
    if not edges:
        return
    handles = [node.register_prehook(lambda _, grads=grads: grads) for node, grads in fixed.items()]
    try:
        autograd.backward(
            [edge for edge, _ in edges],
            [grad for _, grad in edges],
            retain_graph=True,
            inputs=[GradientEdge(leaf, 0) for leaf in leaves],
        )
    finally:
        for handle in handles:
            handle.remove()


def _children(node: Node) -> list[Node]:
    return [child for child, _ in node.next_functions if child is not None]


def _which_lead_to(ends: set[Node], roots: Sequence[Node]) -> dict[Node, bool]:
    """For every node below some roots, those included, whether the way goes on to an end."""
    leads: dict[Node, bool] = {}
    stack = [(root, False) for root in roots]
    while stack:
        node, are_children_done = stack.pop()
        if are_children_done:
            leads[node] = node in ends or any(leads[child] for child in _children(node))
        elif node not in leads:
            leads[node] = False
            stack.append((node, True))
            stack += [(child, False) for child in _children(node) if child not in leads]
    return leads


def _leaves_off(node: Node, leads: dict[Node, bool]) -> set[Node]:
    """The leaves below a node that are reached without going on towards an end."""
    return _leaves_below(child for child in _children(node) if not leads[child])


def _leaves_below(roots: Iterable[Node]) -> set[Node]:
    leaves: set[Node] = set()
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            children = _children(node)
            stack += children
            if not children:
                leaves.add(node)
    return leaves


def _joined(pairs: Iterable[tuple[Node, set[Node]]]) -> list[tuple[list[Node], set[Node]]]:
    """Nodes with the leaves below them; those that have leaves in common become one group."""
    groups: list[tuple[list[Node], set[Node]]] = []
    for node, leaves in pairs:
        if leaves:
            touched = [group for group in groups if not leaves.isdisjoint(group[1])]
            groups = [group for group in groups if group not in touched]
            nodes = [node, *(other for group in touched for other in group[0])]
            groups.append((nodes, leaves.union(*(group[1] for group in touched))))
    return groups
