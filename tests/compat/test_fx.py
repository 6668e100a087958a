"""Graphs of the same programs in PyTorch and here: the same steps, names and arguments."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from fx.networks import inputs, networks

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytest.importorskip("torch.fx")

LIBRARIES = (torch, pytorch)
NAMES = list(networks(torch))


def numbers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in numbers(item)]
    return [value.detach().numpy()]


def plain(argument: Any) -> Any:
    """An argument as what both libraries print alike."""
    if isinstance(argument, (list, tuple)):
        return [plain(item) for item in argument]
    if isinstance(argument, dict):
        return {key: plain(value) for key, value in argument.items()}
    return str(argument)


@pytest.mark.parametrize("name", NAMES)
def test_graphs_have_the_same_steps(name: str) -> None:
    ours, theirs = (lib.fx.symbolic_trace(networks(lib)[name][0]) for lib in LIBRARIES)
    mine, wanted = list(ours.graph.nodes), list(theirs.graph.nodes)
    assert [(n.op, n.name) for n in mine] == [(n.op, n.name) for n in wanted]
    for a, b in zip(mine, wanted, strict=True):
        if not callable(b.target):
            assert a.target == b.target and plain(a.args) == plain(b.args)
        assert list(map(str, a.all_input_nodes)) == list(map(str, b.all_input_nodes))
        assert list(map(str, a.users)) == list(map(str, b.users))
        required = plain(b.args)
        assert plain(a.args)[: len(required)] == required, (a.format_node(), b.format_node())
    assert repr(ours).split("\n")[0] == repr(theirs).split("\n")[0]
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]


@pytest.mark.parametrize("name", NAMES)
def test_recorded_modules_give_pytorchs_results(name: str) -> None:
    (ours, shape), (theirs, _) = (networks(lib)[name] for lib in LIBRARIES)
    theirs.load_state_dict({k: pytorch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    ours, theirs = ours.eval(), theirs.eval()
    traced = torch.fx.symbolic_trace(ours)
    expected = numbers(pytorch.fx.symbolic_trace(theirs)(inputs(pytorch, shape)))
    x = inputs(torch, shape)
    for run in (traced, torch.fx.Interpreter(traced).run, torch.fx.Transformer(traced).transform()):
        for a, b in zip(numbers(run(x)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def arguments(x, *args, flag: bool = True, **kwargs):
    a, b = x.split(2)
    return math.floor(a.size(0)) + b[..., None] @ args[0] - kwargs["k"] // 2


def writes(x):
    y = x.relu_()
    y += 1
    return {"a": (y, [y.shape, 5]), "b": slice(0, y.size(0))}


def numbered(x, x_1, len, add):
    return (x + x_1).add(len).sum() + add.max() + (x > 1) | ~(x != 2)


@pytest.mark.parametrize("function", [arguments, writes, numbered])
def test_functions_give_the_same_code(function: Any) -> None:
    ours, theirs = (lib.fx.symbolic_trace(function) for lib in LIBRARIES)

    def lines(text: str) -> list[str]:
        text = text.replace("rushlight.", "torch.")
        text = text.replace("torch.fx._symbolic_trace.wrap", "torch.fx.wrap")
        return [line for line in text.splitlines() if line.strip() and "def forward" not in line]

    assert lines(ours.code) == lines(theirs.code)
    printed, expected = str(ours.graph), str(theirs.graph).replace(": 'bool'", ": bool")
    assert printed.replace("rushlight.", "torch.").splitlines()[1:] == expected.splitlines()[1:]


def branches(lib: Any) -> Any:
    return lib.fx.symbolic_trace(lambda x: x if x > 0 else -x)


def loops(lib: Any) -> Any:
    return lib.fx.symbolic_trace(lambda x: [i + 1 for i in x])


def length(lib: Any) -> Any:
    return lib.fx.symbolic_trace(lambda x: [1].__getitem__(len(x)))


def unknown(lib: Any) -> Any:
    return lib.fx.symbolic_trace(lambda x: x + object())


def erased(lib: Any) -> Any:
    graph = lib.fx.symbolic_trace(lambda x: x + 1).graph
    graph.erase_node(next(iter(graph.nodes)))


def foreign(lib: Any) -> Any:
    graph, other = lib.fx.Graph(), lib.fx.Graph()
    graph.call_function(lib.relu, (other.placeholder("x"),))
    graph.lint()


def changed(lib: Any) -> Any:
    graph = lib.fx.symbolic_trace(lambda x: [x]).graph
    next(iter(reversed(graph.nodes))).args[0].append(1)


def missing(lib: Any) -> Any:
    lib.fx.Interpreter(lib.fx.symbolic_trace(lambda x: x)).run()


def foreign_module(lib: Any) -> Any:
    layer = lib.nn.Linear(1, 1)
    lib.fx.symbolic_trace(lambda x: layer(x))


def foreign_parameter(lib: Any) -> Any:
    layer = lib.nn.Linear(1, 1)
    lib.fx.symbolic_trace(lambda x: x * layer.weight)


@pytest.mark.parametrize(
    "mistake",
    [
        branches,
        loops,
        length,
        unknown,
        erased,
        foreign,
        changed,
        missing,
        foreign_module,
        foreign_parameter,
    ],
)
def test_mistakes_raise_the_same_class(mistake: Any) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        mistake(pytorch)
    with pytest.raises(Exception) as ours:  # noqa: PT011
        mistake(torch)
    assert ours.type.__name__ == theirs.type.__name__
    assert ours.type.__mro__[1] is theirs.type.__mro__[1]


def test_names_are_given_out_alike() -> None:
    wanted = ("x", "x", "x_1", "a.b", "0", "for", "len", "x_7", "x_7", "aB", "Conv2d", "inf", "x_0")
    ours, theirs = (
        [graph.create_node("call_method", name, ()).name for name in wanted]
        for graph in (torch.fx.Graph(), pytorch.fx.Graph())
    )
    assert ours == theirs


def test_splitting_gives_the_same_parts() -> None:
    from torch.fx.passes.split_module import split_module as their_split

    from rushlight.fx.passes.split_module import split_module

    parts = []
    for lib, split in ((torch, split_module), (pytorch, their_split)):
        net = networks(lib)["resnet"][0]
        traced = lib.fx.symbolic_trace(net)
        order = {n.name: i for i, n in enumerate(traced.graph.nodes)}
        whole = split(traced, net, lambda n, order=order: order[n.name] // 12)
        parts.append(
            [
                [(n.op, n.name, str(n.target)) for n in child.graph.nodes if not callable(n.target)]
                for child in (whole, *(c for _, c in whole.named_children()))
            ]
        )
    assert parts[0] == parts[1]


def test_patterns_are_found_in_the_same_places() -> None:
    def f(x, w):
        a = (x + w).relu() * 2
        return (a + w).relu() * 3 + (x + x).relu()

    found = []
    for lib in LIBRARIES:
        traced = lib.fx.symbolic_trace(f)
        matches = lib.fx.replace_pattern(traced, lambda a, b: (a + b).relu(), lambda a, b: a - b)
        found.append(([m.anchor.name for m in matches], traced.code.split(":", 1)[1].rstrip()))
    assert found[0] == found[1]


PATTERNS: Any = {
    "chain": (lambda lib: lambda a: lib.relu(lib.relu(a)), {}),
    "overlapping": (
        lambda lib: lambda a: lib.relu(lib.relu(a)),
        {"remove_overlapping_matches": False},
    ),
    "two results": (lambda lib: lambda a, b: (lib.relu(a), lib.exp(b)), {}),
    "constant": (lambda lib: lambda a: lib.sum(a, 1), {}),
    "any constant": (lambda lib: lambda a: lib.sum(a, 5), {"ignore_literals": True}),
    "input for a constant": (lambda lib: lambda a, b: lib.sum(a, b), {}),
    "inputs": (lambda lib: lambda a: lib.exp(a), {"match_placeholder": True}),
    "output": (lambda lib: lambda a: lib.sum(a, 0), {"match_output": True}),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_matched_alike(name: str) -> None:
    def program(lib: Any) -> Any:
        def run(x: Any, y: Any) -> Any:
            x = lib.relu(lib.relu(lib.relu(x)))
            return lib.sum(lib.sum(lib.exp(x), 1) + lib.exp(lib.exp(y)), 0)

        return run

    make_pattern, options = PATTERNS[name]
    found = []
    for lib in LIBRARIES:
        utils = importlib.import_module(f"{lib.__name__}.fx.passes.utils.matcher_utils")
        pattern = lib.fx.symbolic_trace(make_pattern(lib)).graph
        matches = utils.SubgraphMatcher(pattern, **options).match(
            lib.fx.symbolic_trace(program(lib)).graph
        )
        found.append(
            [(str(m.returning_nodes), str(m.placeholder_nodes), str(m.anchors)) for m in matches]
        )
    assert found[0] == found[1]


def test_shapes_are_noted_alike() -> None:
    from torch.fx.passes.shape_prop import ShapeProp as TheirShapeProp

    from rushlight.fx.passes.shape_prop import ShapeProp

    noted = []
    for lib, prop in ((torch, ShapeProp), (pytorch, TheirShapeProp)):
        net, shape = networks(lib)["resnet"]
        traced = lib.fx.symbolic_trace(net.eval())
        prop(traced).propagate(inputs(lib, shape))
        noted.append([str(tuple(n.meta["tensor_meta"])[:5]) for n in traced.graph.nodes])
    assert noted[0] == noted[1]


@pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning")
def test_fusing_gives_pytorchs_numbers() -> None:
    from torch.fx.experimental.optimization import fuse as their_fuse

    from rushlight.fx.experimental.optimization import fuse

    (ours, shape), (theirs, _) = (networks(lib)["resnet"] for lib in LIBRARIES)
    theirs.load_state_dict({k: pytorch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    a, b = fuse(ours.eval()), their_fuse(theirs.eval())
    assert sorted(n for n, _ in a.named_parameters()) == sorted(n for n, _ in b.named_parameters())
    result = a(inputs(torch, shape)).detach().numpy()
    np.testing.assert_allclose(
        result, b(inputs(pytorch, shape)).detach().numpy(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("module", "left_out"),
    [
        ("fx", set()),
        ("fx.Graph", {"on_generate_code"}),
        ("fx.Node", {"normalized_arguments"}),
        ("fx.GraphModule", set()),
        ("fx.Interpreter", set()),
        ("fx.Transformer", set()),
        ("fx.Proxy", set()),
    ],
)
def test_public_names_are_pytorchs(module: str, left_out: set[str]) -> None:
    def found(library: Any) -> Any:
        for part in module.split("."):
            library = getattr(library, part)
        return library

    ours, theirs = found(torch), found(pytorch)
    public = getattr(theirs, "__all__", None) or [
        n for n in vars(theirs) if not n.startswith("_") and callable(getattr(theirs, n))
    ]
    internal = ("create_s", "materialize_")
    wanted = {n for n in public if not n.startswith(internal)} - left_out
    assert not {n for n in wanted if not hasattr(ours, n)}
