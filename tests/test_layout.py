"""Ops that change the layout or the corners of a tensor itself, and scatter_reduce."""

from __future__ import annotations

import pytest

import rushlight as torch


def test_layout_ops_change_the_tensor_itself() -> None:
    x = torch.arange(6.0).reshape(2, 3).clone()
    assert x.transpose_(0, 1) is x
    assert x.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert x.t_().tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert x.unsqueeze_(0).shape == (1, 2, 3)
    assert x.squeeze_(0).shape == (2, 3)
    assert x.unsqueeze_(1).squeeze_().shape == (2, 3)


def test_resize_keeps_the_elements_that_stay() -> None:
    x = torch.arange(4.0)
    assert x.resize_(2, 3).shape == (2, 3)
    assert x.flatten()[:4].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert x.resize_(2).tolist() == [0.0, 1.0]


def test_fill_diagonal_sets_equal_indices() -> None:
    x = torch.zeros(3, 2)
    assert x.fill_diagonal_(5.0).tolist() == [[5.0, 0.0], [0.0, 5.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [("sum", [4.0, 3.0]), ("prod", [3.0, 2.0]), ("amax", [3.0, 2.0]), ("mean", [4 / 3, 1.5])],
)
def test_scatter_reduce_combines_what_meets(reduce: str, expected: list[float]) -> None:
    start = torch.zeros(2) if reduce == "sum" else torch.ones(2)
    if reduce == "mean":
        start = torch.tensor([0.0, 1.0])
    index, values = torch.tensor([0, 0, 1]), torch.tensor([1.0, 3.0, 2.0])
    if reduce == "sum":
        expected = [4.0, 2.0]
    out = start.scatter_reduce(0, index, values, reduce)
    assert out.tolist() == pytest.approx(expected)
    assert start.scatter_reduce_(0, index, values, reduce).tolist() == pytest.approx(expected)
