"""Dividing graphs: which nodes a back end takes, the largest parts of these, parts as modules."""

from __future__ import annotations

import random
from typing import Any

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from rushlight.fx.passes.operator_support import (
    OperatorSupport,
    OpSupports,
    any_chain,
    chain,
    create_op_support,
)
from rushlight.fx.passes.shape_prop import ShapeProp
from rushlight.fx.passes.tools_common import get_node_target, legalize_graph
from rushlight.fx.passes.utils.fuser_utils import fuse_by_partitions, topo_sort, validate_partition


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.full((4,), 2.0))

    def forward(self, a: Any, b: Any) -> Any:
        c = a + b
        d = torch.relu(c)
        f = torch.sin(d) + c
        g = torch.relu(self.linear(f) * self.scale) + d
        return g, torch.cos(f) + 1


INPUTS = torch.arange(4.0).view(1, 4), torch.ones(1, 4)


def taking(*names: str) -> Any:
    """Takes calls by the names of their functions or modules."""
    return create_op_support(
        lambda modules, node: (
            "call" in node.op and getattr(node.target, "__name__", node.target) in names
        )
    )


def parts_of(partitioner: CapabilityBasedPartitioner) -> list[set[str]]:
    return [{node.name for node in part.nodes} for part in partitioner.propose_partitions()]


@pytest.mark.parametrize(
    ("names", "single", "expected"),
    [
        ("add", False, ["add_2 add_3"]),
        ("add", True, ["add_2 add_3", "add_1", "add"]),
        ("add relu", False, ["add_2 add_3 relu_1", "add relu"]),
        ("sin relu", False, ["relu sin"]),
        ("sin", False, []),
        ("sin", True, ["sin"]),
        (
            "add relu sin mul linear cos",
            False,
            ["add add_1 add_2 add_3 cos linear mul relu relu_1 sin"],
        ),
    ],
)
def test_parts_are_as_large_as_they_can_be(names: str, single: bool, expected: list[str]) -> None:
    network = Network()
    traced = fx.symbolic_trace(network)
    partitioner = CapabilityBasedPartitioner(traced, taking(*names.split()), single)
    assert parts_of(partitioner) == [set(part.split()) for part in expected]
    fused = partitioner.partition_and_fuse("part_")
    assert [n.target for n in fused.graph.nodes if str(n.target).startswith("part_")] == [
        f"part_{i}" for i in reversed(range(len(expected)))
    ]
    for ours, theirs in zip(fused(*INPUTS), network(*INPUTS), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_items_stay_with_what_they_are_taken_of() -> None:
    def f(x: Any) -> Any:
        first, second = torch.split(x * 2, 2)
        return first + second

    traced = fx.symbolic_trace(lambda x: f(x))
    partitioner = CapabilityBasedPartitioner(traced, taking("mul", "split"))
    assert parts_of(partitioner) == [{"mul", "split", "getitem", "getitem_1"}]
    partitioner = CapabilityBasedPartitioner(traced, taking("getitem", "add"))
    assert parts_of(partitioner) == []
    only = CapabilityBasedPartitioner(
        traced, taking("add"), allowed_single_node_partition_ops=["_operator.add"]
    )
    assert parts_of(only) == [{"add"}]
    idle = CapabilityBasedPartitioner(
        traced, taking("mul", "split"), non_compute_ops=["_operator.mul"]
    )
    assert parts_of(idle) == []
    whole = CapabilityBasedPartitioner(traced, taking("mul", "split", "getitem", "add"))
    (part,) = parts = whole.propose_partitions()
    CapabilityBasedPartitioner(
        traced, taking(), non_compute_ops=["_operator.mul"]
    ).remove_bookend_non_compute_ops(parts)
    assert "mul" not in {node.name for node in part.nodes} and part.size() == 4


def test_parts_that_do_not_feed_each_other_may_stay_apart() -> None:
    traced = fx.symbolic_trace(lambda x, y: (torch.exp(x + 1), torch.exp(y + 1)))
    for skip, count in ((False, 1), (True, 2)):
        partitioner = CapabilityBasedPartitioner(
            traced, taking("add", "exp"), skip_horizontal_fusion=skip
        )
        assert len(parts_of(partitioner)) == count


def test_fusing_changes_no_result() -> None:
    draw = random.Random(3)
    for _ in range(20):
        graph = fx.Graph()
        values = [graph.placeholder("x"), graph.placeholder("y")]
        for _ in range(25):
            function = draw.choice([torch.add, torch.sub, torch.mul, torch.maximum])
            values.append(graph.call_function(function, tuple(draw.choices(values[-8:], k=2))))
        graph.output(values[-1])
        traced = fx.GraphModule({}, graph)
        inputs = torch.ones(2, dtype=torch.float64), torch.tensor([0.5, 2.0], dtype=torch.float64)
        expected = traced(*inputs)
        taken = draw.choice([("add", "mul"), ("sub", "maximum"), ("add",)])
        partitioner = CapabilityBasedPartitioner(traced, taking(*taken), draw.random() < 0.5)
        fused = partitioner.partition_and_fuse()
        assert torch.equal(fused(*inputs), expected)


def test_sets_that_others_come_between_are_refused() -> None:
    traced = fx.symbolic_trace(Network())
    add, relu, sin, add_1, *_ = calls = [n for n in traced.graph.nodes if "call" in n.op]
    assert validate_partition([relu, sin]) and not validate_partition([add, add_1])
    assert topo_sort([add_1, sin, relu, add]) == [add, relu, sin, add_1]
    with pytest.raises(AssertionError, match="comes back"):
        fuse_by_partitions(traced, [[add, add_1]])
    fuse_by_partitions(traced, [calls[-2:], [relu, sin]], always_return_tuple=True)
    for ours, theirs in zip(traced(*INPUTS), Network.forward(traced, *INPUTS), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_graphs_are_put_in_order() -> None:
    traced = fx.symbolic_trace(lambda x: torch.exp(torch.relu(x)))
    x, relu, exp, output = traced.graph.nodes
    output.append(relu)
    assert list(legalize_graph(traced).graph.nodes) == [x, relu, exp, output]
    relu.args = (exp,)
    with pytest.raises(AssertionError, match="in a circle"):
        legalize_graph(traced)


def test_support_is_told_by_name_and_dtype() -> None:
    traced = fx.symbolic_trace(Network())
    modules = dict(traced.named_modules())
    nodes = {node.name: node for node in traced.graph.nodes}

    def taken(support: Any) -> set[str]:
        return {n.name for n in nodes.values() if support.is_node_supported(modules, n)}

    rest = {"a", "b", "scale", "output"}
    linear = "torch.nn.modules.linear.Linear"
    names = OperatorSupport({"torch.relu": None, "_operator.mul": None, linear: None})
    assert taken(names) == rest | {"relu", "relu_1", "mul", "linear"}
    assert get_node_target(modules, nodes["linear"]) == linear
    with pytest.raises(AssertionError, match="but found placeholder"):
        get_node_target(modules, nodes["a"])
    ShapeProp(traced).propagate(*INPUTS)
    floats = OperatorSupport({"torch.sin": (((torch.float32,),), {}), "torch.cos": (((),), {})})
    assert taken(floats) == rest | {"sin"}
    assert taken(chain(names, OpSupports.decline_if_node_in_names({"mul", "a"}))) == taken(
        names
    ) - {
        "mul",
        "a",
    }
    assert taken(any_chain(taking("sin"), taking("cos"))) == {"sin", "cos"}
    assert "sin" not in taken(OpSupports.decline_if_input_dtype(torch.float32))
    assert "sin" in taken(OpSupports.decline_if_input_dtype(torch.float64))


def test_a_partition_is_a_set_of_nodes() -> None:
    node = fx.Graph().placeholder("x")
    partition = Partition(id=3)
    partition.add_node(node)
    assert (partition.id, partition.size(), repr(partition)) == (3, 1, "{x: None}")
    partition.remove_node(node)
    assert repr(partition) == "{}"
