"""Dividing a graph between a back end, which takes some nodes, and what runs the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from operator import getitem

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.operator_support import OperatorSupportBase
from rushlight.fx.passes.tools_common import get_node_target
from rushlight.fx.passes.utils.fuser_utils import comes_back, fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]

_NO_COMPUTATION = ("torch.ops.aten.view", "_operator.getitem")


class Partition:
    """Nodes that are to become one module.

    Args:
        id: its number.
        nodes: its nodes.
    """

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Adds a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Takes a node out."""
        del self.nodes[node]

    def size(self) -> int:
        """Returns the number of nodes."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Finds the largest parts of a graph that a back end can take as a whole.

    Args:
        graph_module: whose graph it is.
        operator_support: says which nodes the back end takes.
        allows_single_node_partition: whether a part may have one call of a function only.
        non_compute_ops: names of functions that do not count as calls.
        allowed_single_node_partition_ops: names of functions that may be a part alone.
        skip_horizontal_fusion: whether parts that do not feed each other stay apart.

    Example:
        >>> from rushlight.fx.passes.infra.partitioner import CapabilityBasedPartitioner
        >>> from rushlight.fx.passes.operator_support import create_op_support
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.exp(torch.relu(x * 2)))
        >>> takes = create_op_support(lambda modules, node: node.name in ("mul", "relu"))
        >>> partitioner = CapabilityBasedPartitioner(traced, takes)
        >>> [list(part.nodes) for part in partitioner.propose_partitions()]
        [[mul, relu]]
        >>> print(partitioner.partition_and_fuse().code.strip())
        def forward(self, x):
            fused_0 = self.fused_0(x);  x = None
            exp = rushlight.exp(fused_0);  fused_0 = None
            return exp
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = {*_NO_COMPUTATION, *(non_compute_ops or ())}
        self.allowed_single_node_partition_ops = set(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self._modules = dict(graph_module.named_modules())

    def propose_partitions(self) -> list[Partition]:
        """Returns the parts."""
        home: dict[Node, Partition] = {}
        partitions: dict[int, Partition] = {}
        numbers = count()
        for node in reversed(list(self.graph_module.graph.nodes)):
            if not self.operator_support.is_node_supported(self._modules, node):
                continue
            mine = home[node] = Partition(next(numbers), [node])
            for other in list(partitions.values()):
                if self._may_join(mine, other, home):
                    self._join(mine, other, home)
                    del partitions[other.id or 0]
            partitions[mine.id or 0] = mine
        _keep_items_with_their_tuple(self.graph_module, home)
        chosen = [p for p in partitions.values() if self._is_worth_it(p)]
        return [partition for partition in chosen if partition.nodes]

    def _may_join(self, mine: Partition, other: Partition, home: dict[Node, Partition]) -> bool:
        if self.skip_horizontal_fusion:
            users = {user for node in mine.nodes for user in node.users}
            if users.isdisjoint(other.nodes):
                return False
        inside = {*mine.nodes, *other.nodes}
        return not comes_back(inside, lambda node: home[node].nodes if node in home else (node,))

    def _join(self, mine: Partition, other: Partition, home: dict[Node, Partition]) -> None:
        for node in other.nodes:
            mine.add_node(node)
            home[node] = mine

    def _is_worth_it(self, partition: Partition) -> bool:
        if self.allows_single_node_partition:
            return True
        calls = [n for n in partition.nodes if n.op == "call_function"]
        names = [get_node_target(self._modules, node) for node in calls]
        if not self.allowed_single_node_partition_ops.isdisjoint(names):
            return True
        return sum(name not in self.non_compute_ops for name in names) > 1

    def fuse_partitions(
        self, partitions: Sequence[Partition], prefix: str = "fused_"
    ) -> GraphModule:
        """Makes each part one call of a module; returns the whole."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Makes each of the parts that are found one call of a module; returns the whole."""
        return self.fuse_partitions(self.propose_partitions(), prefix)

    def remove_bookend_non_compute_ops(self, partitions: Sequence[Partition]) -> None:
        """Takes nodes that do not count as calls out of the ends of parts."""
        for partition in partitions:
            while ends := [node for node in partition.nodes if self._is_idle_end(node, partition)]:
                for node in ends:
                    partition.remove_node(node)

    def _is_idle_end(self, node: Node, partition: Partition) -> bool:
        if node.op != "call_function":
            return False
        if get_node_target(self._modules, node) not in self.non_compute_ops:
            return False
        first = not any(used in partition.nodes for used in node.all_input_nodes)
        return first or not any(user in partition.nodes for user in node.users)


def _keep_items_with_their_tuple(gm: GraphModule, home: dict[Node, Partition]) -> None:
    """Moves the items of a result that is only taken apart to where it is made."""
    for node in gm.graph.nodes:
        items = list(node.users)
        if not all(item.op == "call_function" and item.target is getitem for item in items):
            continue
        for item in items:
            if home.get(item) is home.get(node):
                continue
            if item in home:
                home.pop(item).remove_node(item)
            if node in home:
                home[node].add_node(item)
                home[item] = home[node]
