"""Hooks of tensors, nodes and modules act as PyTorch's."""

from __future__ import annotations

import contextlib
import warnings

import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")


def leaf(lib, *values):
    return lib.tensor(values, dtype=lib.float64, requires_grad=True)


def rounded(log):
    if isinstance(log, (list, tuple)):
        return type(log)(map(rounded, log))
    return float(f"{log:.9g}") if isinstance(log, float) else log


def error_of(function):
    try:
        function()
    except Exception as error:
        return type(error)
    return None


def order_around_a_write(lib, log):
    x = leaf(lib, 3.0)
    y = x * 1
    y.register_hook(lambda g: log.append(("old", g.tolist())))
    y.retain_grad()
    y.mul_(2)
    y.register_hook(lambda g: g * 5)
    y.register_hook(lambda g: log.append(("new", g.tolist())))
    y.sum().backward()
    log += [x.grad.tolist(), y.grad.tolist()]


def writes_through_a_view(lib, log):
    x = leaf(lib, 1.0, 2.0)
    base = x * 1
    view = base[:1]
    base.retain_grad()
    view.retain_grad()
    base.register_hook(lambda g: log.append(("base", g.tolist())))
    view.register_hook(lambda g: log.append(("view", g.tolist())))
    view.mul_(5)
    (base * 3 + view * 2).sum().backward()
    log += [x.grad.tolist(), base.grad.tolist(), view.grad.tolist()]


def hooks_of_a_captured_leaf(lib, log):
    x = leaf(lib, 1.0)
    x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    log.append(lib.autograd.grad((x * 2).sum(), x)[0].tolist())
    (x * 2).sum().backward(inputs=[x])
    log.append(x.grad.tolist())


def hooks_of_nodes(lib, log):
    x = leaf(lib, 2.0)
    y = x.exp()
    y.register_hook(lambda g: log.append(("tensor", g.tolist())))
    y.grad_fn.register_prehook(
        lambda outs: (log.append(("pre", outs[0].tolist())), (outs[0] * 3,))[1]
    )
    y.grad_fn.register_hook(
        lambda ins, outs: log.append(("post", [i.tolist() for i in ins], outs[0].tolist()))
    )
    y.sum().backward()
    log += [x.grad.tolist(), y.grad_fn.name(), type(y.grad_fn).__name__, y.grad_fn.metadata]


def hooks_that_register_hooks(lib, log):
    x = leaf(lib, 1.0)

    def first(grad):
        log.append("first")
        handle.remove()
        x.register_hook(lambda grad: log.append("late"))

    x.register_hook(first)
    handle = x.register_hook(lambda grad: log.append("removed"))
    for _ in range(2):
        (x * 2).sum().backward()


def mutated_saved_tensors(lib, log):
    x = leaf(lib, 2.0, 3.0)
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = (y**2).sum()
        y[:1].zero_()
        (z + (y**3).sum()).backward()
    log.append(x.grad.tolist())


def saved_tensors(lib, log):
    x = leaf(lib, 2.0)

    def pack(t):
        log.append(("pack", t.tolist()))  # PyTorch's results have a history already
        return t * 2

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: (log.append("unpack"), t)[1]):
        y = (x * x).exp().sin()
    y.sum().backward()
    log.append(x.grad.tolist())


def hooks_of_several_tensors(lib, log):
    x, y, z = leaf(lib, 1.0), leaf(lib, 2.0), leaf(lib, 3.0)
    inner = x * y
    for mode in ("all", "any"):
        lib.autograd.graph.register_multi_grad_hook(
            [x, inner, z],
            lambda grads, mode=mode: log.append(
                (mode, [g if g is None else g.tolist() for g in grads])
            ),
            mode=mode,
        )
    (inner + x).sum().backward()
    (inner * z).sum().backward(inputs=[z])


def errors(lib, log):
    x = leaf(lib, 1.0, 2.0)
    for register in (
        lambda: lib.ones(1).register_hook(print),
        lambda: lib.ones(1).register_post_accumulate_grad_hook(print),
        lambda: (x * 2).register_post_accumulate_grad_hook(print),
        lambda: lib.ones(1).retain_grad(),
        lambda: lib.autograd.graph.register_multi_grad_hook([x], print, mode="no"),
        lambda: lib.autograd.graph.get_gradient_edge(lib.ones(1)),
        lambda: lib.autograd.graph.Node(),
    ):
        log.append(error_of(register))
    for result in (3, lib.ones(3, dtype=lib.float64), lib.ones(2, dtype=lib.float32)):
        y = x * 1
        y.register_hook(lambda g, result=result: result)
        log.append(error_of(y.sum().backward))
    for result in ([], (), (3,)):
        y = x.exp()
        y.grad_fn.register_prehook(lambda outs, result=result: result)
        log.append(error_of(y.sum().backward))


def hooks_of_modules(lib, log):
    module = lib.nn.Tanh().double()
    x = leaf(lib, 1.0, 2.0)

    def note(name, value=None):
        return lambda *args: (log.append(name), value)[1]

    def grads(name):
        return lambda m, ins, outs: log.append(
            (name, [g if g is None else g.tolist() for g in (*ins, *outs)])
        )

    module.register_forward_pre_hook(note("pre"))
    module.register_forward_pre_hook(
        note("pre with", ((x * 2,), {})), with_kwargs=True, prepend=True
    )
    module.register_forward_hook(note("forward"))
    module.register_forward_hook(note("forward with"), with_kwargs=True)
    module.register_forward_hook(note("first"), prepend=True)
    module.register_forward_hook(note("always"), always_call=True)
    module.register_full_backward_pre_hook(lambda m, outs: (outs[0] * 3,))
    module.register_full_backward_hook(grads("full"))
    module.register_full_backward_hook(grads("first full"), prepend=True)
    hooks = lib.nn.modules.module
    with contextlib.ExitStack() as stack:
        stack.enter_context(hooks.register_module_forward_pre_hook(note("all pre")))
        stack.enter_context(hooks.register_module_forward_hook(note("all forward")))
        stack.enter_context(hooks.register_module_full_backward_hook(grads("all full")))
        module(x).sum().backward()
    log.append(error_of(lambda: module(None)))
    log.append(x.grad.tolist())
    with pytest.raises(RuntimeError):
        module.register_backward_hook(print)


def non_full_backward_hooks(lib, log):
    module = lib.nn.Tanh().double()
    x = leaf(lib, 1.0)
    module.register_backward_hook(
        lambda m, ins, outs: (log.append((ins[0].tolist(), outs[0].tolist())), (ins[0] * 2,))[1]
    )
    module(x).sum().backward()
    log.append(x.grad.tolist())
    with pytest.raises(RuntimeError):
        module.register_full_backward_hook(print)


@pytest.mark.parametrize(
    "program",
    [
        order_around_a_write,
        writes_through_a_view,
        hooks_of_a_captured_leaf,
        hooks_of_nodes,
        hooks_that_register_hooks,
        mutated_saved_tensors,
        saved_tensors,
        hooks_of_several_tensors,
        errors,
        hooks_of_modules,
        non_full_backward_hooks,
    ],
    ids=lambda program: program.__name__,
)
def test_hooks_act_as_pytorchs(program) -> None:
    logs = []
    for lib in (torch, pytorch):
        log = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program(lib, log)
        logs.append(log)
    ours, theirs = map(rounded, logs)
    assert ours == theirs
