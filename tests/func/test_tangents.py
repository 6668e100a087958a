"""Tangents where the formula of a gradient divides by zero, counts twice, or has no elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad


def tangent(f: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The tangent of f(x) when each element of x has the tangent 1."""
    with forward_ad.dual_level():
        result = forward_ad.unpack_dual(f(forward_ad.make_dual(x, torch.ones_like(x))))
    assert result.tangent is not None
    return result.tangent


@pytest.mark.parametrize("norm", [torch.norm, torch.linalg.norm, torch.linalg.vector_norm])
def test_tangent_of_the_norm_of_a_vector_of_zeros_is_zero(norm: Callable) -> None:
    assert tangent(norm, torch.zeros(5)).item() == 0
    x = torch.zeros(5, requires_grad=True)
    (first,) = torch.autograd.grad(norm(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [0] * 5 and second.isfinite().all()


def test_tangent_of_a_value_filled_in_twice_counts_once() -> None:
    index = torch.tensor([1, 1])
    filled = tangent(lambda v: torch.index_fill(torch.zeros(3), 0, index, v), torch.tensor(2.0))
    assert filled.tolist() == [0, 1, 0]


def test_tangent_of_a_diagonal_of_no_complex_numbers() -> None:
    none = torch.zeros(0, dtype=torch.complex128)
    assert tangent(torch.diag_embed, none).shape == (0, 0)


def test_elements_of_a_dual_tensor_as_numbers_are_those_of_its_value() -> None:
    x = torch.tensor([[1.0, 2.0]])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        assert dual.tolist() == [[1.0, 2.0]]
        assert dual[0, 1].tolist() == dual[0, 1].item() == 2.0


STEPS: dict[str, Callable] = {
    "floor": lambda x: torch.div(x, 2, rounding_mode="floor"),
    "bernoulli": lambda x: torch.bernoulli(x / 10),
    "normal": lambda x: torch.normal(x, 1.0),
    "poisson": torch.poisson,
    "cat": lambda x: torch.cat([x[:0], x[:0]]),
    "vector_norm": lambda x: torch.linalg.vector_norm(x, 0),
    "slogdet": lambda x: torch.linalg.slogdet(torch.diag(x))[0],
}


@pytest.mark.parametrize("name", STEPS)
def test_the_tangent_of_a_step_is_zero(name: str) -> None:
    x = torch.tensor([1.5, 2.5])
    assert torch.equal(tangent(STEPS[name], x), torch.zeros_like(STEPS[name](x)))


def test_what_does_not_depend_has_no_tangent() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        for f in (torch.zeros_like, torch.rand_like, torch.detach, torch.isnan, torch.argmax):
            assert forward_ad.unpack_dual(f(dual)).tangent is None
