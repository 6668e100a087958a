"""First and second gradients where samples do not reach: zeros, random ops, degrees, refusals."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from grouping import each

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor
from rushlight.autograd import gradcheck, gradgradcheck

PLACES = torch.tensor([[0, 1, 2, 0], [1, 1, 0, 2]])


def numbers(*values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def normal(*shape: int, dtype: Any = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, dtype=dtype, generator=generator).requires_grad_()


def both_gradients_are_right(func: Callable[..., Any], *inputs: Any) -> bool:
    return gradcheck(func, inputs) and gradgradcheck(func, inputs)


def written(x: Tensor, index: Any, y: Tensor) -> Tensor:
    copy = x.clone()
    copy[index] = y
    return copy.exp()


CASES: dict[str, tuple[Any, ...]] = {
    "prod with a zero": (torch.prod, numbers(0, 2, 3)),
    "prod with two zeros": (torch.prod, numbers(0, 0, 3)),
    "prod of rows": (lambda x: x.prod(1), numbers([0.0, 2, 3], [0, 0, 1])),
    "cumprod with a zero": (lambda x: x.cumprod(0), numbers(1, 0, 2, 3)),
    "cumprod with two zeros": (lambda x: x.cumprod(0), numbers(1, 0, 2, 0, 3)),
    "square of zero": (lambda x: x.pow(2), numbers(0, 2)),
    "cube of zero": (lambda x: x.pow(3), numbers(0, -2)),
    "zeroth power of zero": (lambda x: x.pow(0), numbers(0, 2)),
    "exponents of all kinds": (torch.pow, numbers(0.5, 1.5, 3), numbers(0, 1, 2)),
    "overlapping strides": (lambda x: x.clone().as_strided((2, 3), (1, 1)).exp(), normal(6)),
    "written column": (
        lambda x, y: written(x, (slice(None), 1), y), normal(2, 3), normal(2)
    ),
    "written mask": (lambda x, y: written(x, x > 0, y), normal(2, 3), normal()),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        normal(4, 3), normal(3), normal(3),
    ),
}  # fmt: skip
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    for _self in (True, False):
        CASES[f"scatter_reduce {_reduce} {_self}"] = (
            functools.partial(
                lambda x, src, how, also: x.scatter_reduce(1, PLACES, src, how, include_self=also),
                how=_reduce, also=_self,
            ),
            normal(2, 3), normal(2, 4),
        )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_both_gradients_equal_finite_differences(name: str) -> None:
    assert both_gradients_are_right(*CASES[name])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("dropout", (6,)), ("dropout1d", (2, 3, 4)), ("dropout2d", (2, 3, 2, 2)),
        ("dropout3d", (2, 3, 2, 1, 2)), ("alpha_dropout", (6,)),
        ("feature_alpha_dropout", (2, 3, 4)),
    ],
)  # fmt: skip
def test_dropouts_with_the_same_draws_have_both_gradients(name: str, shape: tuple) -> None:
    def func(x: Tensor) -> Tensor:
        torch.manual_seed(5)
        return getattr(F, name)(x, 0.4, True)

    assert both_gradients_are_right(func, normal(*shape))


@pytest.mark.parametrize("degree", [-2.5, -1, 0, 0.5, 1, 2, 5])
@pytest.mark.parametrize("name", [n for n in torch.special.__all__ if "_polynomial_" in n])
def test_polynomials_have_both_gradients_up_to_the_ends(name: str, degree: float) -> None:
    polynomial = functools.partial(getattr(torch.special, name), n=degree)
    assert both_gradients_are_right(polynomial, numbers(-1, 0, 0.3, 1))


def test_the_zeroth_power_of_zero_has_a_gradient_of_zero() -> None:
    zero = numbers(0, 0)
    (gradient,) = torch.autograd.grad(zero.pow(torch.tensor([0.0, 1.0])).sum(), zero)
    assert gradient.tolist() == [0.0, 1.0]


def test_ldl_solve_of_a_complex_symmetric_matrix_has_both_gradients() -> None:
    A = normal(3, 3, dtype=torch.complex128).detach()
    LD, pivots = torch.linalg.ldl_factor(A + A.mT)
    assert both_gradients_are_right(
        lambda B: torch.linalg.ldl_solve(LD, pivots, B), normal(3, 2, dtype=torch.complex128)
    )


def test_gradients_that_nobody_derived_raise_in_backward() -> None:
    A = torch.eye(2).requires_grad_()
    for factor in (torch.geqrf(A)[0], torch.linalg.ldl_factor(A)[0]):
        with pytest.raises(NotImplementedError, match="the derivative .* is not implemented"):
            factor.sum().backward()
    LD, pivots = torch.linalg.ldl_factor(A)
    with pytest.raises(NotImplementedError, match="with respect to LD is not implemented"):
        torch.linalg.ldl_solve(LD, pivots, A.detach()).sum().backward()


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_a_complex_factor_of_products_has_gradients(name: str) -> None:
    tensors = [normal(size, dtype=torch.complex128) for size in (3, 1, 3)]
    call = functools.partial(getattr(torch, name), value=0.1 + 0.3j)
    assert gradcheck(call, tensors)
    assert gradgradcheck(call, tensors)


LINES: tuple[Callable[[Tensor], Tensor], ...] = (
    F.relu,
    F.relu6,
    F.leaky_relu,
    F.hardtanh,
    F.hardsigmoid,
    F.hardshrink,
    F.softshrink,
    lambda x: F.threshold(x, 0.5, 2.0),
    lambda x: F.prelu(x, torch.tensor([0.3], dtype=torch.float64)),
)


@each("func", LINES)
def test_lines_have_second_gradients_of_zero(func: Callable[[Tensor], Tensor]) -> None:
    x = numbers(-7, -1, -0.3, 0, 0.3, 1, 7, float("-inf"), float("inf"), float("nan"))
    (plain,) = torch.autograd.grad(func(x).sum(), x)
    (first,) = torch.autograd.grad(func(x).sum(), x, create_graph=True)
    assert first.tolist() == pytest.approx(plain.tolist(), nan_ok=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [0.0] * 10


def test_second_derivative_of_a_network_of_lines_is_zero() -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    x = torch.linspace(-1, 1, 5)[:, None].requires_grad_()
    (slope,) = torch.autograd.grad(layers(x).sum(), x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), x)
    assert not curvature.any()


AT_ZERO: tuple[Callable[[Tensor], Tensor], ...] = (
    F.elu,
    F.celu,
    F.selu,
    torch.special.i1,
    torch.special.i1e,
    lambda x: x.norm(3),
    lambda x: torch.linalg.vector_norm(x, 1.5),
)


@each("func", AT_ZERO)
def test_second_gradients_at_a_kink_are_zero(func: Callable[[Tensor], Tensor]) -> None:
    x = numbers(0, 0)
    (first,) = torch.autograd.grad(func(x).sum(), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [0.0, 0.0]
