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
    assert x.unsqueeze_(0).unsqueeze_(3).squeeze_((0, 1, -1)).shape == (2, 3)


def test_swapaxes_and_as_strided_change_the_tensor_itself() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert x.swapaxes_(0, 1) is x and x.shape == (3, 2)
    assert x.as_strided_((2,), (2,), 1) is x
    assert x.tolist() == [1.0, 3.0] and x.storage_offset() == 1
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.as_strided_((7,), (1,))


def test_the_history_follows_a_new_layout() -> None:
    x = torch.arange(4.0, requires_grad=True)
    y = x * 2
    y.as_strided_((2,), (2,), 1).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0, 2.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.as_strided_((2,), (1,))


def test_resize_as_takes_the_shape_and_memory_format() -> None:
    x = torch.empty(0)
    assert x.resize_as_(torch.ones(2, 3)) is x and x.shape == (2, 3)
    x.resize_(1, 2, 3, 4, memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(2, requires_grad=True).resize_as_(x)


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


def test_expanded_dims_of_size_1_have_the_strides_of_unsqueeze() -> None:
    x = torch.ones(5)
    assert x.expand(1, 1, 5).stride() == x[None, None].stride() == (5, 5, 1)
    assert x.expand(2, 1, 5).stride() == (0, 5, 1)
    assert torch.ones(5, 2).t().expand(1, 2, 5).stride() == (2, 1, 2)
    assert torch.ones(()).expand(1, 1).stride() == (0, 0)


def test_resizing_keeps_an_order_that_fits() -> None:
    x = torch.empty(2, 3).t()
    assert x.resize_(3, 2).stride() == x.resize_as_(x).stride() == (1, 3)
    image = torch.empty(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    flat = torch.empty(24).resize_as_(image, memory_format=torch.preserve_format)
    assert flat.is_contiguous(memory_format=torch.channels_last)
