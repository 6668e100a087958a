"""Transforms in inference mode give what they give outside of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor
from rushlight.autograd import forward_ad
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


def dual(f: Callable[[Tensor], Tensor], x: Tensor) -> Any:
    with forward_ad.dual_level():
        return tuple(forward_ad.unpack_dual(f(forward_ad.make_dual(x, x.cos()))))


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x: grad(lambda x: f(x).sum())(x),
    "grad of grad": lambda f, x: grad(lambda x: grad(lambda x: f(x).sum())(x).sum())(x),
    "per sample": lambda f, x: vmap(grad(lambda x: f(x)[0]))(torch.stack([x, 2 * x])),
    "vjp": lambda f, x: vjp(f, x)[1](x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "linearize": lambda f, x: linearize(f, x)[1](x),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hessian": lambda f, x: hessian(f)(x),
    "dual": dual,
}


@pytest.mark.parametrize("made_inside", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str, made_inside: bool) -> None:
    def result(w: Tensor, x: Tensor) -> Any:
        return TRANSFORMS[name](lambda x: ((w @ x).sin() * w[0]).softmax(0), x)

    w = torch.arange(9.0).reshape(3, 3) / 9
    x = torch.tensor([0.5, 1.0, -1.0])
    expected = result(w, x)
    with torch.inference_mode():
        if made_inside:
            w, x = w * 1, x * 1
        found = result(w, x)
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
    torch.testing.assert_close(found, expected)
    if made_inside:  # captured outside of the mode
        torch.testing.assert_close(result(w, x), expected)


def test_modes_come_back_after_an_error() -> None:
    with torch.inference_mode():
        with pytest.raises(ZeroDivisionError):
            grad(lambda x: 1 / 0)(torch.ones(1))
        assert torch.is_inference_mode_enabled()
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()


def test_gradients_can_enter_a_tape_later() -> None:
    x = torch.ones(2)
    with torch.inference_mode():
        g = grad(lambda x: (x**2).sum())(x)
    y = torch.ones(2, requires_grad=True)
    (y * g).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]
