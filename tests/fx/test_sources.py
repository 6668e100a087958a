"""What nodes come from, and the types that programs give values."""

import operator
from typing import Any

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.annotate import annotate
from rushlight.fx.passes.utils.source_matcher_utils import (
    check_subgraphs_connected,
    get_source_partitions,
)
from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

F = nn.functional


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(self.norm(self.first(x)))
        return F.relu(F.linear(y, self.first.weight)) + x


def exported() -> fx.Graph:
    return torch.export.export(Network(), (torch.randn(2, 3),)).graph


def test_parts_are_the_calls_of_modules() -> None:
    parts = get_source_partitions(exported(), [nn.Linear, nn.LayerNorm, nn.Conv2d])
    assert parts.keys() == {nn.Linear, nn.LayerNorm}
    first, second = parts[nn.Linear]
    assert [node.name for node in first.output_nodes] == ["linear"]
    assert {node.name for node in first.input_nodes} == {"x", "p_first_weight", "p_first_bias"}
    (norm,) = parts[nn.LayerNorm]
    assert check_subgraphs_connected(first, norm) and check_subgraphs_connected(norm, second)
    assert not check_subgraphs_connected(first, second)
    assert not check_subgraphs_connected(norm, first)


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1


@pytest.mark.parametrize("by", ["export", "trace"])
def test_each_call_of_a_module_is_a_part(by: str) -> None:
    twice = Twice()
    network = nn.Sequential(twice, nn.ReLU(), twice)
    if by == "export":
        graph = torch.export.export(network, (torch.ones(2),)).graph
    else:
        tracer = fx.Tracer()
        for _ in range(2):  # it counts anew
            graph = tracer.trace(network)
    first, second = get_source_partitions(graph, [Twice])[Twice]
    assert [str(node) for node in (*first.nodes, *second.nodes)] == ["mul", "add", "mul_1", "add_1"]
    assert list(second.nodes[0].meta["nn_module_stack"]) == ["0@1"]


def test_parts_are_the_calls_of_functions() -> None:
    parts = get_source_partitions(exported(), [F.relu, operator.add, "linear"])
    assert {source: len(found) for source, found in parts.items()} == {
        F.relu: 1,
        operator.add: 1,
        "linear": 3,
    }
    none = get_source_partitions(exported(), [F.relu], lambda node: node.name != "relu")
    assert none == {F.relu: []}


def test_parts_know_the_attributes_that_tracers_note() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    weight = graph.get_attr("weight")
    product = graph.call_function(torch.matmul, (x, weight))
    for node in (weight, product):
        node.meta["source_fn_stack"] = [("product", torch.matmul)]
    graph.output(product)
    (part,) = get_source_partitions(graph, [torch.matmul])[torch.matmul]
    assert (part.nodes, part.params) == ([weight, product], [weight])
    assert (part.input_nodes, part.output_nodes) == ([x], [product])


def test_a_value_gets_a_type() -> None:
    def program(x: Any) -> Any:
        return annotate(x + 1, int) * 2

    traced = fx.symbolic_trace(program)
    assert "add : int = x + 1" in traced.code
    assert program(3) == 8 and traced(3) == 8
    with pytest.raises(RuntimeError, match="has the type"):
        fx.symbolic_trace(lambda x: annotate(annotate(x + 1, int), int))


def test_types_of_tensors() -> None:
    known, partly = TensorType((1, 2, 3)), TensorType([1, Dyn, 3])
    assert known == TensorType[1, 2, 3] and known != partly and len({known, partly}) == 2
    assert TensorType[2].dims == (2,)
    assert is_consistent(known, partly) and is_consistent(partly, known)
    assert is_consistent(Dyn, known) and is_consistent(int, int) and not is_consistent(int, known)
    assert not is_consistent(known, TensorType((1, 2))) and not is_consistent(known, 3)
    assert is_more_precise(known, partly) and not is_more_precise(partly, known)
    assert is_more_precise(known, Dyn) and not is_more_precise(Dyn, known)
    assert (repr(Dyn), repr(known)) == ("Dyn", "TensorType[(1, 2, 3)]")
