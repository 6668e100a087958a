"""Jacobians with what func returns beside its output, and without vmap."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.autograd import Function
from rushlight.func import grad, jacfwd, jacrev, stack_module_state, vmap


def squared(x: Tensor) -> Any:
    return x * x, {"twice": x * 2, "name": "x", "nothing": None}


@pytest.mark.parametrize(
    "transformed",
    [
        jacfwd(squared, has_aux=True),
        jacfwd(jacrev(squared, has_aux=True), has_aux=True),
        jacfwd(jacfwd(squared, has_aux=True), has_aux=True),
        jacfwd(grad(lambda x: (squared(x)[0].sum(), squared(x)[1]), has_aux=True), has_aux=True),
        jacrev(jacfwd(squared, has_aux=True), has_aux=True),
    ],
)
def test_aux_is_that_of_one_call(transformed: Any) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    _, aux = transformed(x[0])
    assert (aux["name"], aux["nothing"]) == ("x", None)
    assert aux["twice"].tolist() == [0, 2, 4]
    for_samples = vmap(lambda x: transformed(x)[1]["twice"])(x)
    assert torch.equal(for_samples, x * 2)


def test_aux_is_there_for_empty_arguments() -> None:
    jacobian, aux = jacfwd(squared, has_aux=True)(torch.ones(0))
    assert (jacobian.shape, aux["twice"].shape, aux["name"]) == ((0, 0), (0,), "x")


def test_rows_one_by_one_may_do_what_vmap_cannot() -> None:
    class Counting(Function):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * len(grad.nonzero())

    x = torch.ones(3)
    assert torch.equal(jacrev(Counting.apply, chunk_size=1)(x), torch.eye(3))
    assert jacrev(torch.sin, chunk_size=1)(torch.ones(0)).shape == (0, 0)
    with pytest.raises(RuntimeError, match="depends on the sample"):
        jacrev(Counting.apply)(x)


def test_stacked_modules_agree_on_what_requires_gradients() -> None:
    models = [nn.Linear(2, 1), nn.Linear(2, 1).requires_grad_(False)]
    with pytest.raises(RuntimeError, match="same requires_grad"):
        stack_module_state(models)
