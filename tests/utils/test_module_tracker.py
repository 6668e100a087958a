"""ModuleTracker: which modules run when an op asks, in forward and in backward."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.module_tracker import ModuleTracker

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
