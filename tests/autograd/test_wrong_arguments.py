"""Whatever is passed to autograd, and whatever its hooks return, ends in a result or an error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function, forward_ad, functional, grad, graph
from rushlight.func import functional_call, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from rushlight.func import grad as func_grad
from rushlight.utils.checkpoint import checkpoint

Call = tuple[Callable[..., Any], list[Any]]


def wrong() -> list[Any]:
    x = torch.ones(2, 3, requires_grad=True)
    node = x.exp().grad_fn
    return [
        None, 0, -1, 2**70, "a", b"", (), [], [None], {}, object(), lambda *args: None, True,
        float("nan"), slice(None), torch.float32, node, (node, 5), [x, None], [[x]], torch.ones(0),
        torch.ones(()), torch.ones(2, dtype=torch.int64), torch.ones(2, 3, dtype=torch.complex64),
        torch.eye(2).to_sparse(), torch.ones(2, 3, device="meta"),
    ]  # fmt: skip


def saved_by(pack: Any, unpack: Any) -> None:
    with graph.saved_tensors_hooks(pack, unpack):
        y = torch.ones(2, 3, requires_grad=True).exp()
    y.sum().backward()


def tangent_of(primal: Any, tangent: Any) -> Any:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(forward_ad.make_dual(primal, tangent).sin())


def function(forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made = type("Made", (Function,), methods)
    made.apply(torch.ones(2, 3, requires_grad=True) * 1).sum().backward()


def save(ctx: Any, x: Any, saved: Any) -> Any:
    ctx.save_for_backward(saved)
    return x * 1


def mark(ctx: Any, x: Any, marked: Any) -> Any:
    ctx.mark_dirty(x if marked is None else marked)
    return x


def mark_fixed(ctx: Any, x: Any, marked: Any) -> Any:
    ctx.mark_non_differentiable(marked)
    return x * 1


def hooked_module(returned: Any) -> None:
    layer = torch.nn.Linear(3, 1)
    layer.register_full_backward_hook(lambda *args: returned)
    layer(torch.ones(2, 3, requires_grad=True)).sum().backward()


def calls() -> dict[str, Call]:
    """Functions with arguments that are right, made anew for each call."""
    x, v = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)
    y = x * x

    def square(a: Any) -> Any:
        return (a * a).sum()

    return {
        "grad": (grad, [y, x, v]),
        "batched grad": (lambda y, x, v: grad(y, x, v, is_grads_batched=True), [y, x, v[None]]),
        "backward": (torch.autograd.backward, [y, v]),
        "backward of a tensor": (lambda v: y.backward(v), [v]),
        "inputs": (lambda inputs: y.sum().backward(inputs=inputs), [x]),
        "edge": (lambda edge: grad(y.sum(), edge), [graph.get_gradient_edge(x)]),
        "get_gradient_edge": (graph.get_gradient_edge, [y]),
        "increment_version": (graph.increment_version, [v]),
        "register_hook": (y.register_hook, [lambda g: g]),
        "hook": (lambda r: (y.register_hook(lambda g: r), y.sum().backward()), [v]),
        "prehook": (
            lambda r: (y.grad_fn.register_prehook(lambda g: r), y.sum().backward()), [(v,)]
        ),
        "node hook": (
            lambda r: (y.grad_fn.register_hook(lambda a, b: r), y.sum().backward()), [(v, v)]
        ),
        "multi hook": (graph.register_multi_grad_hook, [[y], lambda g: None]),
        "module hook": (hooked_module, [None]),
        "saving hooks": (saved_by, [lambda t: t, lambda t: t]),
        "packed": (lambda r: saved_by(lambda t: t, lambda t: r), [v]),
        "hooks of one": (y.grad_fn._raw_saved_self.register_hooks, [lambda t: t, lambda t: t]),
        "set grad": (lambda r: setattr(x, "grad", r), [v]),
        "set data": (lambda r: setattr(torch.ones(2, 3), "data", r), [v]),
        "set grad_dtype": (lambda r: setattr(torch.ones(2), "grad_dtype", r), [None]),
        "forward": (lambda r: function(lambda ctx, x: r, lambda ctx, g: g), [y]),
        "backward of a function": (lambda r: function(save_nothing, lambda ctx, g: r), [v]),
        "saved": (lambda r: function(lambda c, x: save(c, x, r), read_saved), [v]),
        "marked": (lambda r: function(lambda c, x: mark(c, x, r), lambda c, g: g), [None]),
        "fixed": (lambda r: function(lambda c, x: mark_fixed(c, x, r), lambda c, g: g), [y]),
        "vmap": (lambda f, i, o, a: vmap(f, i, o)(a), [torch.sin, 0, 0, v]),
        "vmap options": (
            lambda how, size: vmap(torch.sin, randomness=how, chunk_size=size)(v), ["error", 1]
        ),
        "result of vmap": (lambda r: vmap(lambda a: r)(v), [v]),
        "func.grad": (lambda f, n, a: func_grad(f, n)(a), [square, 0, v]),
        "vjp": (lambda f, a, c: vjp(f, a)[1](c), [torch.sin, v, v]),
        "jvp": (lambda f, a, t: jvp(f, (a,), (t,)), [torch.sin, v, v]),
        "jvp of tuples": (jvp, [torch.sin, (v,), (v,)]),
        "jacrev": (lambda f, a: jacrev(f)(a), [torch.sin, v]),
        "jacfwd": (lambda f, a: jacfwd(f)(a), [torch.sin, v]),
        "hessian": (lambda f, a: hessian(f)(a), [square, v]),
        "linearize": (lambda a, t: linearize(torch.sin, a)[1](t), [v, v]),
        "functional_call": (functional_call, [torch.nn.Linear(3, 1), {}, (v,), {}]),
        "dual": (tangent_of, [v, v]),
        "checkpoint": (
            lambda f, a: checkpoint(f, a, use_reentrant=False).sum().backward(), [torch.sin, x]
        ),
        "reentrant": (
            lambda f, a: checkpoint(f, a, use_reentrant=True).sum().backward(), [torch.sin, x]
        ),
        "jacobian": (functional.jacobian, [torch.sin, v]),
        "hvp": (functional.hvp, [square, v, v]),
        "functional.vjp": (functional.vjp, [torch.sin, v, v]),
        "functional.jvp": (functional.jvp, [torch.sin, v, v]),
    }  # fmt: skip


def save_nothing(ctx: Any, x: Any) -> Any:
    return x * 1


def read_saved(ctx: Any, g: Any) -> Any:
    assert len(ctx.saved_tensors) == 1
    return g


@pytest.mark.parametrize("name", calls())
def test_right_arguments(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call, args = calls()[name]
        call(*args)


@pytest.mark.parametrize("name", calls())
def test_wrong_arguments(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours: list[Exception] = []  # mistakes of the library itself
        for place in range(len(calls()[name][1])):
            for value in wrong():
                call, args = calls()[name]
                args[place] = value
                try:
                    call(*args)
                except Exception as error:
                    if isinstance(error, SystemError) or "internal error at" in str(error):
                        ours.append(error)
    assert not ours
    assert torch.is_grad_enabled() and not torch._C._levels()[1]
    x: Any = torch.ones(2, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
