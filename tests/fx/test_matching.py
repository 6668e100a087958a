"""Looking for patterns, calls made once, constants folded: what passes of other programs use."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.experimental.const_fold import (
    FoldedGraphModule,
    get_unique_attr_name_in_module,
    split_const_subgraphs,
)
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher

X = torch.arange(6.0).view(2, 3)


def graph_of(program: Any) -> fx.Graph:
    return fx.symbolic_trace(program).graph


def places(pattern: Any, program: Any, **options: Any) -> list[Any]:
    """What each match returns, and what it is fed."""
    found = SubgraphMatcher(graph_of(pattern), **options).match(graph_of(program))
    return [(str(match.returning_nodes), str(match.placeholder_nodes)) for match in found]


def test_matches_come_in_the_order_of_the_graph_and_do_not_overlap() -> None:
    def program(x: Any) -> Any:
        return torch.relu(torch.relu(torch.relu(torch.relu(x))))

    def pattern(a: Any) -> Any:
        return torch.relu(torch.relu(a))

    assert places(pattern, program) == [("[relu_1]", "[x]"), ("[relu_3]", "[relu_1]")]
    assert len(places(pattern, program, remove_overlapping_matches=False)) == 3


def test_a_place_is_closed() -> None:
    def pattern(a: Any) -> Any:
        return torch.exp(a + 1) * 2

    assert places(pattern, lambda x: torch.exp(x + 1) * 2) == [("[mul]", "[x]")]

    def used_elsewhere(x: Any) -> Any:
        y = torch.exp(x + 1)
        return y * 2 + y

    assert places(pattern, used_elsewhere) == []

    def pair(a: Any, b: Any) -> Any:
        return torch.exp(a), torch.sin(b)

    def fed_by_itself(x: Any) -> Any:  # as one call it would need its own result
        y = torch.exp(x)
        return torch.sin(y.neg()) + y

    assert places(pair, fed_by_itself) == []
    assert places(pair, lambda x, y: torch.exp(x) + torch.sin(y)) == [("[exp, sin]", "[x, y]")]


def test_constants_are_compared_unless_they_are_ignored() -> None:
    def program(x: Any) -> Any:
        return torch.sum(x + 2, 1), x + 1.0

    assert places(lambda a: torch.sum(a + 1, 1), program) == []
    assert len(places(lambda a: torch.sum(a + 1, 0), program, ignore_literals=True)) == 1
    assert places(lambda a: a + 1, lambda x: x + 1.0) == []  # of other types
    assert places(lambda a, b: a + b, lambda x: x + 2) == [("[add]", "[x, 2]")]
    assert places(lambda a: torch.cat([a, a], dim=1), lambda x: torch.cat([x, x], dim=1))
    assert not places(lambda a, b: torch.cat([a, b], dim=1), lambda x: torch.cat([x, x], dim=1))


def test_inputs_and_outputs_may_be_part_of_a_pattern() -> None:
    def pattern(a: Any) -> Any:
        return torch.relu(a)

    def program(x: Any) -> Any:
        return torch.relu(torch.relu(x))

    assert places(pattern, program, match_placeholder=True) == [("[relu]", "[x]")]
    assert places(pattern, program, match_output=True) == [("[relu_1]", "[relu]")]


def test_attributes_match_by_being_tensors_and_nodes_by_their_names() -> None:
    class Scaled(nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.register_parameter(name, nn.Parameter(torch.ones(3)))
            self.name = name

        def forward(self, x: Any) -> Any:
            return x * getattr(self, self.name)

    module, pattern = fx.symbolic_trace(Scaled("weight")), fx.symbolic_trace(Scaled("scale"))
    assert len(SubgraphMatcher(pattern.graph).match(module.graph)) == 1
    other = fx.symbolic_trace(lambda x: torch.sin(torch.exp(x)))
    matcher = SubgraphMatcher(fx.symbolic_trace(lambda x: torch.cos(torch.exp(x))).graph)
    assert matcher.match(other.graph) == []
    (match,) = matcher.match(other.graph, node_name_match="sin")
    assert [str(node) for node in match.returning_nodes] == ["sin"]


def test_operators_match_however_their_arguments_are_passed() -> None:
    by_place, by_name = fx.Graph(), fx.Graph()
    add = torch.ops.aten.add.Tensor
    x, y = by_place.placeholder("x"), by_place.placeholder("y")
    by_place.output(by_place.call_function(add, (x, y)))
    x, y = by_name.placeholder("x"), by_name.placeholder("y")
    by_name.output(by_name.call_function(add, (x,), {"other": y}))
    assert len(SubgraphMatcher(by_name).match(by_place)) == 1


def test_patterns_that_cannot_be_looked_for_are_refused() -> None:
    with pytest.raises(ValueError, match="empty pattern"):
        SubgraphMatcher(fx.Graph())
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.relu, (x,))
    graph.output(graph.call_function(torch.exp, (x,)))
    with pytest.raises(AssertionError, match="dead code"):
        SubgraphMatcher(graph)


def test_filters_of_replacements_see_the_match() -> None:
    traced = fx.symbolic_trace(lambda x, y: torch.relu(x) + torch.relu(y))

    def of_x(match: Any, graph: Any, pattern: Any) -> bool:
        return [str(node) for node in match.placeholder_nodes] == ["x"]

    replaced = fx.subgraph_rewriter.replace_pattern_with_filters(
        traced, lambda a: torch.relu(a), lambda a: torch.exp(a), [of_x]
    )
    assert len(replaced) == 1 and str(replaced[0].replacements) == "[exp]"
    assert torch.equal(traced(X, X), X.exp() + X.relu())


def test_calls_that_come_twice_are_made_once() -> None:
    def program(x: Any) -> Any:
        return torch.sum(x, 0) + torch.sum(x, 0) + torch.sum(x, 1).sum(), x[:, 1:] + x[:, 1:]

    traced = fx.symbolic_trace(program)
    result = CSEPass()(traced)
    assert result.modified and result.graph_module is not traced
    targets = [node.target for node in result.graph_module.graph.nodes]
    assert targets.count(torch.sum) == 2 and targets.count(operator.getitem) == 1
    for mine, wanted in zip(result.graph_module(X), program(X), strict=True):
        assert torch.equal(mine, wanted)
    again = CSEPass()(result.graph_module)
    assert not again.modified and again.graph_module is result.graph_module


def test_calls_of_banned_operators_all_stay() -> None:
    def program(x: Any) -> Any:
        return torch.rand_like(x) + torch.rand_like(x) + (x * 2) * (x * 2)

    traced = make_fx(program)(X)
    kept = CSEPass(banned_ops=get_CSE_banned_ops())(traced).graph_module.graph
    names = [node.name for node in kept.nodes if node.op == "call_function"]
    assert names == ["rand_like", "rand_like_1", "add", "mul", "mul_2", "add_1"]
    fewer = CSEPass()(traced).graph_module.graph
    assert len(fewer.find_nodes(op="call_function", target=torch.ops.aten.rand_like.default)) == 1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.weight = nn.Parameter(torch.full((4,), 2.0))
        self.shift = nn.Parameter(torch.ones(4))

    def forward(self, x: Any) -> Any:
        scale = self.weight * 2
        return self.linear(x) * scale + (scale + self.shift), self.weight.exp()


def test_what_depends_on_attributes_alone_is_computed_once() -> None:
    net = Net()
    folded = split_const_subgraphs(net)
    assert isinstance(folded, FoldedGraphModule) and folded.const_subgraph_module is not None
    calls = [n.name for n in folded.const_subgraph_module.graph.nodes if "call" in n.op]
    assert calls == ["mul", "add", "exp"]
    for mine, wanted in zip(folded(X), net(X), strict=True):
        assert torch.equal(mine, wanted)
    with torch.no_grad():
        net.weight.zero_()
    assert torch.equal(folded(X)[1], torch.full((4,), 2.0).exp())
    with pytest.raises(AssertionError, match="has been run"):
        folded.run_folding()


def test_nothing_is_folded_where_nothing_is_constant_or_all_is_skipped() -> None:
    plain = split_const_subgraphs(nn.Linear(3, 4))
    assert plain.const_subgraph_module is None and plain(X).shape == (2, 4)
    skipped = split_const_subgraphs(Net(), skip_folding_node_fn=lambda node: True)
    assert skipped.const_subgraph_module is None

    class Noisy(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + torch.rand(3)

    assert split_const_subgraphs(Noisy()).const_subgraph_module is None


def test_names_are_made_unique() -> None:
    module = nn.Module()
    module.a = module.a_1 = module._1b = 0
    assert get_unique_attr_name_in_module(module, "a") == "a_2"
    assert get_unique_attr_name_in_module(module, "x.y") == "x_y"
    assert get_unique_attr_name_in_module(module, "1b") == "_1b_1"


def test_a_module_in_the_place_of_a_pattern_brings_its_submodules() -> None:
    class Net(nn.Module):
        def __init__(self, first: nn.Module) -> None:
            super().__init__()
            self.first, self.relu = first, nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.relu(self.first(x))

    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.relu = nn.Linear(2, 2), nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.relu(self.linear(x))

    module, other, x = fx.symbolic_trace(Net(nn.Sigmoid())), Other(), torch.randn(3, 2)
    fx.replace_pattern(module, Net(nn.Sigmoid()), other)
    module.graph.lint()
    assert [name for name, _ in module.named_children()] == ["relu", "linear"]
    assert module(x).equal(other(x))
    assert module.linear.weight is not other.linear.weight
