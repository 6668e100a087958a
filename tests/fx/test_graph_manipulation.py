"""Sizes and targets of the nodes of a graph."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.passes import graph_manipulation as graphs


def test_sizes_count_results_and_the_parameters_of_what_is_called() -> None:
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU()).double())
    with pytest.raises(RuntimeError, match="no tensor metadata"):
        graphs.get_size_of_all_nodes(traced)
    graphs.get_size_of_all_nodes(traced, [torch.ones(4, 3, dtype=torch.float64)])
    *nodes, output = traced.graph.nodes
    assert [node.size_bytes for node in nodes] == [(96, 96), (64, 128), (64, 64)]
    assert not hasattr(output, "size_bytes")


def test_nodes_get_another_target_and_keep_their_arguments() -> None:
    traced = fx.symbolic_trace(lambda x: torch.sin(x) + torch.sin(x * 2))
    graphs.replace_target_nodes_with(traced, "call_function", torch.sin, "call_function", torch.cos)
    x = torch.linspace(0, 1, 5)
    assert torch.equal(traced(x), x.cos() + (x * 2).cos())
    graphs.replace_target_nodes_with(traced, "call_function", torch.cos, "call_method", "exp")
    assert torch.equal(traced(x), x.exp() + (x * 2).exp())
    assert [node.name for node in traced.graph.nodes][1:4] == ["sin", "mul", "sin_1"]
