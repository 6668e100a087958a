"""The tape under stress: huge and wide graphs, memory, threads, forks, hooks that fail."""

from __future__ import annotations

import gc
import os
import threading
import traceback
from collections.abc import Callable

import numpy as np
import pytest
from memory import live_bytes, resident_kb

import rushlight as torch

BIG = 1 << 16  # elements, so that a tensor of float32 is large beside everything else
BYTES = 4 * BIG


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


# Large graphs


def test_a_long_chain_is_freed_without_backward() -> None:
    y = leaf(1.0)
    before = live_bytes()
    for _ in range(1_000_000):
        y = y + 1.0
    del y
    gc.collect()
    assert live_bytes() <= before + 2 * BIG  # half a gradient


def test_a_long_chain_of_writes_in_place() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    for _ in range(50_000):
        y.add_(1.0)
        y[0] += 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert y.tolist() == [100_001.0, 50_002.0]


def test_a_hundred_thousand_parameters_in_one_graph() -> None:
    parameters = [torch.tensor(float(i), requires_grad=True) for i in range(100_000)]
    torch.stack(parameters).sum().backward()
    total = torch.tensor(0.0)
    for parameter in parameters:
        total = total + parameter * 2
    total.backward()
    assert all(parameter.grad.item() == 3.0 for parameter in parameters)


def test_a_leaf_that_is_used_a_hundred_thousand_times() -> None:
    x = leaf(1.0)
    torch.cat([x * 1 for _ in range(100_000)]).sum().backward()
    assert x.grad.item() == 100_000.0


def test_paths_that_double_at_every_step_are_walked_once() -> None:
    x = leaf(3.0)
    y = x
    for _ in range(10_000):
        y = (y + y) * 0.5
    y.backward()
    assert x.grad.item() == 1.0


def test_a_result_with_many_outputs_gets_all_their_gradients() -> None:
    x = torch.ones(20_000, requires_grad=True)
    torch.stack(x.unbind()[::2]).sum().backward()
    assert x.grad.sum().item() == 10_000.0
    assert x.grad[:4].tolist() == [1.0, 0.0, 1.0, 0.0]


def test_gradients_of_a_deep_graph_can_be_differentiated() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(2000):
        y = y * 1.001
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.item() == pytest.approx(2 * 1.001**4000, rel=1e-3)


# Memory


def chain_of_tanh(steps: int, watch: Callable[[int], None]) -> torch.Tensor:
    """A chain whose every node saves its large result; watch(k) runs as node k gets its gradient.

    The tape alone keeps the results alive.
    """
    y = torch.zeros(BIG, requires_grad=True) * 1.0
    for k in range(steps):
        y = y.tanh()
        y.register_hook(lambda _, k=k: watch(k))
    return y.sum()


def test_backward_frees_what_a_node_saved_as_soon_as_it_ran() -> None:
    seen: dict[int, int] = {}
    before = live_bytes()
    loss = chain_of_tanh(20, lambda k: seen.__setitem__(k, live_bytes() - before))
    loss.backward()
    for k, alive in seen.items():
        saved = k + 1  # those of node k and of the nodes before it
        leaf_and_gradients = 3
        assert alive <= (saved + leaf_and_gradients) * BYTES + 100_000, (k, alive / BYTES)


def test_a_retained_graph_keeps_what_it_saved() -> None:
    seen: dict[int, int] = {}
    before = live_bytes()
    loss = chain_of_tanh(20, lambda k: seen.__setitem__(k, live_bytes() - before))
    loss.backward(retain_graph=True)
    assert seen[0] >= 20 * BYTES
    loss.backward()
    assert seen[0] <= 4 * BYTES + 100_000


def test_gradients_of_inner_tensors_do_not_pile_up() -> None:
    peak = 0

    def watch(_: torch.Tensor) -> None:
        nonlocal peak
        peak = max(peak, live_bytes())

    y = torch.zeros(BIG, requires_grad=True)
    for _ in range(50):
        y = y + 1.0  # saves nothing
        y.register_hook(watch)
    loss = y.sum()
    before = live_bytes()
    loss.backward()
    assert peak - before <= 3 * BYTES + 100_000


def test_a_graph_is_freed_with_its_last_tensor() -> None:
    before = live_bytes()
    loss = chain_of_tanh(10, lambda k: None)
    assert live_bytes() - before >= 10 * BYTES
    del loss
    assert live_bytes() <= before + 1000


@pytest.mark.not_sanitized("freed memory waits for a while before it is used again")
def test_ten_thousand_training_steps_leave_memory_flat() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    optimizer = torch.optim.Adam(net.parameters())
    x, labels = torch.randn(16, 10), torch.randint(0, 3, (16,))

    def train(steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), labels).backward()
            optimizer.step()

    train(1000)
    resident, live = resident_kb(), live_bytes()
    train(10_000)
    assert live_bytes() == live
    assert resident_kb() - resident < 2000


# Threads and processes


def test_threads_add_up_exactly_in_shared_leaves() -> None:
    shared = [torch.ones(64, requires_grad=True) for _ in range(4)]

    def work(number: int) -> None:
        for _ in range(100):
            total = sum((leaf * (number + 1)).sum() for leaf in shared)
            assert isinstance(total, torch.Tensor)
            total.backward()

    in_threads(6, work)
    for tensor in shared:
        assert tensor.grad.tolist() == [100.0 * 21] * 64


def test_threads_that_first_use_leaves_at_once_meet_in_them() -> None:
    leaves = [torch.ones(16, requires_grad=True) for _ in range(3000)]
    barrier, ends = threading.Barrier(2), []

    def work(_: int) -> None:
        barrier.wait()
        node = torch.cat(leaves).grad_fn
        assert node is not None
        ends.append([end for end, _ in node.next_functions])

    in_threads(2, work)
    assert ends[0] == ends[1]


def test_threads_build_graphs_over_one_tensor() -> None:
    x = torch.ones(8, requires_grad=True)
    inner = x * 2

    def work(_: int) -> None:
        for _ in range(200):
            (g,) = torch.autograd.grad((inner.exp() * inner).sum(), inner, retain_graph=True)
            assert g.shape == (8,)

    in_threads(4, work)
    inner.sum().backward()
    assert x.grad.tolist() == [2.0] * 8


def test_modes_belong_to_a_thread() -> None:
    seen: list[bool] = []
    with torch.no_grad():
        in_threads(1, lambda _: seen.append(torch.is_grad_enabled()))
    assert seen == [True]


def test_a_graph_outlives_the_thread_that_made_it() -> None:
    x = leaf(1.0)
    made: list[torch.Tensor] = []

    def build(_: int) -> None:
        y = x
        for _ in range(1000):
            y = y + 1.0
        made.append(y)

    in_threads(4, build)
    torch.stack(made).sum().backward()
    assert x.grad.item() == 4.0


def test_a_graph_dies_in_another_thread() -> None:
    y = leaf(1.0)
    for _ in range(100_000):
        y = y * 1.0
    box = [y]
    del y
    in_threads(1, lambda _: box.clear())
    assert not box


def test_backward_in_another_thread_than_forward() -> None:
    x = leaf(2.0)
    loss = (x * x).sum()
    in_threads(1, lambda _: loss.backward())
    assert x.grad.item() == 4.0


def test_threads_may_all_walk_a_tape_that_is_not_retained() -> None:
    def walk_at_once(loss: torch.Tensor) -> list[str]:
        start = threading.Barrier(4)
        ended: list[str] = []

        def work(_: int) -> None:
            start.wait()
            try:
                loss.backward()
                ended.append("")
            except RuntimeError as error:
                ended.append(str(error))

        in_threads(4, work)
        return ended

    for _ in range(10):
        y = leaf(0.1, 0.2)
        for _ in range(1000):
            y = (y * 0.5).exp()
        assert all(not message or "a second time" in message for message in walk_at_once(y.sum()))


def test_gradients_are_read_and_dropped_while_threads_add_to_them() -> None:
    x = torch.ones(4, requires_grad=True)
    inner = x * 1
    inner.retain_grad()
    loss = inner.exp().sum()

    def work(number: int) -> None:
        for _ in range(2000):
            if number < 2:
                loss.backward(retain_graph=True)
            elif number == 2:
                x.grad = inner.grad = None
            elif (grad := x.grad) is not None:
                assert grad.shape == (4,)

    in_threads(4, work)


def test_a_child_of_fork_goes_on_with_the_tape() -> None:
    x = torch.ones(300, 300, requires_grad=True)
    loss = (x @ x).sum()
    loss.backward(retain_graph=True)
    child = os.fork()
    if child == 0:
        x.grad = None
        loss.backward()
        os._exit(0 if x.grad[0, 0].item() == 600.0 else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    loss.backward()
    assert x.grad[0, 0].item() == 1200.0


# Hooks


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_an_error_in_a_hook_comes_out_whole(error: type[BaseException]) -> None:
    x = leaf(2.0)

    def hook_that_fails(grad: torch.Tensor) -> None:
        raise error("from the hook")

    y = x * x
    handle = y.register_hook(hook_that_fails)
    with pytest.raises(error, match="from the hook") as caught:
        y.sum().backward(retain_graph=True)
    assert "hook_that_fails" in [
        entry.name for entry in traceback.extract_tb(caught.value.__traceback__)
    ]
    assert x.grad is None
    assert torch.is_grad_enabled()
    handle.remove()
    y.sum().backward()
    assert x.grad.item() == 4.0


def test_an_error_in_a_hook_frees_the_gradients_on_their_way() -> None:
    x = torch.zeros(BIG, requires_grad=True)
    y = x * 1.0
    y.register_hook(lambda _: 1 / 0)
    loss = (y * 2.0).sum()
    before = live_bytes()
    with pytest.raises(ZeroDivisionError):
        loss.backward()
    gc.collect()
    assert live_bytes() <= before + 2 * BIG  # half a gradient


def test_backward_runs_inside_a_hook() -> None:
    x, other = leaf(2.0), leaf(3.0)

    def hook(_: torch.Tensor) -> None:
        with torch.enable_grad():
            (other * other).sum().backward()

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    assert x.grad.item() == 2.0 and other.grad.item() == 6.0


def test_backward_inside_hooks_inside_backward() -> None:
    x = leaf(1.0)

    @torch.enable_grad()
    def nest(depth: int) -> None:
        y = x * 1.0
        if depth:
            y.register_hook(lambda _: nest(depth - 1))
        y.sum().backward()

    nest(50)
    assert x.grad.item() == 51.0


def test_a_hook_may_use_the_gradient_as_it_likes() -> None:
    x = leaf(1.0, 2.0)
    kept: list[torch.Tensor] = []
    y = x * 3
    y.register_hook(kept.append)
    y.register_hook(lambda g: torch.from_numpy(np.flip(g.numpy()).copy()))
    (y * torch.tensor([1.0, 2.0])).sum().backward()
    assert kept[0].tolist() == [1.0, 2.0]
    assert x.grad.tolist() == [6.0, 3.0]
