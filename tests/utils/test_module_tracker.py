"""ModuleTracker: which modules run when an op asks, in forward and in backward."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules.module import register_module_forward_pre_hook
from rushlight.utils.flop_counter import FlopCounterMode
from rushlight.utils.module_tracker import ModuleCalls, ModuleTracker

seen: list[tuple[str, list[str], bool]] = []


class Asks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, tracker: ModuleTracker) -> torch.Tensor:
        ctx.tracker = tracker
        seen.append(("forward", sorted(tracker.parents), tracker.is_bw))
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:  # pyright: ignore
        seen.append(("backward", sorted(ctx.tracker.parents), ctx.tracker.is_bw))
        return g, None


class Leaf(nn.Module):
    def forward(self, x: torch.Tensor, tracker: ModuleTracker) -> torch.Tensor:
        return Asks.apply(x, tracker)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.leaves = nn.ModuleList([Leaf(), Leaf()])
        self.last = nn.Linear(2, 1)

    def forward(self, x: torch.Tensor, tracker: ModuleTracker) -> torch.Tensor:
        for leaf in self.leaves:
            x = leaf(x, tracker)
        return self.last(x)


def test_modules_are_known_in_forward_and_backward() -> None:
    seen.clear()
    with ModuleTracker() as tracker:
        result = Net()(torch.ones(1, 2, requires_grad=True), tracker)
        assert tracker.parents == {"Global"} and not tracker.is_bw
        result.sum().backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
    first, second = (["Global", "Net", f"Net.leaves.{i}"] for i in range(2))
    assert seen == [
        ("forward", first, False),
        ("forward", second, False),
        ("backward", second, True),
        ("backward", first, True),
    ]


def test_all_is_forgotten_after_backward_and_after_errors() -> None:
    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ArithmeticError

    with ModuleTracker() as tracker:
        nn.Sequential(nn.Linear(2, 1))(torch.ones(1, 2)).sum().backward()  # no input requires grad
        assert tracker.parents == {"Global"}
        with pytest.raises(ArithmeticError):
            nn.Sequential(Fails())(torch.ones(1))
        assert tracker.parents == {"Global"}
    nn.Linear(2, 1)(torch.ones(1, 2))
    assert tracker.parents == {"Global"}


def test_each_module_that_begins_ends() -> None:
    lines: list[str] = []
    calls = ModuleCalls(
        lambda name, args: lines.append(f"{name} begins"),
        lambda name, result: lines.append(f"{name} ends{' well' * (result is not None)}"),
    )

    def fail(module: nn.Module, args: Any) -> None:
        if isinstance(module, nn.ReLU):
            raise ArithmeticError

    net = nn.Sequential(nn.ReLU())
    hook = register_module_forward_pre_hook(fail)
    try:
        with calls, FlopCounterMode(display=False), pytest.raises(ArithmeticError):
            net(torch.ones(1))
    finally:
        hook.remove()
    assert lines == ["Sequential begins", "Sequential ends"]
    lines.clear()
    with calls:
        net(torch.ones(1))
    net(torch.ones(1))
    names = ["Sequential", "Sequential.0"]
    assert lines == [f"{name} begins" for name in names] + [
        f"{name} ends well" for name in reversed(names)
    ]


def test_a_tracker_keeps_neither_modules_nor_tapes() -> None:
    kept: list[weakref.ref[Any]] = []

    def run() -> None:
        net = nn.Linear(2, 1)
        kept.extend((weakref.ref(net), weakref.ref(net.weight)))
        net(torch.ones(1, 2, requires_grad=True)).sum().backward()

    tracker = ModuleTracker()
    with tracker:
        run()
        gc.collect()
        assert [ref() for ref in kept] == [None, None]
