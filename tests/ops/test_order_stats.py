"""Medians, modes and quantiles where values are NaN, equal or missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch

NAN = float("nan")


def test_nan_is_the_median_of_a_row_that_has_one() -> None:
    x = torch.tensor([[3.0, NAN, 1.0, NAN], [3.0, 2.0, 1.0, 0.0]])
    values, indices = torch.median(x, 1)
    assert values[0].isnan() and values[1] == 1.0
    assert indices.tolist() == [1, 2]
    assert torch.median(x).isnan() and torch.median(x[1]) == 1.0


def test_nanmedian_skips_nan_unless_there_is_nothing_else() -> None:
    x = torch.tensor([[3.0, NAN, 1.0, NAN], [NAN, NAN, NAN, NAN]])
    result = torch.nanmedian(x, 1, keepdim=True)
    assert result.values[0].item() == 1.0 and result.values[1].isnan()
    assert result.indices.tolist() == [[2], [0]]
    assert torch.nanmedian(x) == 1.0


def test_gradient_of_the_median_is_shared_by_equal_elements() -> None:
    x = torch.tensor([1.0, 2.0, 2.0, 5.0], requires_grad=True)
    x.median().backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5, 0.0]
    y = torch.tensor([1.0, NAN, 3.0, NAN], requires_grad=True)
    y.median().backward()
    assert y.grad.tolist() == [0.0, 0.5, 0.0, 0.5]


@pytest.mark.parametrize("choose", [torch.median, torch.max, torch.min])
def test_elements_that_were_not_chosen_have_no_gradient_even_of_nan(choose: Any) -> None:
    x = torch.tensor([1.0, 4.0, NAN], requires_grad=True)
    (choose(x) * NAN).backward()
    assert x.grad[:2].tolist() == [0, 0] and x.grad[2].isnan()


def test_median_of_nothing() -> None:
    assert torch.median(torch.empty(0)).isnan()
    assert torch.median(torch.empty(0, dtype=torch.int32)).dtype == torch.int32
    with pytest.raises(IndexError, match="non-zero size"):
        torch.median(torch.empty(2, 0), 1)
    with pytest.raises(IndexError, match="non-zero size"):
        torch.mode(torch.empty(0))
    with pytest.raises(IndexError, match="non-zero size"):
        torch.kthvalue(torch.empty(0), 1)
    assert torch.median(torch.empty(0, 3), 1).values.shape == (0,)


def test_mode_takes_the_smallest_of_the_most_frequent() -> None:
    x = torch.tensor([[3, 1, 3, 1, 2], [5, 5, 5, 0, 0]])
    values, indices = x.mode(1)
    assert values.tolist() == [1, 5]
    assert indices.tolist() == [3, 2]


@pytest.mark.parametrize("length", [5, 300, 700, 5000])
@pytest.mark.parametrize("values", ["equal", "few", "many", "one far away", "infinite"])
def test_ranks_are_found_whatever_the_distribution(length: int, values: str) -> None:
    random = np.random.default_rng(length)
    x = random.normal(size=length)
    if values == "equal":
        x[:] = 2
    elif values == "few":
        x = np.round(x)
    elif values == "one far away":
        x[length // 2] = 1e300
    elif values == "infinite":
        x[::2], x[1::3] = np.inf, -np.inf
    order = np.argsort(x, kind="stable")
    for dtype in (torch.float64, torch.float32, torch.int64 if values == "few" else torch.float64):
        t = torch.tensor(x).to(dtype)
        order = np.argsort(t.numpy(), kind="stable")
        for k in {1, length // 3 + 1, length}:
            value, index = t.kthvalue(k)
            assert (value, index) == (t[order[k - 1]], order[k - 1])
        for k in {1, 5, length // 20, length // 3, length}:
            assert t.topk(k, largest=False).indices.tolist() == order[:k].tolist()
            down = np.argsort(-t.numpy(), kind="stable")
            assert t.topk(k).indices.tolist() == down[:k].tolist()


def test_quantile_is_nan_where_a_row_has_nan() -> None:
    x = torch.tensor([[1.0, NAN, 3.0], [1.0, 2.0, 3.0]])
    result = torch.quantile(x, torch.tensor([0.0, 0.5]), dim=1)
    assert result.isnan().tolist() == [[True, False], [True, False]]
    assert torch.nanquantile(x, 0.5, dim=1).tolist() == [2.0, 2.0]
    assert torch.nanquantile(torch.full((3,), NAN), 0.5).isnan()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(3), 1.5), r"range \[0, 1\]"),
        ((torch.empty(0), 0.5), "non-empty"),
        ((torch.ones(3), torch.ones(1, 1)), "scalar or 1D"),
        ((torch.ones(3), torch.ones(1, dtype=torch.float64)), "same dtype"),
        ((torch.ones(3, dtype=torch.int64), 0.5), "int64"),
    ],
)
def test_quantile_refuses(arguments: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.quantile(*arguments)
    with pytest.raises(RuntimeError, match="interpolation"):
        torch.quantile(torch.ones(3), 0.5, interpolation="cubic")


def test_gradient_of_a_quantile_reaches_its_fraction() -> None:
    q = torch.tensor(0.3, requires_grad=True)
    torch.quantile(torch.tensor([1.0, 3.0, 7.0]), q).backward()
    assert q.grad.item() == 4.0


@pytest.mark.parametrize("k", [1, 2])
def test_nan_is_above_all_numbers_for_topk(k: int) -> None:
    x = torch.tensor([1.0, NAN, 3.0, NAN, 2.0])
    assert x.topk(k).indices.tolist() == [1, 3][:k]
    assert x.topk(k, largest=False).indices.tolist() == [0, 4][:k]
    assert torch.tensor([5, 1, 7, 1]).topk(1, largest=False).indices.tolist() == [1]


@pytest.mark.parametrize("k", [0, 1])
def test_topk_of_a_number_is_the_number(k: int) -> None:
    values, indices = torch.topk(torch.tensor(2.5), k)
    assert values.item() == 2.5 and indices.item() == 0
