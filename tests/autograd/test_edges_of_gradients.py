"""Gradients where something is missing: inputs, tangents, history, numbers."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor
from rushlight.autograd import Function, forward_ad


def test_grad_needs_inputs() -> None:
    with pytest.raises(RuntimeError, match="non-empty inputs"):
        torch.autograd.grad(torch.ones(1, requires_grad=True) * 2, [])


def test_materialized_gradients_can_be_differentiated_again() -> None:
    x = torch.tensor(0.5, requires_grad=True)
    y = x * torch.tensor(1.0, requires_grad=True)
    first = torch.autograd.grad(y, x, create_graph=True)
    second = torch.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    (third,) = torch.autograd.grad(second, x, materialize_grads=True)
    assert third == 0 and not third.requires_grad


@pytest.mark.parametrize("materializes", [True, False])
def test_jvp_gets_zeros_for_inputs_without_tangents(materializes: bool) -> None:
    seen: list[Any] = []

    class Sum(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, number: int, y: Tensor) -> Tensor:
            ctx.set_materialize_grads(materializes)
            return x + number * y

        @staticmethod
        def jvp(ctx: Any, x_tangent: Any, number: Any, y_tangent: Any) -> Tensor:
            seen.append((number, y_tangent))
            return x_tangent

    with forward_ad.dual_level():
        Sum.apply(forward_ad.make_dual(torch.ones(2), torch.ones(2)), 3, torch.ones(2))
    ((number, tangent),) = seen
    assert number is None
    assert tangent.tolist() == [0, 0] if materializes else tangent is None


@pytest.mark.parametrize("extreme", [torch.min, torch.max, torch.median])
def test_equal_elements_share_a_gradient_and_so_do_nans(extreme: Any) -> None:
    for values, expected in [([1.0, 1.0], [0.5, 0.5]), ([float("nan")] * 2, [0.5, 0.5])]:
        x = torch.tensor(values, requires_grad=True)
        extreme(x).backward()
        assert x.grad is not None
        assert x.grad.tolist() == expected or extreme is torch.median


def test_inference_tensors_keep_shape_and_values_outside_of_inference() -> None:
    with torch.inference_mode():
        x = torch.ones(2, 3)
    y = torch.ones(2, 3)
    for write in (lambda: x.add_(1), lambda: x.t_(), lambda: torch.mul(y, y, out=x)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            write()
    with torch.inference_mode():
        torch.mul(y, 2, out=x)
    assert x.eq(2).all()


def test_a_gradient_that_is_given_takes_the_dtype_of_the_result() -> None:
    layer = torch.nn.Conv2d(2, 3, 3).to(torch.bfloat16)
    result = layer(torch.ones(1, 2, 4, 4, dtype=torch.bfloat16))
    result.backward(torch.ones(1, 3, 2, 2))
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == torch.bfloat16


def test_the_inner_name_of_a_gradient() -> None:
    x = torch.ones(2, requires_grad=True)
    x._grad = torch.ones(2)
    assert x.grad is x._grad


def test_parts_of_a_leaf_taken_without_grad_are_unused() -> None:
    leaf = torch.ones(4, requires_grad=True)
    with torch.no_grad():
        part = leaf.chunk(2)[0]
    assert part.requires_grad and part.grad_fn is None
    assert torch.autograd.grad(leaf.sum(), part, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(leaf.sum(), part)
