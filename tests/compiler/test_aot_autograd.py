"""Functions as two graphs, of results and of gradients."""

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor, nn
from rushlight._dynamo.backends.common import aot_autograd
from rushlight._functorch.package.compile import (
    aot_function,
    aot_module,
    make_boxed_func,
    min_cut_rematerialization_partition,
    nop,
    print_compile,
)
from rushlight.nn import functional as F


class Counting:
    """A compiler that lets graphs run as they are."""

    def __init__(self) -> None:
        self.codes: list[str] = []

    def __call__(self, module: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        self.codes.append(module.code)
        assert len(inputs) == len(module.graph.find_nodes(op="placeholder"))
        return make_boxed_func(module.forward)


def several(a: Tensor, b: Tensor, c: Tensor, scale: float) -> dict[str, Any]:
    return {"sum": (a @ b).relu().sum(), "others": (a.exp() * scale, c * 2), "number": 3}


def test_results_and_gradients_are_those_of_the_function() -> None:
    a, b = torch.randn(3, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    c = torch.randn(4)
    compiler = Counting()
    partition = min_cut_rematerialization_partition
    compiled = aot_function(several, compiler, partition_fn=partition)
    for scale in (2.0, 2.0, 3.0):
        found, expected = compiled(a, b, c, scale=scale), several(a, b, c, scale)
        assert found["number"] == 3 and not found["others"][1].requires_grad
        grads = [
            torch.autograd.grad(each["sum"] * 2 + each["others"][0].sum(), (a, b))
            for each in (found, expected)
        ]
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(*grads)
    assert len(compiler.codes) == 4
    with torch.no_grad():
        assert not compiled(a, b, c, 2.0)["sum"].requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(
            torch.autograd.grad(compiled(a, b, c, 2.0)["sum"], a, create_graph=True)[0].sum(), b
        )


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 3))


def test_modules_and_back_ends_train() -> None:
    x, y = torch.randn(4, 1, 8, 8), torch.tensor([0, 1, 2, 0])
    losses, means = [], []
    for wrap in (
        lambda net: net,
        lambda net: aot_module(net, fw_compiler=nop),
        lambda net: torch.compile(net, backend=aot_autograd(fw_compiler=nop)),
    ):
        net = network()
        compiled, optimizer = wrap(net), torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(3):
            loss = F.cross_entropy(compiled(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(net.get_buffer("1.running_mean"))
        assert net.get_buffer("1.num_batches_tracked").item() == 3
    assert losses[3:] == pytest.approx(losses[:3] * 2)
    torch.testing.assert_close(means[1:], means[:1] * 2)


def test_random_numbers_are_drawn_in_each_call() -> None:
    x = torch.ones(1000, requires_grad=True)
    compiled = aot_function(F.dropout, nop)
    torch.manual_seed(0)
    first, second = compiled(x), compiled(x)
    assert not first.equal(second)
    first.sum().backward()
    assert x.grad is not None and x.grad.equal(first)
    torch.manual_seed(0)
    assert first.equal(F.dropout(x))


def test_graphs_of_views_and_of_the_argument_itself(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.randn(2, 3, requires_grad=True)
    assert aot_function(lambda x: x.view(-1), nop)(x).shape == (6,)
    same = aot_function(lambda x: x, nop)(x)
    same.sum().backward()
    assert same.equal(x) and x.grad is not None and x.grad.equal(torch.ones(2, 3))
    aot_function(torch.neg, print_compile)(x)
    assert capsys.readouterr().out.count("neg.default(") == 2
