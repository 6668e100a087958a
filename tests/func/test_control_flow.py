"""Loops as functions (rushlight/_higher_order_ops)."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor
from rushlight._higher_order_ops import foreach_map, map, scan
from rushlight.fx.experimental.proxy_tensor import make_fx


def test_cond_chooses_for_each_sample_and_in_graphs() -> None:
    def chosen(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, (x,))

    rows = torch.tensor([[1.0, 2.0], [-1.0, -2.0]], requires_grad=True)
    assert torch.func.vmap(chosen)(rows).tolist() == [[2, 4], [1, 2]]
    gradients = torch.func.vmap(torch.func.grad(lambda x: chosen(x).sum()))(rows)
    assert gradients.tolist() == [[2, 2], [-1, -1]]
    graph = make_fx(chosen)(rows[0])
    assert graph(rows[1]).tolist() == [1, 2] and graph(rows[0]).tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="in a recording or in vmap, their results must be"):
        torch.func.vmap(lambda x: torch.cond(x.sum() > 0, torch.sum, torch.neg, (x,)))(rows)


def test_map_stacks_what_the_function_makes_of_slices() -> None:
    xs = {"a": torch.arange(6.0).reshape(3, 2).requires_grad_(), "b": torch.ones(3)}
    result = map(lambda x, y: (x["a"] * y, x["b"]), xs, 2)
    assert result[0].tolist() == [[0, 2], [4, 6], [8, 10]]
    result[0].sum().backward()
    assert xs["a"].grad is not None
    assert xs["a"].grad.unique().tolist() == [2]


def test_scan_carries_a_value_forwards_or_backwards() -> None:
    def step(total: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return total + x, total + x

    xs = torch.arange(1.0, 7.0).reshape(2, 3)
    last, sums = scan(step, torch.zeros(2), xs, dim=1)
    assert torch.equal(sums, xs.cumsum(1).T) and torch.equal(last, xs.sum(1))
    last, sums = scan(step, torch.zeros(2), xs, dim=-1, reverse=True)
    assert torch.equal(sums, xs.flip(1).cumsum(1).flip(1).T)


@pytest.mark.parametrize(
    "xs", [[], torch.ones(()), torch.ones(0, 2), [torch.ones(2), torch.ones(3)], [1]]
)
def test_map_refuses_what_has_no_slices(xs: Any) -> None:
    with pytest.raises(RuntimeError, match="expected"):
        map(lambda x: x, xs)


def test_foreach_map_runs_over_lists_and_repeats_the_rest() -> None:
    xs = [torch.ones(1), torch.ones(2) * 2]
    assert [x.tolist() for x in foreach_map(torch.lerp, xs, (xs[0] * 3, xs[1]), 0.5)] == [
        [2],
        [2, 2],
    ]
    assert foreach_map(torch.add, 1, torch.ones(1)).tolist() == [2]
    with pytest.raises(RuntimeError, match=r"equally long, got \[1, 2\]"):
        foreach_map(torch.add, xs, xs[:1])


def test_scan_refuses_another_structure() -> None:
    with pytest.raises(RuntimeError, match="one structure"):
        scan(lambda total, x: ((total, x), x), torch.zeros(1), torch.ones(2))
