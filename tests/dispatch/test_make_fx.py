"""Graphs of the ops below autograd: make_fx."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.fx.experimental.proxy_tensor import (
    disable_proxy_modes_tracing,
    get_proxy_mode,
    make_fx,
)

aten = torch.ops.aten
X = torch.arange(6.0).view(2, 3) / 3
Y = torch.arange(6.0).view(2, 3) - 2


def targets(graph: Any) -> list[str]:
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


def test_the_code_reads_like_the_function() -> None:
    graph = make_fx(lambda x, y: (x + y).relu() * 2)(X, Y)
    lines = graph.code.strip().splitlines()
    assert lines[0] == "def forward(self, x_1, y_1):"
    assert lines[1].strip().startswith("add = rushlight.ops.aten.add.Tensor(x_1, y_1)")
    assert lines[-1].strip() == "return mul"
    assert torch.equal(graph(Y, X * 5), (Y + X * 5).relu() * 2)
    assert targets(graph) == ["aten.add.Tensor", "aten.relu.default", "aten.mul.Tensor"]


def test_gradients_are_part_of_the_graph() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 1))

    def loss(x: torch.Tensor) -> torch.Tensor:
        return net(x).square().sum()

    graph = make_fx(torch.func.grad(loss))(X)
    torch.testing.assert_close(graph(Y), torch.func.grad(loss)(Y))
    assert [name for name, _ in graph.named_parameters()] == [
        f"_param_constant{i}" for i in range(6)
    ]
    assert graph._param_constant0 is net[0].weight


def test_backward_inside_the_function() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        (x.exp() * x).sum().backward()
        return x.grad

    graph = make_fx(f)(X)
    torch.testing.assert_close(graph(Y), Y.exp() * (Y + 1))


def test_nested_arguments_and_results() -> None:
    def f(x: Any, d: dict[str, list[torch.Tensor]], n: int) -> Any:
        values, places = (x + d["a"][0] * n).max(1)
        return {"v": values, "p": (places, n)}

    graph = make_fx(f)(X, {"a": [Y]}, 3)
    found, expected = graph(Y, {"a": [X]}, 3), f(Y, {"a": [X]}, 3)
    assert torch.equal(found["v"], expected["v"]) and torch.equal(found["p"][0], expected["p"][0])
    assert found["p"][1] == 3
    with pytest.raises(ValueError, match="the arguments are"):
        graph(Y, {"b": [X]}, 3)


def test_writes_in_place() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y.add_(1)
        y[0].mul_(2)
        return y

    graph = make_fx(f)(X)
    assert torch.equal(graph(Y), f(Y))
    assert "aten.mul_.Tensor" in targets(graph)


def test_tensors_that_are_no_arguments_are_constants() -> None:
    table = torch.tensor([1.0, 2.0, 3.0])
    graph = make_fx(lambda x: x * table + torch.ones(3))(X)
    assert graph._tensor_constant0 is table
    assert torch.equal(graph(Y), Y * table + 1)
    assert "aten.ones.default" in targets(graph)


def test_several_results_of_an_op() -> None:
    graph = make_fx(lambda x: x.sort(1)[0])(X)
    assert operator.getitem in [node.target for node in graph.graph.nodes]
    assert torch.equal(graph(Y), Y.sort(1).values)


def test_decompositions() -> None:
    table = {aten.tanh.default: lambda x: 2 * (2 * x).sigmoid() - 1}
    graph = make_fx(torch.tanh, table)(X)
    assert "aten.sigmoid.default" in targets(graph) and "aten.tanh.default" not in targets(graph)
    torch.testing.assert_close(graph(Y), Y.tanh())


def test_a_decomposition_may_leave_a_call_as_it_is() -> None:
    def scaled(x: torch.Tensor, y: torch.Tensor, *, alpha: Any = 1) -> Any:
        return NotImplemented if alpha == 1 else x + alpha * y

    graph = make_fx(
        lambda x, y: torch.add(x, y) + torch.add(x, y, alpha=2), {aten.add.Tensor: scaled}
    )
    traced = graph(X, Y)
    assert targets(traced) == ["aten.add.Tensor", "aten.mul.Tensor", *["aten.add.Tensor"] * 2]
    torch.testing.assert_close(traced(Y, X), 2 * Y + 3 * X)


STEPS = {
    "rnn": (lambda x, w: torch.rnn_tanh_cell(x, x, w, w), "aten.tanh.default"),
    "gru": (lambda x, w: torch.gru_cell(x, x, w.repeat(3, 1), w.repeat(3, 1)), "aten.tanh.default"),
    "lstm": (
        lambda x, w: torch.lstm_cell(x, (x, x), w.repeat(4, 1), w.repeat(4, 1))[0],
        "aten.tanh.default",
    ),
    "grid_sample": (
        lambda x, w: F.grid_sample(x[None, None], w[None, :, :2, None].mT, align_corners=False),
        "aten.grid_sampler_2d.default",
    ),
}


@pytest.mark.parametrize("name", ["sin_", "square_", "log1p_", "mul_", "div_", "hypot_"])
def test_gradients_of_writes_read_what_was_written_to(name: str) -> None:
    def gradient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x.detach().clone().requires_grad_()
        z = x * 2
        getattr(z, name)(*(y,) * (name in ("mul_", "div_", "hypot_")))
        return torch.autograd.grad((z * z).sum(), x)[0]

    graph = make_fx(gradient)(X + 1, X + 2)
    torch.testing.assert_close(graph(X + 3, X + 5), gradient(X + 3, X + 5))
    assert not list(graph.buffers())


@pytest.mark.parametrize("name", STEPS)
def test_no_step_is_missing(name: str) -> None:
    function, step = STEPS[name]

    def gradients(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        x, w = x.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
        y = function(x, w)
        return [y.detach(), *torch.autograd.grad(y.square().sum(), (x, w))]

    torch.manual_seed(0)
    graph = make_fx(gradients)(torch.randn(3, 3), torch.rand(3, 3))
    x, w = torch.randn(3, 3), torch.rand(3, 3)
    for found, expected in zip(graph(x, w), gradients(x, w), strict=True):
        torch.testing.assert_close(found, expected)
    assert not any(b.numel() for b in graph.buffers()) and step in targets(graph)


def test_places_of_a_fixed_number_are_found_anew() -> None:
    graph = make_fx(lambda x: torch.nonzero_static(x, size=2))(torch.tensor([0, 1, 1]))
    assert graph(torch.tensor([1, 0, 1])).tolist() == [[0], [2]]


INDEXED = {
    "classes": lambda x, i: F.cross_entropy(x, i),
    "smoothed classes": lambda x, i: F.cross_entropy(x, i, label_smoothing=0.1),
    "classes of pictures": lambda x, i: F.nll_loss(x[None], i[None]),
    "rows scaled down": lambda x, i: F.embedding(i, x, max_norm=0.5).sum(),
    "products": lambda x, i: torch.ones(4).scatter_reduce(0, i, x[:, 0], "prod").sum(),
    "largest": lambda x, i: torch.ones(4).scatter_reduce(0, i, x[:, 0], "amax").sum(),
    "maxima of windows": lambda x, i: F.max_pool2d(x[None], 2).square().sum(),
    "adaptive maxima": lambda x, i: F.adaptive_max_pool2d(x[None], 2).square().sum(),
    "median": lambda x, i: x.median(1).values.square().sum(),
    "LU": lambda x, i: torch.linalg.lu(x)[2].square().sum(),
    "solution": lambda x, i: torch.linalg.solve(x, torch.ones(4)).sum(),
}


@pytest.mark.parametrize("name", INDEXED)
def test_other_places_than_those_of_the_example(name: str) -> None:
    def step(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        x = x.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(INDEXED[name](x * 1, i), x)
        return gradient

    torch.manual_seed(0)
    first, low = torch.randn(4, 4), torch.tensor([0, 0, 1, 1])
    graph = make_fx(step)(first, low)
    for places in ([3, 2, 1, 0], [3, 3, 3, 3]):
        x, i = torch.randn(4, 4), torch.tensor(places)
        torch.testing.assert_close(graph(x, i), step(x, i))


def test_places_that_are_not_there_are_refused() -> None:
    graph = make_fx(F.cross_entropy)(X, torch.tensor([0, 1]))
    with pytest.raises(
        RuntimeError, match="integers from 1 to 3 were passed where -100 to 2 may be"
    ):
        graph(X, torch.tensor([1, 3]))


def test_graphs_are_copied_and_pickled() -> None:
    import copy
    import pickle

    graph = make_fx(lambda x: x.exp() + 1)(X)
    for other in copy.deepcopy(graph), pickle.loads(pickle.dumps(graph)):
        assert torch.equal(other(Y), Y.exp() + 1)


def test_numbers_are_refused() -> None:
    with pytest.raises(RuntimeError, match="asks for the number in a tensor"):
        make_fx(lambda x: x * x.sum().item())(X)
    with pytest.raises(ValueError, match="tracing_mode"):
        make_fx(torch.sin, tracing_mode="dream")
    assert get_proxy_mode() is None


def test_numbers_in_literals_and_of_them_are_known() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        scale = torch.tensor([2.0, 3.0])
        view = scale[1]
        scale.mul_(2)
        y = x * view.item() * float(scale.sum() / 2)
        return y + 1 if torch.tensor(True) else y

    graph = make_fx(program)(X)
    assert torch.equal(graph(Y), Y * 6 * 5 + 1)


def test_what_is_written_to_out_is_recorded() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        total, (values, places) = torch.zeros(()), (torch.zeros(2), torch.zeros(2).long())
        torch.sum(x, out=total)
        torch.max(x, 1, out=(values, places))
        return x * total + values[0] + places[1]

    graph = make_fx(program)(X)
    assert torch.equal(graph(-Y), program(-Y))
    assert targets(graph).count("aten.copy_.default") == 3


CLOSED = torch.ones(())


@pytest.mark.parametrize(
    "write",
    [
        lambda literal, x: literal.add_(x.sum()),
        lambda literal, x: literal.view(1).copy_(x[:1, 0]),
        lambda literal, x: torch.sum(x, out=literal),
        lambda literal, x: literal.bernoulli_(0.5),
        lambda literal, x: literal.add_(CLOSED),
    ],
)
def test_a_literal_that_something_else_was_written_to_is_known_no_more(write: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        literal = torch.tensor(1.0)
        write(literal, x)
        return x * literal.item()

    with pytest.raises(RuntimeError, match="asks for the number in a tensor"):
        make_fx(program)(X)


def test_numbers_of_literals_and_others_are_refused() -> None:
    for program in (
        lambda x: x * (torch.tensor(2.0) * x.sum()).item(),
        lambda x: x * CLOSED.item(),
        lambda x: x * torch.rand_like(torch.tensor(2.0)).item(),
    ):
        with pytest.raises(RuntimeError, match="asks for the number in a tensor"):
            make_fx(program)(X)


def test_all_tracing_modes() -> None:
    for mode in "real", "fake", "symbolic":
        assert torch.equal(make_fx(torch.sin, tracing_mode=mode)(X)(Y), Y.sin())


def test_the_mode_can_be_asked_for_and_left() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        assert get_proxy_mode() is not None
        with disable_proxy_modes_tracing():
            assert get_proxy_mode() is None
            constant = torch.ones(3) * 2
        return x + constant

    graph = make_fx(f)(X)
    assert targets(graph) == ["aten.add.Tensor"] and torch.equal(graph(Y), Y + 2)


def test_vmap_inside() -> None:
    graph = make_fx(torch.vmap(torch.func.grad(lambda x: x.sin().sum())))(X)
    torch.testing.assert_close(graph(Y), Y.cos())
