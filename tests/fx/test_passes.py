"""Passes over graphs: replacing patterns, shapes, pictures, splitting and folding."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fx.networks import inputs, networks

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.experimental import optimization
from rushlight.fx.passes.graph_drawer import FxGraphDrawer
from rushlight.fx.passes.shape_prop import ShapeProp
from rushlight.fx.passes.split_module import split_module
from rushlight.fx.passes.split_utils import split_by_tags
from rushlight.fx.subgraph_rewriter import replace_pattern, replace_pattern_with_filters

NETWORKS = networks(torch)


def test_all_places_that_look_like_a_pattern_are_replaced() -> None:
    def f(x: Any, w1: Any, w2: Any) -> Any:
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w1, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    traced = fx.symbolic_trace(f)
    matches = replace_pattern(
        traced, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b]).prod()
    )
    places = [match.nodes_map[match.anchor].name for match in matches]
    assert places == ["sum_1", "sum_2"]
    names = ["stack", "prod", "max_1", "add", "stack_1", "prod_1", "max_2", "add_1"]
    assert [n.name for n in traced.graph.nodes if "call" in n.op] == names
    assert traced(torch.zeros(()), torch.tensor([2.0]), torch.tensor([3.0])).item() == 12


def test_neighboring_matches_feed_each_other() -> None:
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.relu(torch.relu(x))))
    assert len(replace_pattern(traced, torch_relu, lambda x: x * 2)) == 3
    traced.graph.lint()
    assert traced(torch.tensor(1.0)).item() == 8


def torch_relu(x: Any) -> Any:
    return torch.relu(x)


def test_matches_need_the_same_constants_and_no_outside_users() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        return torch.relu(y) + y

    traced = fx.symbolic_trace(f)
    assert not replace_pattern(traced, lambda x: torch.relu(x + 1), lambda x: x)
    g = fx.symbolic_trace(lambda x: torch.relu(x + 2))
    assert not replace_pattern(g, lambda x: torch.relu(x + 1), lambda x: x)
    assert not replace_pattern_with_filters(
        g, torch_relu, lambda x: x, match_filters=[lambda match, graph, pattern: False]
    )
    places = replace_pattern_with_filters(
        g, lambda x: torch.relu(x + 1), lambda x: torch.neg(x), ignore_literals=True
    )
    assert [n.name for n in places[0].replacements] == ["neg"]
    with pytest.raises(AssertionError, match="must have the same inputs"):
        replace_pattern(g, lambda x: torch.neg(x), lambda x, y: x)


def test_modules_replace_modules() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), nn.ReLU())
    traced = fx.symbolic_trace(net)

    class Pattern(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module("1", nn.ReLU())

        def forward(self, x: Any) -> Any:
            return getattr(self, "1")(x)

    class Replacement(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tanh = nn.Tanh()

        def forward(self, x: Any) -> Any:
            return self.tanh(x)

    replace_pattern(traced, fx.symbolic_trace(Pattern()), fx.symbolic_trace(Replacement()))
    x = torch.randn(3, 2)
    assert torch.equal(traced(x), net[3](net[2](torch.tanh(net[0](x)))))


def test_shapes_are_noted() -> None:
    net, shape = NETWORKS["resnet"]
    traced = fx.symbolic_trace(net.eval())
    x = inputs(torch, shape)
    assert torch.equal(ShapeProp(traced).propagate(x), net(x))
    shapes = {n.name: n.meta["tensor_meta"].shape for n in traced.graph.nodes}
    assert shapes["conv1"] == (2, 4, 14, 14) and shapes["fc"] == shapes["output"] == (2, 5)
    noted = traced.graph.find_nodes(op="placeholder")[0].meta
    assert noted["type"] is torch.Tensor
    assert noted["tensor_meta"] == (
        shape, torch.float32, False, (768, 256, 16, 1), torch.contiguous_format, False, {}
    )  # fmt: skip
    split = fx.symbolic_trace(lambda x: x.split(2)[0])
    ShapeProp(split).propagate(torch.ones(4))
    assert len(split.graph.find_nodes(op="call_method")[0].meta["tensor_meta"]) == 2


@pytest.mark.parametrize("name", NETWORKS)
def test_parts_do_together_what_the_whole_does(name: str) -> None:
    net, shape = NETWORKS[name]
    net.eval()
    traced = fx.symbolic_trace(net)
    calls = [n for n in traced.graph.nodes if n.op.startswith("call")]
    places = {n: i for i, n in enumerate(calls)}
    names: dict[str, str] = {}
    whole = split_module(traced, net, lambda n: places[n] * 3 // len(calls), names)
    assert [path for path, _ in whole.named_children()] == ["submod_0", "submod_1", "submod_2"]
    whole.graph.lint()
    x = inputs(torch, shape)
    result, expected = whole(x), net(x)
    flat = torch.utils._pytree.tree_leaves
    assert all(torch.equal(a, b) for a, b in zip(flat(result), flat(expected), strict=True))
    assert all(whole.get_submodule(new.rpartition(".")[0]) is not None for new in names)


def test_parts_in_a_circle_fail() -> None:
    traced = fx.symbolic_trace(lambda x: torch.relu(x) + 1 - x)
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split_module(traced, traced, lambda n: int(n.name == "add"))


def test_pictures_show_nodes_and_shapes(tmp_path: Path) -> None:
    net = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    ShapeProp(net).propagate(torch.ones(1, 2))
    picture = FxGraphDrawer(net, "net").get_dot_graph()
    assert [box.title for box in picture.boxes] == ["input_1", "_0", "_1", "output"]
    assert picture.boxes[1].results == ("(1, 3) float32",) and "Linear" in picture.to_string()
    assert [(a.source, a.target) for a in picture.arrows] == [(0, 1), (1, 2), (2, 3)]
    if shutil.which("dot"):
        picture.write_svg(str(tmp_path / "net.svg"))
        assert "Linear" in (tmp_path / "net.svg").read_text()
        assert picture.create_png().startswith(b"\x89PNG")


def test_batch_norms_are_folded() -> None:
    net, shape = NETWORKS["resnet"]
    net.train()
    with torch.no_grad():
        for _ in range(3):
            net(torch.randn(*shape))
    net.eval()
    fused = optimization.fuse(net)
    x = inputs(torch, shape)
    torch.testing.assert_close(fused(x), net(x), rtol=1e-4, atol=1e-5)
    kinds = {type(module) for module in fused.modules()}
    assert nn.BatchNorm2d not in kinds
    assert sum(isinstance(m, nn.BatchNorm2d) for m in net.modules()) > 5


def test_a_layer_that_is_used_twice_is_not_folded() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)

        def forward(self, x: Any) -> Any:
            return self.conv(self.bn(self.conv(x)))

    net = Twice().eval()
    x = torch.randn(1, 1, 2, 2)
    torch.testing.assert_close(optimization.fuse(net)(x), net(x))
    with pytest.raises(AssertionError, match="only for eval"):
        optimization.fuse(nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)))


def test_dropout_is_left_out() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.9), nn.Sequential(nn.ReLU(), nn.Dropout(0.9)))
    without = optimization.remove_dropout(net)
    x = torch.randn(5, 2)
    assert torch.equal(without(x), net.eval()(x))


class Tagged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(2, 2))
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x: Any, y: Any) -> Any:
        u = self.first(x) * self.scale
        v = torch.relu(u) + y
        return u + v, v


TAGS = {"first_0": "a", "mul": "a", "relu": "b", "add": "b", "add_1": "c"}


def tagged(module: Tagged) -> Any:
    traced = fx.symbolic_trace(module)
    for node in traced.graph.nodes:
        if node.name in TAGS:
            node.tag = TAGS[node.name]
    return traced


@pytest.mark.parametrize("return_tuple", [False, True])
def test_parts_are_split_by_tags(return_tuple: bool) -> None:
    module = Tagged()
    whole, paths = split_by_tags(tagged(module), ["a", "b", "c"], True, return_tuple)
    assert [name for name, _ in whole.named_children()] == ["a", "b", "c"]
    assert paths == {"first.0": "a.first.0", "scale": "a.scale"}
    assert whole.a.scale is module.scale
    assert whole.a.get_submodule("first.0") is module.first[0]
    x, y = torch.randn(2), torch.randn(2)
    assert isinstance(whole.a(x), tuple) is return_tuple
    for ours, theirs in zip(whole(x, y), module(x, y), strict=True):
        assert torch.equal(ours, theirs)


def test_tags_name_all_calls_and_come_in_order() -> None:
    with pytest.raises(AssertionError, match="does not have tag: %first_0"):
        split_by_tags(fx.symbolic_trace(Tagged()), ["a"])
    with pytest.raises(KeyError):
        split_by_tags(tagged(Tagged()), ["a", "b"])
    with pytest.raises(AssertionError, match="part b needs what a makes, which comes later"):
        split_by_tags(tagged(Tagged()), ["b", "a", "c"])


def test_parts_of_an_exported_module_are_called_as_it_is() -> None:
    class Pairs(nn.Module):
        def forward(self, pair: dict[str, torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
            return pair["a"] * 2, [pair["b"] + 1]

    pair = {"a": torch.ones(2), "b": torch.zeros(2)}
    module = torch.export.export(Pairs(), (pair,)).module()
    assert isinstance(module, fx.GraphModule)
    for node in module.graph.nodes:
        node.tag = "all"
    doubled, (added,) = split_by_tags(module, ["all"])(pair)
    assert doubled.tolist() == [2.0, 2.0] and added.tolist() == [1.0, 1.0]


def test_parameters_stay_in_the_whole_and_are_inputs_of_parts() -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(2, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mm(x, self.weight)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.linear = Inner(), nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(self.linear(self.inner(x)))

    class OnlyLinear(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return isinstance(m, nn.Linear)

    net, names, x = Outer(), {}, torch.randn(3, 2)
    traced = fx.GraphModule(net, OnlyLinear().trace(net))
    for node in traced.graph.nodes:
        node.meta["mark"] = node.name
    part = iter([0, 1, 1])
    whole = split_module(traced, net, lambda _: next(part), names)
    assert names == {"submod_1.linear": "linear"}
    assert [name for name, _ in whole.named_parameters()] == [
        "submod_1.linear.weight",
        "submod_1.linear.bias",
        "inner.weight",
    ]
    assert whole.get_parameter("inner.weight") is net.inner.weight
    assert whole(x).equal(net(x))
    parts = whole.submod_0, whole.submod_1
    inside = [node for each in parts for node in each.graph.nodes]
    assert all("mark" in node.meta for node in inside if node.op != "output")


def test_a_part_without_results_returns_an_empty_tuple() -> None:
    def program(x: torch.Tensor) -> None:
        x.add_(1)

    traced = fx.symbolic_trace(program)
    whole = split_module(traced, traced, lambda _: 1)
    assert [node.args for node in whole.submod_1.graph.find_nodes(op="output")] == [((),)]
