"""Graphs: making, changing, checking, printing and running them."""

from __future__ import annotations

import copy
import importlib.util
import math
import operator
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import fx, nn


def small() -> tuple[fx.Graph, fx.Node, fx.Node]:
    graph = fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(torch.relu, (x,))
    graph.output(relu)
    return graph, x, relu


def run(graph: fx.Graph, *args: Any) -> Any:
    graph.lint()
    return fx.GraphModule(nn.Module(), graph)(*args)


def test_the_class_of_a_module_says_that_it_has_the_forward() -> None:
    module = fx.GraphModule(nn.Module(), small()[0], "Small")
    assert "GraphModuleImpl" in str(type(module)) and type(module).__name__ == "Small"
    assert repr(module) == "Small()" and "GraphModuleImpl" in str(type(copy.deepcopy(module)))


def test_arguments_and_users_follow_each_other() -> None:
    graph, x, relu = small()
    y = graph.create_node("placeholder", "y")
    relu.args = ([y, (x, slice(x, None))],)
    assert relu.all_input_nodes == [y, x] and list(y.users) == [relu]
    relu.update_arg(0, y)
    assert not x.users and relu.args == (y,)
    relu.insert_arg(0, x)
    relu.update_kwarg("out", x)
    assert relu.args == (x, y) and relu.kwargs == {"out": x}
    relu.replace_input_with(x, y)
    assert relu.args == (y, y) and relu.kwargs == {"out": y} and not x.users
    with pytest.raises(AssertionError, match="idx is 5"):
        relu.insert_arg(5, x)


def test_arguments_do_not_change_by_themselves() -> None:
    graph, x, _ = small()
    node = graph.call_function(torch.cat, ([x, x],), {"options": {"dim": 0}})
    with pytest.raises(TypeError, match="does not support mutation"):
        node.args[0].append(x)
    with pytest.raises(TypeError, match="does not support mutation"):
        node.kwargs["options"]["dim"] = 1
    assert copy.deepcopy(node.args[0][:0]) == [] and pickle.loads(
        pickle.dumps(fx.immutable_collections.immutable_dict(a=1))
    ) == {"a": 1}


def test_nodes_are_put_and_moved_where_one_says() -> None:
    graph, x, relu = small()
    with graph.inserting_before(relu):
        neg = graph.call_method("neg", (x,))
    with graph.inserting_after(relu):
        second = graph.call_function(torch.tanh, (relu,))
        first = graph.call_function(torch.exp, (relu,))
    with graph.inserting_before():
        y = graph.placeholder("y")
    assert list(graph.nodes) == [y, x, neg, relu, first, second, graph.output_node()]
    relu.prepend(second)
    assert second.next is relu and relu.prev is second
    second.append(neg)
    assert [n.name for n in reversed(graph.nodes)][:4] == ["output", "exp", "relu", "neg"]
    with (
        pytest.raises(AssertionError, match="not in this graph"),
        graph.inserting_before(small()[1]),
    ):
        pass


def test_a_place_for_nodes_stays_without_a_with_block() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    last = graph.call_function(torch.neg, (x,))
    graph.inserting_before(last)
    graph.call_function(torch.abs, (x,))
    with graph.inserting_after(last):
        graph.call_function(torch.exp, (x,))
    graph.call_function(torch.sin, (x,))
    assert [node.name for node in graph.nodes] == ["x", "abs_1", "sin", "neg", "exp"]


def test_functions_change_the_lines_of_code() -> None:
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    plain = traced.code

    def note(text: str) -> Any:
        return lambda before: lambda lines: [f"# {text}\n", *(before(lines) if before else lines)]

    with traced.graph.on_generate_code(note("a")), traced.graph.on_generate_code(note("b")):
        traced.recompile()
        assert traced.code == plain.replace("    relu", "    # b\n    # a\n    relu", 1)
    traced.recompile()
    assert traced.code == plain
    traced.graph.on_generate_code(note("c"))
    traced.recompile()
    assert "# c" in traced.code


def test_a_function_is_replaced_by_another() -> None:
    graph, x, relu = small()
    with graph.inserting_after(relu):
        neg = graph.call_function(torch.neg, (x,))
    assert relu.replace_all_uses_with(neg) == [graph.output_node()]
    graph.erase_node(relu)
    assert len(graph.nodes) == 3 and relu not in list(graph.nodes)
    assert run(graph, torch.ones(2)).tolist() == [-1, -1]


def test_erasing_needs_a_node_without_users() -> None:
    graph, x, relu = small()
    with pytest.raises(RuntimeError, match="Tried to erase Node x but it still had 1 users"):
        graph.erase_node(x)
    with pytest.raises(RuntimeError, match="wrong graph"):
        graph.erase_node(small()[0].output_node())
    output = graph.output_node()
    graph.erase_node(output)
    graph.erase_node(relu)
    with pytest.raises(RuntimeError, match="was erased before"):
        graph.erase_node(relu)
    assert not x.users


def test_nodes_may_be_erased_during_a_walk() -> None:
    def f(x: Any) -> Any:
        x.sum(), x.mean(), x.std()
        return x

    graph = fx.symbolic_trace(f).graph
    for node in graph.nodes:
        if node.op == "call_method":
            graph.erase_node(node)
    assert [n.op for n in graph.nodes] == ["placeholder", "output"]


def test_what_writes_into_an_argument_is_no_dead_code() -> None:
    def program(a: torch.Tensor) -> torch.Tensor:
        b = a + 1
        torch.add(b, b, out=a)
        torch.ops.aten.mul.out(b, b, out=a)
        torch.sub(b, b, out=None)
        return a

    module = fx.symbolic_trace(program)
    assert module.graph.eliminate_dead_code()
    assert [node.name for node in module.graph.nodes] == ["a", "add", "add_1", "mul_out", "output"]


def test_dead_code_goes_and_what_writes_stays() -> None:
    def f(x: Any, unused: Any) -> Any:
        x.relu_()
        torch.manual_seed(0)
        torch._assert(x, "no")
        y = x + 1
        z = y * 2
        x[0]
        torch.rand(z.shape)
        return x

    graph = fx.symbolic_trace(f).graph
    assert graph.eliminate_dead_code()
    names = ["x", "unused", "relu_", "_assert", "getattr_1", "rand", "output"]
    assert [n.name for n in graph.nodes if n.name not in ("add", "mul")] == names
    assert graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    assert [n.name for n in graph.nodes] == ["x", "unused", "output"]
    assert not graph.eliminate_dead_code()


def test_lint_finds_what_is_wrong() -> None:
    graph, x, relu = small()
    other = small()[0]
    other.output_node().args = (x,)
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other.lint()
    relu.append(x)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()
    module = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    with pytest.warns(UserWarning, match="no underlying reference"):
        module.graph.get_attr("0.weight")
    with pytest.raises(RuntimeError, match="nonexistent attribute weight"):
        module.graph.lint()


def test_names_are_pythons_and_unique() -> None:
    graph = fx.Graph()
    names = [graph.create_node("placeholder", name).name for name in
             ("x", "x", "x_1", "len", "for", "a.b", "0", "torch", "x_7", "x_7")]  # fmt: skip
    assert names == ["x", "x_1", "x_2", "len_1", "for_1", "a_b", "_0", "torch_1", "x_7", "x_8"]
    assert graph.call_function(operator.add, (1, 2)).name == "add"
    assert graph.call_function(len, ((),)).name == "len_2"
    with pytest.raises(ValueError, match="must be callable"):
        graph.call_function("relu")
    with pytest.raises(ValueError, match="must be a str"):
        graph.call_module(torch.relu)


def test_graphs_print() -> None:
    graph = fx.symbolic_trace(lambda x, y=1: torch.sub(x.view(2, -1), y, alpha=2)).graph
    assert str(graph).splitlines() == [
        "graph():",
        "    %x : [num_users=1] = placeholder[target=x]",
        "    %y : [num_users=1] = placeholder[target=y](default=1)",
        "    %view : [num_users=1] = call_method[target=view](args = (%x, 2, -1), kwargs = {})",
        "    %sub : [num_users=1] = call_function[target=rushlight.sub](args = (%view, %y), "
        "kwargs = {alpha: 2})",
        "    return sub",
    ]


def test_graphs_print_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    small()[0].print_tabular()
    head, line, first, second, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["opcode", "name", "target", "args", "kwargs"] and set(line) == {
        "-",
        " ",
    }
    assert first.split() == ["placeholder", "x", "x", "()", "{}"]
    assert second.split() == ["call_function", "relu", "rushlight.relu", "(x,)", "{}"]
    assert last.split() == ["output", "output", "output", "(relu,)", "{}"]


def test_code_of_writes_and_constants() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x", torch.Tensor)
    graph.call_function(operator.setitem, (x, 0, 5.0))
    y = graph.call_function(operator.iadd, (x, 1))
    z = graph.call_method("to", (y, torch.float64), {"device": torch.device("cpu")})
    w = graph.call_function(torch.clamp, (z, -float("inf"), 6))
    graph.output({"w": w, "s": slice(None, 2)}, dict)
    result = run(graph, torch.zeros(2))
    assert result["w"].tolist() == [6, 1] and result["s"] == slice(None, 2)
    assert result["w"].dtype == torch.float64
    code = graph.python_code("self").src
    assert "x[0] = 5.0;  setitem = x;  setitem = None" in code
    assert "x += 1;  iadd = x;  x = None" in code
    assert "def forward(self, x : rushlight.Tensor) -> dict:" in code


def test_numbers_and_text_of_other_classes_are_constants() -> None:
    class Shown(str):
        def __repr__(self) -> str:
            return "no code"

    class Number(float):
        __repr__ = object.__repr__

    constants = [np.float64(0.5), np.float32(-2.5), np.int64(3), Number(4.0), Shown("five"), True]
    graph = fx.Graph()
    graph.placeholder("x")
    graph.output(constants)
    result = run(graph, torch.zeros(2))
    assert result == [0.5, -2.5, 3, 4.0, "five", True] and result[-1] is True


def test_graphs_are_copied_into_others() -> None:
    graph, _, _ = small()
    whole = fx.Graph()
    x = whole.placeholder("x")
    for _ in range(2):
        x = whole.graph_copy(graph, {graph.find_nodes(op="placeholder")[0]: x})
        x = whole.call_function(torch.neg, (x,))
    whole.output(x)
    assert [n.name for n in whole.nodes] == ["x", "relu", "neg", "relu_1", "neg_1", "output"]
    copied = copy.deepcopy(whole)
    copied.erase_node(copied.output_node())
    assert len(whole.nodes) == 6 and len(copied.nodes) == 5


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x: Any) -> Any:
        return torch.relu(self.body(x)) * self.scale + self.shift + math.sqrt(x.shape[1])


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList([Net(), nn.Embedding(3, 2)])
        self.attention = nn.MultiheadAttention(3, 1)

    def forward(self, x: Any, tokens: list[int] | None = None) -> Any:
        y = self.inner[0](x + self.inner[1](x.long()).sum(1))
        return self.attention(y, y, y)[0]


def test_modules_are_copied_and_pickled() -> None:
    traced = fx.symbolic_trace(Net().eval())
    x = torch.randn(4, 2)
    expected = traced(x)
    unpickled = pickle.loads(pickle.dumps(traced))
    for other in (copy.deepcopy(traced), copy.copy(traced), unpickled):
        assert torch.equal(other(x), expected) and other.code == traced.code
        assert not other.training and type(other).__name__ == "Net"
        assert other.graph is not traced.graph and other.graph.owning_module is other
        for node in other.graph.find_nodes(op="call_function", target=torch.relu):
            node.target = torch.tanh
        other.recompile()
        assert not torch.equal(other(x), expected) and torch.equal(traced(x), expected)
    assert copy.deepcopy(traced).scale is not traced.scale
    assert copy.copy(traced).scale is traced.scale


def test_modules_are_written_as_packages(tmp_path: Path) -> None:
    traced = fx.symbolic_trace(Nested().eval())
    traced.to_folder(tmp_path / "written", "Written")
    spec = importlib.util.spec_from_file_location("written", tmp_path / "written" / "__init__.py")
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["written"] = package
    try:
        spec.loader.exec_module(package)
        x = torch.rand(4, 2)
        assert torch.equal(package.Written().eval()(x), traced(x))
    finally:
        for name in ("written", "written.module"):
            sys.modules.pop(name, None)


def test_submodules_come_and_go() -> None:
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert traced.add_submodule("deep.er", nn.Tanh())
    assert not traced.add_submodule("0.weight.x", nn.Tanh())
    assert isinstance(traced.get_submodule("deep.er"), nn.Tanh)
    assert traced.delete_submodule("deep.er") and not traced.delete_submodule("deep.er")
    traced.delete_all_unused_submodules()
    assert [name for name, _ in traced.named_modules()] == ["", "0", "1"]


def test_errors_of_generated_code_show_its_line() -> None:
    import traceback

    traced = fx.symbolic_trace(lambda x: torch.mm(x, x))
    with pytest.raises(RuntimeError) as caught:
        traced(torch.ones(2, 3))
    assert "mm = rushlight.mm(x, x)" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_a_module_needs_what_its_graph_uses() -> None:
    graph = fx.Graph()
    graph.output(graph.call_module("missing"))
    with pytest.raises(RuntimeError, match="uses 'missing', but that is not in root"):
        fx.GraphModule({}, graph)
    with pytest.raises(RuntimeError, match="Module has no 'missing'"):
        fx.GraphModule(nn.Module(), graph)


def test_assigning_a_graph_changes_the_module() -> None:
    traced = fx.symbolic_trace(lambda x: x + 1)
    traced.graph = fx.symbolic_trace(lambda x: x * 5).graph
    assert traced(2) == 10 and "x * 5" in traced.code and traced.code in str(traced)
    with pytest.raises(AssertionError, match="Expected a Graph"):
        traced.graph = 3


def test_interpreters_say_which_node_failed() -> None:
    traced = fx.symbolic_trace(lambda x: x @ x)
    with pytest.raises(RuntimeError, match="While executing %matmul"):
        fx.Interpreter(traced).run(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(traced).run()


def test_interpreters_drop_values_and_take_some() -> None:
    traced = fx.symbolic_trace(lambda x: (x + 1) * 2 - 3)
    add = traced.graph.find_nodes(op="call_function", target=operator.add)[0]
    interpreter = fx.Interpreter(traced)
    assert interpreter.run(1, initial_env={add: 10}) == 17
    x = traced.graph.find_nodes(op="placeholder")[0]  # which nothing ran with
    assert list(interpreter.env) == [x, traced.graph.output_node()]
    keeping = fx.Interpreter(traced, garbage_collect_values=False)
    args = [5]
    assert keeping.boxed_run(args) == 9 and not args and keeping.env[add] == 6


def test_proxies_build_graphs_by_hand() -> None:
    graph = fx.Graph()
    x, y = (fx.Proxy(graph.placeholder(name)) for name in "xy")
    result = torch.cat([x.relu(), y.T], dim=1).shape[0] + x
    graph.output(result.node)
    assert "num_users" in str(graph) and repr(result) == "Proxy(add)"
    assert run(graph, torch.ones(2, 2), torch.ones(3, 2))[0, 0] == 3
    strange = fx.Proxy(small()[1])
    with pytest.raises(RuntimeError, match="multiple different tracers"):
        torch.add(x, strange)


def test_attributes_that_a_module_does_not_have_are_warned_of() -> None:
    graph = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2))).graph
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.get_attr("0.weight")
    with pytest.warns(UserWarning, match="nonexistent attribute scale of 0"):
        graph.get_attr("0.scale")
