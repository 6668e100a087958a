"""Tensor.grad_dtype: the dtype in which a leaf collects its gradient."""

from __future__ import annotations

import pytest

import rushlight as torch


def leaf(dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.ones(2, dtype=dtype, requires_grad=True)


def test_it_is_that_of_the_tensor_unless_chosen() -> None:
    assert leaf().grad_dtype is torch.bfloat16
    assert torch.ones(2).grad_dtype is torch.float32


def test_gradients_are_collected_in_the_dtype_that_was_chosen() -> None:
    x = leaf()
    x.grad_dtype = torch.float32
    for _ in range(300):
        x.sum().backward()
    assert x.grad.dtype is torch.float32
    assert x.grad.tolist() == [300.0, 300.0]  # bfloat16 ends at 256
    (g,) = torch.autograd.grad(x.sum(), x)
    assert g.dtype is torch.float32


def test_none_takes_whatever_arrives_first() -> None:
    x = leaf(torch.float32)
    x.grad_dtype = None
    assert x.grad_dtype is None
    x.grad = torch.ones(2, dtype=torch.float64)
    x.sum().backward()
    assert x.grad.dtype is torch.float64 and x.grad.tolist() == [2.0, 2.0]

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: object, g: torch.Tensor) -> torch.Tensor:
            return g.double()

    y = leaf(torch.float32)
    y.grad_dtype = None
    Double.apply(y).sum().backward()
    assert y.grad.dtype is torch.float64


def test_assigned_gradients_must_have_it() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="the tensor takes bfloat16"):
        x.grad = torch.ones(2)
    x.grad_dtype = torch.float32
    x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="already a gradient of float32"):
        x.grad_dtype = torch.bfloat16
    x.grad = None
    x.grad_dtype = torch.bfloat16
    assert x.grad_dtype is torch.bfloat16


def test_it_outlives_new_data() -> None:
    x = leaf()
    x.grad_dtype = torch.float32
    x.data = torch.zeros(3, dtype=torch.bfloat16)
    assert x.grad_dtype is torch.float32
    x.sum().backward()
    assert x.grad.shape == (3,) and x.grad.dtype is torch.float32
    y = leaf()
    y.data = torch.zeros(2)
    assert y.grad_dtype is torch.float32


def test_only_leaves_have_it() -> None:
    y = leaf() * 2
    with pytest.raises(RuntimeError, match="accessed on leaf"):
        _ = y.grad_dtype
    with pytest.raises(RuntimeError, match="set on leaf"):
        y.grad_dtype = torch.float32
    with pytest.raises(TypeError, match="must be a dtype or None, not int"):
        leaf().grad_dtype = 3
