"""autograd.functional: Jacobians, Hessians and products against closed forms."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor
from rushlight.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from rushlight.testing import assert_close

MATRIX = torch.tensor([[1.0, 2.0, -1.0], [0.5, -2.0, 3.0]])


def leaf(*values: float) -> Tensor:
    return torch.tensor(values, requires_grad=True)


def linear(x: Tensor) -> Tensor:
    return MATRIX @ x


def test_jacobian_of_a_linear_map_is_its_matrix() -> None:
    assert_close(jacobian(linear, torch.ones(3)), MATRIX)
    assert_close(jacobian(linear, torch.ones(3), vectorize=True), MATRIX)
    assert_close(jacobian(linear, torch.ones(3), vectorize=True, strategy="forward-mode"), MATRIX)


def test_shapes_are_those_of_the_output_and_then_the_input() -> None:
    x, y = torch.ones(2, 3), torch.ones(3, 4)
    nested = jacobian(lambda x, y: (x @ y, x.sum()), (x, y))
    assert [[part.shape for part in row] for row in nested] == [
        [(2, 4, 2, 3), (2, 4, 3, 4)],
        [(2, 3), (3, 4)],
    ]
    assert jacobian(lambda x: x[:0], x).shape == (0, 3, 2, 3)
    assert jacobian(torch.exp, torch.ones(0)).shape == (0, 0)


def test_hessian_of_a_quadratic_form() -> None:
    square = MATRIX.T @ MATRIX
    assert_close(hessian(lambda x: x @ square @ x / 2, torch.ones(3)), square)
    (xx, xy), (yx, yy) = hessian(lambda x, y: x @ MATRIX @ y, (torch.ones(2), torch.ones(3)))
    assert_close(xy, MATRIX)
    assert_close(yx, MATRIX.T)
    assert xx.tolist() == torch.zeros(2, 2).tolist() and yy.tolist() == torch.zeros(3, 3).tolist()


def test_products_are_those_with_the_whole_matrix() -> None:
    def cubic(x: Tensor, y: Tensor) -> Tensor:
        return (x**3 * y).sum()

    x, y, u, v = leaf(1.0, -2.0), leaf(0.5, 3.0), leaf(1.0, 2.0), leaf(-1.0, 0.5)
    whole = hessian(cubic, (x, y))
    expected = [row[0] @ u + row[1] @ v for row in whole]
    for product in (hvp, vhp):
        value, parts = product(cubic, (x, y), (u, v))
        assert_close(value, cubic(x, y).detach())
        assert_close(list(parts), [e.detach() for e in expected])
    value, slope = jvp(cubic, (x, y), (u, v))
    gradient = jacobian(cubic, (x, y))
    assert_close(slope, (gradient[0] @ u + gradient[1] @ v).detach())
    value, parts = vjp(cubic, (x, y), torch.tensor(2.0))
    assert_close(list(parts), [gradient[0] * 2, gradient[1] * 2])


def test_results_have_history_only_when_it_is_asked_for() -> None:
    x = leaf(1.0, 2.0)
    for function in (jacobian, hessian):
        assert not function(lambda x: (x**3).sum(), x).requires_grad
        recorded = function(lambda x: (x**3).sum(), x, create_graph=True)
        assert recorded.requires_grad
    (third,) = torch.autograd.grad(recorded.sum(), x)
    assert third.tolist() == [6.0, 6.0]
    for function in (vjp, jvp, vhp, hvp):
        v = None if function is vjp else torch.ones(2)
        assert not any(t.requires_grad for t in function(lambda x: (x**3).sum(), x, v))
        value, product = function(lambda x: (x**3).sum(), x, v, create_graph=True)
        assert value.requires_grad and product.requires_grad


def test_inputs_and_captured_tensors_are_kept_apart() -> None:
    x = leaf(2.0, 3.0)
    assert jacobian(lambda y: x * y, x).tolist() == [[2.0, 0.0], [0.0, 3.0]]
    assert x.grad is None


def test_grad_mode_around_it_does_not_matter() -> None:
    with torch.no_grad():
        assert jacobian(torch.square, torch.tensor(3.0)).item() == 6.0
        assert hvp(lambda x: x**3, torch.tensor(2.0))[1].item() == 12.0


def test_strict_refuses_what_would_be_zeros() -> None:
    x, y = leaf(1.0), leaf(2.0)
    for function in (jacobian, vjp):
        with pytest.raises(RuntimeError, match="independent of input 1.*not allowed in strict"):
            function(lambda x, y: x * 2, (x, y), strict=True)
    with pytest.raises(RuntimeError, match="Output 1 of the user-provided function does not req"):
        jacobian(lambda x: (x, torch.ones(1)), x, strict=True)
    for function in (hessian, vhp, hvp):
        with pytest.raises(RuntimeError, match="respect to input 0 is independent of the input"):
            function(lambda x: 3 * x.sum(), x, strict=True)


@pytest.mark.parametrize(
    ("function", "func", "inputs", "v", "error", "text"),
    [
        (jacobian, lambda x: 3, torch.ones(1), None, TypeError, "outputs of the user-provided"),
        (jacobian, torch.exp, 3, None, TypeError, "inputs given to jacobian must be either"),
        (vjp, torch.exp, torch.ones(2), None, RuntimeError, "v can only be None if the user-prov"),
        (vjp, torch.exp, torch.ones(2), torch.ones(3), RuntimeError, "v has invalid size"),
        (jvp, torch.exp, torch.ones(2), None, RuntimeError, "v can only be None if the input"),
        (jvp, torch.mul, (torch.ones(1),) * 2, (torch.ones(1),), RuntimeError, "invalid length"),
        (hessian, torch.exp, torch.ones(2), None, RuntimeError, "contain a single element"),
        (vhp, lambda x: (x,), torch.ones(1), None, RuntimeError, "should return a single Tensor"),
        (jacobian, torch.exp, torch.ones(1).cfloat(), None, RuntimeError, "view_as_real"),
    ],
)
def test_mistakes_are_named(
    function: Any, func: Any, inputs: Any, v: Any, error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        function(func, inputs) if v is None else function(func, inputs, v)
