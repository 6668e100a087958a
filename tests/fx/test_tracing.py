"""What symbolic_trace records, and what it refuses."""

from __future__ import annotations

import copy
import enum
import math
import operator
import threading
from collections import namedtuple
from typing import Any

import pytest
from fx.networks import inputs, networks

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx import traceback
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.utils import _pytree as pytree

NETWORKS = networks(torch)
Pair = namedtuple("Pair", "first second")


def marked(x: Any, n: int) -> Any:
    return x + n if n > 1 else x


fx.wrap("marked")
fx.wrap("len")


def calls(graph: fx.Graph) -> list[tuple[str, str]]:
    return [(n.op, n.name) for n in graph.nodes if n.op not in ("placeholder", "output")]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(same(a[key], b[key]) for key in b)
    if isinstance(a, (list, tuple)):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    return torch.equal(a, b)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_recorded_module_does_the_same(name: str) -> None:
    net, shape = NETWORKS[name]
    net.eval()
    traced = fx.symbolic_trace(net)
    x = inputs(torch, shape)
    assert same(traced(x), net(x))
    assert same(fx.Interpreter(traced).run(x), net(x))
    assert same(fx.Transformer(traced).transform()(x), net(x))
    traced.graph.lint()


def test_parameters_are_shared_and_train() -> None:
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    traced = fx.symbolic_trace(net)
    assert traced.get_parameter("0.weight") is net[0].weight
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    y = torch.tensor([[0.0], [1], [1], [0]])
    optimizer = torch.optim.Adam(traced.parameters(), lr=0.1)
    losses = []
    for _ in range(60):
        loss = nn.functional.mse_loss(traced(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4
    assert torch.equal(net(x), traced(x))


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.arange(3.0))
        self.register_buffer("scale", torch.tensor([2.0, 3.0, 4.0]))

    def forward(self, x: Any) -> Any:
        if self.table.shape[0] == 3:
            x = x + self.table[1]
        return x * self.scale.sum()


def test_what_is_computed_from_parameters_alone_is_recorded() -> None:
    class Plain(Table):
        def forward(self, x: Any) -> Any:
            return x + self.table[1] * self.scale.sum()

    net = Plain()
    traced = fx.symbolic_trace(net)
    assert [name for _, name in calls(traced.graph)][:2] == ["table", "getitem"]
    traced(torch.ones(1)).sum().backward()
    assert net.table.grad is not None and net.table.grad.tolist() == [0, 9, 0]
    assert type(net.table) is nn.Parameter  # again


def test_shapes_of_parameters_may_be_known_and_buffers_recorded() -> None:
    class Known(fx.Tracer):
        proxy_buffer_attributes = True

        def __init__(self) -> None:
            super().__init__(param_shapes_constant=True)

    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(Table())
    net = Table()
    traced = fx.GraphModule(net, Known().trace(net))
    names = ["table", "getitem", "add", "scale", "sum_1", "mul"]
    assert [name for _, name in calls(traced.graph)] == names
    assert traced(torch.ones(1)).tolist() == net(torch.ones(1)).tolist() == [18]


def test_quantized_dtypes_are_arguments() -> None:
    def rounded(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor(x, 0.5, 0, torch.quint8).dequantize()

    traced = fx.symbolic_trace(rounded)
    assert "torch.quint8" in traced.code
    assert traced(torch.tensor([0.6])).tolist() == [0.5]


def test_operators_are_recorded_from_either_side() -> None:
    def f(x: Any, y: Any) -> Any:
        return abs(-(1 - x) // (y % 2)) @ (3**x) == (~y & 1 | y ^ x), x[0, 1:], x.T

    nodes = list(fx.symbolic_trace(f).graph.nodes)
    targets = [node.target for node in nodes if node.op == "call_function"]
    assert targets == [
        operator.sub, operator.neg, operator.mod, operator.floordiv, abs, operator.pow,
        operator.matmul, operator.invert, operator.and_, operator.xor, operator.or_, operator.eq,
        operator.getitem, getattr,
    ]  # fmt: skip
    assert nodes[2].args == (1, nodes[0])


def test_a_constant_on_the_left_hands_the_operator_over() -> None:
    traced = fx.symbolic_trace(lambda x: torch.ones(2) * x)
    assert calls(traced.graph) == [("get_attr", "_tensor_constant0"), ("call_function", "mul")]
    assert traced(torch.full((2,), 3.0)).tolist() == [3, 3]


def test_marked_functions_are_steps() -> None:
    def f(x: Any) -> Any:
        return marked(x, 2) * len(x) + math.floor(x.sum()) + marked(1, 2)

    traced = fx.symbolic_trace(f)
    names = ["marked", "len_1", "mul", "sum_1", "floor", "add", "add_1"]
    assert [name for _, name in calls(traced.graph)] == names
    assert traced(torch.ones(3)).tolist() == [15] * 3
    again = fx.symbolic_trace(traced)
    assert [name for _, name in calls(again.graph)] == names
    assert f(torch.ones(3)).tolist() == [15] * 3 and len([1]) == 1


def test_stars_and_keyword_arguments_are_inputs() -> None:
    def f(x: Any, *args: Any, scale: float = 2.0, **kwargs: Any) -> Any:
        return x * scale + args[0] - kwargs["b"]

    traced = fx.symbolic_trace(f)
    targets = [n.target for n in traced.graph.find_nodes(op="placeholder")]
    assert targets == ["x", "scale", "*args", "**kwargs"]
    assert traced(3, 5.0, 7, b=1) == 21
    assert fx.symbolic_trace(lambda x, y=4: x + y)(1) == 5


@pytest.mark.parametrize(("flag", "value"), [(True, 5), (None, 1), (0, 1)])
def test_concrete_arguments_decide_and_are_checked(flag: Any, value: int) -> None:
    def f(x: Any, flag: Any, y: Any) -> Any:
        return x + y if flag else x - y

    traced = fx.symbolic_trace(f, concrete_args={"flag": flag})
    assert traced(3, flag, 2) == value
    with pytest.raises(AssertionError, match="flag has been specialized to have value"):
        traced(3, 17, 2)
    assert fx.symbolic_trace(f, concrete_args=(fx.PH, flag, fx.PH))(3, flag, 2) == value


def branches(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def loops(x: Any) -> Any:
    return [row + 1 for row in x]


def spreads(x: Any) -> Any:
    return torch.stack(*x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (branches, "symbolically traced variables cannot be used as inputs to control flow"),
        (loops, "Proxy object cannot be iterated"),
        (spreads, "Proxy object cannot be iterated"),
        (lambda x: x and 1, "control flow"),
    ],
)
def test_control_flow_by_unknown_values_fails(function: Any, message: str) -> None:
    with pytest.raises(fx.proxy.TraceError, match=message):
        fx.symbolic_trace(function)
    assert issubclass(fx.proxy.TraceError, ValueError)


def test_what_cannot_be_recorded_says_so() -> None:
    with pytest.raises(TypeError):
        fx.symbolic_trace(lambda x: range(x))
    with pytest.raises(NotImplementedError, match="argument of type: <class 'object'>"):
        fx.symbolic_trace(lambda x: torch.add(x, object()))
    with pytest.raises(RuntimeError, match="Keys for dictionaries"):
        fx.symbolic_trace(lambda x: {x: 1})
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("max")
    with pytest.raises(RuntimeError, match="Unsupported type"):
        fx.wrap(3)
    stray = nn.Linear(2, 2)
    with pytest.raises(NameError, match="not installed as a submodule"):
        fx.symbolic_trace(lambda x: stray(x))
    with pytest.raises(NameError, match="parameter is not a member"):
        fx.symbolic_trace(lambda x: x + stray.weight)


def test_modules_run_as_before_after_a_trace_and_after_a_failure() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(branches)
    assert layer(torch.ones(2)).shape == (2,)


def test_other_threads_run_modules_during_a_trace() -> None:
    layer, seen = nn.Linear(2, 2), []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: seen.append(layer(torch.ones(2)).shape))
        thread.start()
        thread.join()
        return x + 1

    fx.symbolic_trace(f)
    assert seen == [(2,)]


def test_a_tracer_may_look_inside_layers_and_at_nodes() -> None:
    class Inside(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return module_qualified_name == "1"

        def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
            node = super().create_node(*args, **kwargs)
            node.meta["seen"] = True
            return node

    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    graph = Inside().trace(net)
    names = ["input_1", "_0_weight", "_0_bias", "linear", "_1", "output"]
    assert [node.name for node in graph.nodes] == names
    assert all(node.meta["seen"] for node in graph.nodes)
    x = torch.randn(3, 2)
    assert torch.equal(fx.GraphModule(net, graph)(x), net(x))


def test_modules_with_keyword_arguments_and_collections() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return Pair(*self.attention(x, x, x, need_weights=True)[:2])

    class Leaf(Net):
        def forward(self, x: Any) -> Any:
            out, weights = self.attention(x, x, x, need_weights=True)
            return Pair(out, (weights, {"x": x}))

    net = Leaf()
    x = torch.randn(1, 3, 4)
    result = fx.symbolic_trace(net)(x)
    assert isinstance(result, Pair) and torch.equal(result.first, net(x).first)
    assert result.second[1]["x"] is x


def test_two_names_of_one_module_are_one_path() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = self.b = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    traced = fx.symbolic_trace(Shared())
    assert [n.target for n in traced.graph.find_nodes(op="call_module")] == ["a", "a"]


def test_nodes_may_note_where_the_program_made_them() -> None:
    class Noting(fx.Tracer):
        record_stack_traces = True

    graph = Noting().trace(abs_of)
    assert "test_tracing.py" in (graph.find_nodes(op="call_function")[0].stack_trace or "")


def abs_of(x: Any) -> Any:
    return torch.abs(x)


def test_nodes_are_marked_inside_annotate() -> None:
    @traceback.annotate_fn({"whole": True})
    def program(x: Any) -> Any:
        with traceback.annotate({"stage": 1}), traceback.annotate({"part": "b"}):
            y = x * 2
        return y + 1

    def marks(graph: fx.Graph) -> list[Any]:
        return [n.meta.get("custom") for n in graph.nodes if n.op == "call_function"]

    expected = [{"whole": True, "stage": 1, "part": "b"}, {"whole": True}]
    assert marks(fx.symbolic_trace(program).graph) == [None, None]
    with traceback.preserve_node_meta():
        module = fx.symbolic_trace(program)
        assert marks(module.graph) == expected
        assert marks(make_fx(program)(torch.ones(2)).graph) == expected
        # What runs a graph hands its marks on, and those of Transformer keep them.
        assert marks(make_fx(fx.Interpreter(module).run)(torch.ones(2)).graph) == expected
        assert marks(fx.Transformer(module).transform().graph) == expected
        traceback.set_stack_trace(["here\n"])
        assert traceback.format_stack() == ["here\n"]
        assert fx.symbolic_trace(program).graph.output_node().stack_trace == "here\n"
    assert not traceback.has_preserved_node_meta() and traceback.get_current_meta() == {}
    assert "test_tracing.py" in traceback.format_stack()[-1]


def test_a_tracer_may_refuse_functions_that_write() -> None:
    class Strict(fx.Tracer):
        check_mutable_operations = True

    def into(x):
        return torch.sigmoid(x, out=x)

    for function in (into, lambda x: torch.relu_(x)):
        with pytest.raises(RuntimeError, match="mutable operation"):
            Strict().trace(function)
        assert len(fx.Tracer().trace(function).nodes) == 3
    assert len(Strict().trace(lambda x: torch.sigmoid(x, out=None)).nodes) == 3


class Color(enum.Enum):
    RED = 1


class Box:
    def __init__(self, item: Any) -> None:
        self.item = item

    def __fx_create_arg__(self, tracer: fx.Tracer) -> Any:
        return tracer.create_node("call_function", Box, (tracer.create_arg(self.item),), {})


def test_enums_and_objects_that_say_how_are_arguments() -> None:
    def inner(x, color, box):
        return x * color.value + box.item

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x, Color.RED, Box(x))

    class Inner(nn.Module):
        def forward(self, x, color, box):
            return inner(x, color, box)

    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, Inner)

    module = Outer()
    traced = fx.GraphModule(module, Whole().trace(module))
    assert traced(torch.ones(2)).tolist() == [2, 2]


def test_another_method_than_forward_is_traced() -> None:
    class Both(nn.Module):
        def forward(self, x):
            return x + 1

        def minus(self, x: list[int]):
            return x - 1

    tracer, module = fx.Tracer(), Both()
    tracer.traced_func_name = "minus"
    traced = fx.GraphModule(module, tracer.trace(module))
    assert traced(torch.ones(2)).tolist() == [0, 0] and "x : list[int]" in traced.code
    assert traced._replicate_for_data_parallel()(torch.ones(2)).tolist() == [0, 0]


def test_lists_of_arguments_are_checked_before_they_are_emptied() -> None:
    interpreter = fx.Interpreter(fx.symbolic_trace(lambda a, b: a + b))
    for args, problem in ([1], "missing"), ([1, 2, 3], "extra"):
        with pytest.raises(RuntimeError, match=problem):
            interpreter.boxed_run(args)
        assert args
    assert interpreter.boxed_run([1, 2]) == 3


def test_transformed_nodes_keep_what_is_known_of_them() -> None:
    layer = nn.Module()
    layer.weight = nn.Parameter(torch.ones(1))
    graph = fx.Graph()
    graph.output(graph.get_attr("weight"))
    traced = fx.GraphModule(layer, graph)
    next(iter(traced.graph.nodes)).meta["stack_trace"] = "here"
    changed = fx.Transformer(traced).transform()
    assert next(iter(changed.graph.nodes)).meta["stack_trace"] == "here"


def test_arguments_of_nodes_are_trees() -> None:
    args = fx.immutable_collections.immutable_list(
        [1, fx.immutable_collections.immutable_dict(a=2)]
    )
    leaves, spec = pytree.tree_flatten(args)
    assert leaves == [1, 2] and pytree.tree_unflatten(leaves, spec) == args
    assert type(pytree.tree_map(lambda n: n, args)) is fx.immutable_collections.immutable_list


class Couple(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right

    def add(self, other: Any) -> Couple:
        return Couple(self.left + other.left, self.right + other.right)


def test_graphs_make_objects_of_proxyable_classes() -> None:
    def program(pair: Any, x: Any) -> Any:
        return pair.add(Couple(x, x)).right

    traced = fx.symbolic_trace(program)
    assert [(node.op, node.name) for node in traced.graph.nodes] == [
        ("placeholder", "pair"),
        ("placeholder", "x"),
        ("call_function", "couple"),
        ("call_method", "add"),
        ("call_function", "getattr_1"),
        ("output", "output"),
    ]
    given = Couple(torch.zeros(2), torch.ones(2))
    assert traced(given, torch.ones(2)).tolist() == [2, 2]
    kept = fx.symbolic_trace(lambda x: Couple(x, given).right)
    assert kept(torch.ones(2)) is given and kept._Couple_constant_0 is given


def test_transformers_keep_how_a_module_is_called() -> None:
    class OfList(fx.graph.CodeGen):
        def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
            return f"def forward(self, values):\n    {', '.join(free_vars)} = values"

        def process_inputs(self, *inputs: Any) -> Any:
            return inputs[0]

    traced = fx.symbolic_trace(lambda a, b: a - b)
    traced.graph.set_codegen(OfList())
    traced.recompile()
    pair = [torch.tensor(3.0), torch.tensor(1.0)]
    assert traced(pair) == fx.Transformer(traced).transform()(pair) == 2


def test_tracers_can_be_copied() -> None:
    tracer = fx.Tracer()
    before = copy.deepcopy(tracer)
    tracer.trace(lambda x: torch.relu(x) + math.sqrt(4))
    after = copy.deepcopy(tracer)
    assert not hasattr(before, "graph")
    assert str(after.graph) == str(tracer.graph) and after.graph is not tracer.graph
    assert len(before.trace(lambda x: math.floor(x)).nodes) == 3


def test_a_method_that_is_to_be_recorded_must_exist() -> None:
    tracer = fx.Tracer()
    tracer.traced_func_name = "backward"
    with pytest.raises(AssertionError, match="traced_func_name=backward doesn't exist in ReLU"):
        tracer.trace(nn.ReLU())


def test_transformers_hand_on_where_nodes_come_from() -> None:
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    relu = traced.graph.find_nodes(op="call_function", target=torch.relu)[0]
    relu.meta.update(source_fn_stack="source", partitioner_tag=3, val="of this node alone")
    changed = fx.Transformer(traced).transform()
    meta = changed.graph.find_nodes(op="call_function", target=torch.relu)[0].meta
    assert (meta["source_fn_stack"], meta["partitioner_tag"]) == ("source", 3)
    assert "val" not in meta
