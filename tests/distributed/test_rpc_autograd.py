"""Backward through remote calls, and the optimizer of parameters in other processes."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from distributed.checks import raised
from distributed.rpc_checks import same
from distributed.test_rpc import join
from distributed.worlds import run_world

import rushlight as torch
from rushlight import nn
from rushlight.distributed import autograd as dist_autograd
from rushlight.distributed import rpc
from rushlight.distributed.nn import RemoteModule
from rushlight.distributed.optim import DistributedOptimizer
from rushlight.distributed.rpc import _tape

weight = torch.tensor([2.0, -1.0, 0.5], requires_grad=True)  # each process has one


def scaled(x: Any) -> Any:
    return x * weight


def grad_of_weight(context: int) -> Any:
    return dist_autograd.get_gradients(context).get(weight)


def around(x: Any, calls: int) -> Any:
    """Goes from process to process, and comes back all the way."""
    y = scaled(x)
    if calls:
        following = (rpc.get_worker_info().id + 1) % 3
        y = rpc.rpc_sync(f"worker{following}", around, (y.sin(), calls - 1))
    return y + x


def around_alone(x: Any, calls: int, weights: list[Any], rank: int) -> Any:
    y = x * weights[rank]
    if calls:
        y = around_alone(y.sin(), calls - 1, weights, (rank + 1) % 3)
    return y + x


def scattered(x: Any, seed: float, depth: int, rank: int, weights: list[Any] | None) -> Any:
    """A random program: calls of its like, in turn or at once, some of no use or left alone.

    Args:
        x: what it computes with.
        seed: of its choices.
        depth: how deep calls nest.
        rank: of the process.
        weights: of all processes, to do without calls.
    """
    choice = random.Random(seed)
    y = x * (weight if weights is None else weights[rank])
    known = [x, y]
    for _ in range(choice.randint(0, 3) if depth else 0):
        to, seed = choice.randrange(3), choice.random()
        sent = choice.choice(known) * choice.random()
        counts, waits = choice.random() < 0.8, choice.random() < 0.6
        answer: Any = None
        if weights is not None:
            answer = scattered(sent, seed, depth - 1, to, weights)
        else:
            call = rpc.rpc_async(f"worker{to}", scattered, (sent, seed, depth - 1, to, None))
            answer = call.wait() if counts or waits else None
        if counts:
            known.append(answer.sin())
    result = known[-1] * 0.5
    for part in known:
        if choice.random() < 0.7:
            result = result + part * choice.random()
    return result


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise ValueError("no gradient today")


def broken(x: Any) -> Any:
    return rpc.rpc_sync("worker2", scaled, (Broken.apply(x),))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.linear = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.linear(x).tanh()

    def references(self) -> list[rpc.RRef]:
        return [rpc.RRef(parameter) for parameter in self.parameters()]

    def values(self) -> list[Any]:
        return [parameter.detach() for parameter in self.parameters()]


def contexts() -> int:
    return len(_tape._contexts)


def new_leaf() -> Any:
    return torch.ones(3, requires_grad=True)


def loss_of(x: Any) -> Any:
    return scaled(x).sum()


# ---- what rank 0 checks, while the others answer -------------------------------------------------


def one_call() -> None:
    x = new_leaf()
    with dist_autograd.context() as context:
        y = rpc.rpc_sync("worker1", scaled, (x,))
        assert y.requires_grad and not y.is_leaf
        y *= 3  # as a tensor of this process
        dist_autograd.backward(context, [y.sum()])
        torch.testing.assert_close(dist_autograd.get_gradients(context), {x: 3 * weight.detach()})
        there = rpc.rpc_sync("worker1", grad_of_weight, (context,))
        torch.testing.assert_close(there, 3 * x.detach())
        assert rpc.rpc_sync("worker2", grad_of_weight, (context,)) is None
        parameter = nn.Parameter(torch.ones(3))
        dist_autograd.backward(context, [rpc.rpc_sync("worker1", loss_of, (parameter,))])
        torch.testing.assert_close(dist_autograd.get_gradients(context)[parameter], weight.detach())
        copy = rpc.rpc_sync("worker1", same, (nn.Linear(2, 1),))
        assert [type(copied) for copied in copy.parameters()] == 2 * [nn.Parameter]
        assert all(copied.is_leaf for copied in copy.parameters())
    assert x.grad is None and not rpc.rpc_sync("worker1", scaled, (x.detach(),)).grad_fn


def many_calls() -> None:
    x = new_leaf()
    with dist_autograd.context() as context:
        y, z = around(x, 7), rpc.rpc_sync("worker2", around, (3 * x, 4))
        rpc.rpc_sync("worker1", scaled, (x,))  # nothing comes of it
        late = rpc.rpc_async("worker2", scaled, (x * y,))
        dist_autograd.backward(context, [(y * z).sum(), y.norm()])
        late.wait()
        grads = [rpc.rpc_sync(f"worker{i}", grad_of_weight, (context,)) for i in range(3)]
        mine = dist_autograd.get_gradients(context)[x]
    weights = [weight.detach().clone().requires_grad_() for _ in range(3)]
    alone = new_leaf()
    y = around_alone(alone, 7, weights, 0)
    z = around_alone(3 * alone, 4, weights, 2)
    ((y * z).sum() + y.norm()).backward()
    torch.testing.assert_close([mine, *grads], [leaf.grad for leaf in (alone, *weights)])


def backward_again() -> None:
    x = new_leaf()
    with dist_autograd.context() as context:
        y = around(x, 4).sum()
        dist_autograd.backward(context, [y], retain_graph=True)
        once = dist_autograd.get_gradients(context)[x]
        y = y + rpc.rpc_sync("worker2", loss_of, (x,))
        dist_autograd.backward(context, [y])
        torch.testing.assert_close(
            dist_autograd.get_gradients(context)[x], 2 * once + weight.detach()
        )
        assert "second time" in raised(RuntimeError, dist_autograd.backward, context, [y])
        y = rpc.rpc_sync("worker1", loss_of, (x,))  # a new tape
        dist_autograd.backward(context, [y])
        torch.testing.assert_close(
            dist_autograd.get_gradients(context)[x], 2 * once + 2 * weight.detach()
        )


def references() -> None:
    x = new_leaf()
    with dist_autograd.context() as context:
        there = rpc.remote("worker1", scaled, (x,))
        loss = rpc.remote("worker2", torch.sum, (there.to_here(),))
        loss.backward(context)
        torch.testing.assert_close(dist_autograd.get_gradients(context), {x: weight.detach()})
    loss = rpc.remote("worker1", loss_of, (x.detach(),))
    loss.backward()
    assert "refers to int" in raised(RuntimeError, rpc.RRef(3).backward)


def contexts_at_once() -> None:
    def grad(start: int) -> Any:
        x = torch.full((3,), float(start), requires_grad=True)
        with dist_autograd.context() as context:
            dist_autograd.backward(context, [around(x, 4).sum()])
            return dist_autograd.get_gradients(context)[x]

    with ThreadPoolExecutor(4) as threads:
        grads = list(threads.map(grad, range(20)))
    for start, got in enumerate(grads):
        x = torch.full((3,), float(start), requires_grad=True)
        around_alone(x, 4, [weight.detach()] * 3, 0).sum().backward()
        torch.testing.assert_close(got, x.grad)


def random_programs() -> None:
    def differ(seed: int) -> list[tuple[Any, Any]]:
        x = new_leaf()
        with dist_autograd.context() as context:
            dist_autograd.backward(context, [scattered(x, seed, 3, 0, None).sum()])
            grads = [rpc.rpc_sync(f"worker{i}", grad_of_weight, (context,)) for i in range(3)]
            grads.append(dist_autograd.get_gradients(context)[x])
        leaves = [weight.detach().clone().requires_grad_() for _ in range(3)] + [new_leaf()]
        scattered(leaves[3], seed, 3, 0, leaves[:3]).sum().backward()
        return [(grad, leaf.grad) for grad, leaf in zip(grads, leaves, strict=True)]

    with ThreadPoolExecutor(4) as threads:
        for pairs in threads.map(differ, range(100)):
            for here, alone in pairs:
                if here is None or alone is None:
                    assert here is None or not here.any()
                    assert alone is None or not alone.any()
                else:
                    torch.testing.assert_close(here, alone)


def steps() -> None:
    layers: list[Any] = [rpc.remote(f"worker{i}", Layer) for i in (1, 2)]
    parameters = [rref for layer in layers for rref in layer.rpc_sync().references()]
    optimizer = DistributedOptimizer(torch.optim.SGD, parameters, lr=0.1, momentum=0.9)
    alone = [Layer(), Layer()]
    same = torch.optim.SGD([p for layer in alone for p in layer.parameters()], lr=0.1, momentum=0.9)
    for _ in range(5):
        x = torch.randn(8, 4)
        with dist_autograd.context() as context:
            first, second = (layer.rpc_async().forward(x) for layer in layers)
            dist_autograd.backward(context, [(first.wait() - 2 * second.wait()).square().mean()])
            optimizer.step(context)
        same.zero_grad()
        (alone[0](x) - 2 * alone[1](x)).square().mean().backward()
        same.step()
    for layer, other in zip(layers, alone, strict=True):
        torch.testing.assert_close(layer.rpc_sync().values(), other.values())
    raised(ValueError, DistributedOptimizer, torch.optim.SGD, parameters, lr=-1.0)
    assert "Could not find" in raised(RuntimeError, optimizer.step, 12345)


def outer(module: Any, x: Any) -> Any:
    return module(x)


def remote_modules() -> None:
    layer = RemoteModule("rank:1/cpu", Layer)
    alone = Layer()
    x = torch.randn(3, 4, requires_grad=True)
    with dist_autograd.context() as context:
        y = rpc.rpc_sync("worker2", outer, (layer, 2 * layer(x)[:, :1] * x))  # in two processes
        dist_autograd.backward(context, [y.sum()])
        grads = dist_autograd.get_gradients(context)
        DistributedOptimizer(torch.optim.SGD, layer.remote_parameters(), lr=1.0).step(context)
    alone(2 * alone(x)[:, :1] * x).sum().backward()
    torch.testing.assert_close(grads[x], x.grad)
    torch.optim.SGD(alone.parameters(), lr=1.0).step()
    torch.testing.assert_close(layer.forward_async(x).wait(), alone(x))
    assert repr(layer) == "RemoteModule(of worker1)" and layer.get_module_rref().owner().id == 1
    assert not layer.eval().training
    assert not rpc.rpc_sync("worker1", is_training, (layer.get_module_rref(),))
    assert "remote_parameters()" in raised(ValueError, layer.parameters)
    assert "names no process" in raised(ValueError, RemoteModule, "/cpu", Layer)
    assert "no number" in raised(ValueError, RemoteModule, "rank:one", Layer)
    assert "no class of modules" in raised(ValueError, RemoteModule, "worker1", int)
    raised(TypeError, RemoteModule, "worker1", Layer, (3,))


def is_training(module: Any) -> bool:
    return module.local_value().training


def failures() -> None:
    x = new_leaf()
    with dist_autograd.context() as context:
        assert "do not nest" in raised(RuntimeError, dist_autograd.context().__enter__)
        y = rpc.rpc_sync("worker1", broken, (x,)).sum()
        text = raised(RuntimeError, dist_autograd.backward, context, [y])
        assert "worker1" in text and "ValueError: no gradient today" in text
        y = rpc.rpc_sync("worker1", loss_of, (x,))  # it can go on
        dist_autograd.backward(context, [y])
        torch.testing.assert_close(dist_autograd.get_gradients(context)[x], weight.detach())
        assert "No tensors" in raised(RuntimeError, dist_autograd.backward, context, [])
        assert "hold int" in raised(TypeError, dist_autograd.backward, context, [3])
        for root in (torch.ones(()), torch.ones(2, requires_grad=True)):
            raised(RuntimeError, dist_autograd.backward, context, [root])
    for call in (dist_autograd.get_gradients, lambda number: dist_autograd.backward(number, [y])):
        assert f"context with id: {context}" in raised(RuntimeError, call, context)


def nothing_is_left() -> None:
    end = time.monotonic() + 10
    while any(rpc.rpc_sync(f"worker{i}", contexts) for i in range(3)):
        assert time.monotonic() < end
        time.sleep(0.01)


CHECKS: list[Callable[[], None]] = [
    one_call, many_calls, backward_again, references, steps, remote_modules, failures,
    nothing_is_left, contexts_at_once, random_programs,
]  # fmt: skip


def run_checks(rank: int, folder: Path) -> None:
    join(rank, folder / "checks", 3, num_worker_threads=100)  # calls that wait for calls
    if rank == 0:
        for check in CHECKS:
            check()
    rpc.shutdown()


def test_backward_goes_through_calls(tmp_path: Path) -> None:
    assert dist_autograd.is_available()
    run_world(3, run_checks, tmp_path)


def die(x: Any) -> Any:
    return Fatal.apply(x)


class Fatal(Broken):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


def lose_a_process(rank: int, folder: Path) -> None:
    join(rank, folder / "dies", 3)
    if rank != 0:
        time.sleep(60)  # killed before
    start = time.monotonic()
    with dist_autograd.context() as context:
        y = rpc.rpc_sync("worker1", through_the_third, (new_leaf(),))
        text = raised(RuntimeError, dist_autograd.backward, context, [y.sum()])
    assert "worker2 has ended" in text and time.monotonic() - start < 10
    os._exit(0)


def through_the_third(x: Any) -> Any:
    return rpc.rpc_sync("worker2", die, (x,))


def test_a_process_that_ends_ends_backward(tmp_path: Path) -> None:
    started, _store = run_world(3, lose_a_process, tmp_path, join=False)
    first, *others = started.processes
    first.join(30)
    for other in others:
        other.kill()
    assert first.exitcode == 0


def test_contexts_need_init_rpc() -> None:
    with pytest.raises(RuntimeError, match="Call torch.distributed.rpc.init_rpc first"):
        dist_autograd.context().__enter__()
    with pytest.raises(RuntimeError, match="Could not find autograd context with id: 3"):
        dist_autograd.get_gradients(3)
