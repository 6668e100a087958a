"""Hooks of tensors and nodes: order, replacement, removal, writes in place, garbage."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
import weakref

import pytest

import rushlight as torch


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


def test_hooks_run_in_order_and_pass_on_what_they_return() -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: grad + 1)
    x.register_hook(lambda grad: None)
    x.register_hook(lambda grad: grad * 10)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [30.0]


def test_hooks_of_a_leaf_change_what_grad_returns() -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: grad * 10)
    assert torch.autograd.grad((x * 2).sum(), x)[0].tolist() == [20.0]


def test_a_hook_registered_before_a_write_sees_the_gradient_of_the_old_value() -> None:
    x = leaf(3.0)
    y = x * 1
    seen = []
    y.register_hook(lambda grad: seen.append(("before", grad.item())))
    y.mul_(2)
    y.register_hook(lambda grad: seen.append(("after", grad.item())))
    y.sum().backward()
    assert seen == [("after", 1.0), ("before", 2.0)]


def test_a_tensor_that_retains_its_gradient_keeps_that_of_its_last_value() -> None:
    x = leaf(3.0)
    y = x * 1
    y.retain_grad()
    y.mul_(2)
    y.retain_grad()
    y.sum().backward()
    assert y.retains_grad and y.grad.tolist() == [1.0] and x.grad.tolist() == [2.0]


def test_a_view_and_its_base_retain_gradients_after_a_write_through_the_view() -> None:
    x = leaf(1.0, 2.0)
    base = x * 1
    view = base[:1]
    base.retain_grad()
    view.retain_grad()
    view.mul_(5)
    (base * 3).sum().backward()
    assert base.grad.tolist() == [3.0, 3.0]
    assert view.grad is None  # the view as it is now made nothing
    assert x.grad.tolist() == [15.0, 3.0]


def test_a_view_from_before_its_base_wanted_gradients_has_none() -> None:
    base = torch.ones(3, 2)
    view = base[:, :1]
    base.requires_grad_()
    assert view.requires_grad and view.grad_fn is None
    with pytest.raises(RuntimeError, match="cannot register a hook"):
        view.register_hook(lambda grad: grad)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(base.sum(), view)


def test_retained_gradients_are_those_that_hooks_return() -> None:
    x = leaf(1.0)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda grad: grad * 7)
    y.sum().backward()
    assert y.grad.tolist() == [7.0]
    assert not x.retains_grad
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        torch.ones(1).retain_grad()


def test_hooks_may_add_and_remove_hooks_while_they_run() -> None:
    x = leaf(1.0)
    calls = []
    handles = []

    def first(grad: torch.Tensor) -> None:
        calls.append("first")
        for handle in handles:
            handle.remove()
        x.register_hook(lambda grad: calls.append("late"))

    handles.append(x.register_hook(first))
    handles.append(x.register_hook(lambda grad: calls.append("second")))
    y = x.sum()
    y.backward(retain_graph=True)
    assert calls == ["first", "second"]
    y.backward()
    assert calls == ["first", "second", "late"]


def test_a_handle_outlives_the_graph_and_removes_once() -> None:
    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(lambda grad: grad * 100)
    with y.register_hook(lambda grad: grad * 3):
        y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [600.0]
    handle.remove()
    handle.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [2.0]
    handle = (x * 2).register_hook(print)
    handle.remove()


def test_the_copy_of_a_handle_removes_nothing() -> None:
    x = torch.ones(2, requires_grad=True)
    handle = x.register_hook(lambda grad: grad * 2)
    for twin in copy.deepcopy(handle), pickle.loads(pickle.dumps(handle)):
        twin.remove()
    x.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]


def test_pickling_a_tensor_warns_of_its_hooks() -> None:
    leaves = leaf(1.0), leaf(1.0)
    for x in leaves:
        x.register_hook(lambda grad: grad)
    for x in (leaves[0], leaves[1] * 1):
        x.register_hook(lambda grad: grad)
        for save in (pickle.dumps, lambda x: torch.save(x, io.BytesIO())):
            with pytest.warns(UserWarning, match="backward hook .* will not be serialized"):
                save(x)
    x = leaf(1.0)
    x.register_hook(torch.utils.hooks.unserializable_hook(lambda grad: grad))
    x.register_hook(lambda grad: grad).remove()
    pickle.dumps(x)
    pickle.dumps(leaves[1] * 1)


def test_hooks_that_raise_stop_backward_with_their_error() -> None:
    x = leaf(1.0)

    def hook(grad: torch.Tensor) -> None:
        raise KeyError("mine")

    handle = x.register_hook(hook)
    with pytest.raises(KeyError, match="mine"):
        x.sum().backward()
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (3, TypeError, "expected Variable, but hook returned 'int'"),
        (torch.ones(3), RuntimeError, "hook '<lambda>' has changed the size of value"),
        (torch.ones(2).double(), RuntimeError, "has changed the type of value"),
    ],
)
def test_hooks_must_return_a_tensor_like_the_gradient(result, error, message) -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda grad: result)
    with pytest.raises(error, match=message):
        x.sum().backward()


def test_hooks_are_recorded_with_create_graph() -> None:
    x = leaf(3.0)
    x.register_hook(lambda grad: grad * grad)
    (first,) = torch.autograd.grad((x**2).sum(), x, create_graph=True)  # (2x)^2
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [36.0] and second.tolist() == [24.0 * 24.0]


def test_post_accumulate_hooks_see_the_complete_gradient() -> None:
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
    (x * 2 + x * 3).sum().backward()
    assert seen == [(True, 5.0)]


def test_a_post_accumulate_hook_may_return_the_leaf() -> None:
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: t.add_(t.grad))
    (x * 3).sum().backward()
    assert x.item() == 4


def test_post_accumulate_hooks_are_for_leaves_and_return_nothing() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_hook(print)
    x.register_post_accumulate_grad_hook(lambda t: 1)
    with pytest.raises(RuntimeError, match="should return None"):
        x.sum().backward()


def test_node_hooks_see_and_replace_gradients_on_both_sides() -> None:
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 3,))

    def after(ins, outs):
        seen.append((len(ins), ins[0].item(), outs[0].item()))
        return (ins[0] + 1, *ins[1:])

    handle = y.grad_fn.register_hook(after)
    y.sum().backward(retain_graph=True)
    assert seen[0][1:] == (6.0, 3.0) and x.grad.tolist() == [7.0]
    handle.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [6.0]


def test_node_hooks_must_return_a_tuple_of_the_same_length() -> None:
    x = leaf(1.0)
    for result, error, message in [
        ([], TypeError, "expected tuple, but hook returned 'list'"),
        ((), RuntimeError, "incorrect number of values"),
    ]:
        y = x * 2
        y.grad_fn.register_prehook(lambda outs, result=result: result)
        with pytest.raises(error, match=message):
            y.sum().backward()


def test_the_accumulator_of_a_leaf_takes_hooks() -> None:
    x = leaf(1.0)
    accumulator = x.view_as(x).grad_fn.next_functions[0][0]
    seen = []
    accumulator.register_hook(lambda ins, outs: seen.append((ins, outs[0].item(), x.grad.item())))
    (x * 4).sum().backward()
    assert seen == [((), 4.0, 4.0)]
    assert accumulator.name() == "torch::autograd::AccumulateGrad" and accumulator.variable is x


@pytest.mark.parametrize("kind", ["result", "leaf", "accumulated", "node", "prehook", "metadata"])
def test_a_cycle_through_a_hook_is_collected(kind: str) -> None:
    class Witness:
        pass

    def cycle() -> weakref.ref[Witness]:
        witness = Witness()
        x = leaf(1.0)
        y = x if kind in ("leaf", "accumulated") else x * 2

        def hook(*grads: object) -> None:
            return print(y, witness)

        if kind == "accumulated":
            y.register_post_accumulate_grad_hook(hook)
        elif kind == "node":
            y.grad_fn.register_hook(hook)
        elif kind == "prehook":
            y.grad_fn.register_prehook(hook)
        elif kind == "metadata":
            y.grad_fn.metadata["hook"] = hook
        else:
            y.register_hook(hook)
        return weakref.ref(witness)

    witness = cycle()
    gc.collect()
    assert witness() is None


def test_a_hook_that_others_still_need_is_not_collected() -> None:
    x = leaf(1.0)
    seen = []

    def record() -> torch.Tensor:
        y = x * 2

        def hook(grad: torch.Tensor) -> None:
            seen.append(y.item())

        y.register_hook(hook)
        return y * 3

    z = record()
    gc.collect()
    z.sum().backward()
    assert seen == [2.0]


def test_hooks_run_in_the_thread_of_backward() -> None:
    x = leaf(1.0)
    threads = []
    x.register_hook(lambda grad: threads.append(threading.get_ident()))
    y = (x * 2).sum()
    worker = threading.Thread(target=y.backward)
    worker.start()
    worker.join()
    assert threads == [worker.ident] and x.grad.tolist() == [2.0]


def test_hooks_come_and_go_while_other_threads_run_backward() -> None:
    x = leaf(1.0)
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            x.register_hook(lambda grad: grad * 1).remove()
            gc.collect(0)

    worker = threading.Thread(target=churn)
    worker.start()
    for _ in range(200):
        (x * 2).sum().backward()
    stop.set()
    worker.join()
    assert x.grad.tolist() == [400.0]


def test_a_new_gradient_lies_in_memory_like_its_leaf() -> None:
    x = torch.ones(3, 2).t().requires_grad_()
    weights = torch.arange(6.0).reshape(2, 3)
    (x * weights).sum().backward()
    assert x.grad.stride() == x.stride() and x.grad.tolist() == weights.tolist()
    x.grad = None
    with torch.autograd.enforce_grad_layout_policy(False):
        (x * weights).sum().backward()
    assert x.grad.tolist() == weights.tolist()


def test_queued_callbacks_run_when_the_outermost_backward_is_done() -> None:
    engine = torch.autograd.Variable._execution_engine
    x, z = leaf(1.0), leaf(1.0)
    seen: list[object] = []

    def arrived(tensor: torch.Tensor) -> None:
        if tensor is x:
            with torch.enable_grad():
                (z * 2).sum().backward()
            assert seen == []
        engine.queue_callback(lambda: seen.append(x.grad is not None and z.grad is not None))

    for tensor in x, z:
        tensor.register_post_accumulate_grad_hook(arrived)
    (x * 3).sum().backward()
    assert seen == [True, True]
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        engine.queue_callback(print)

    def fail() -> None:
        raise ValueError("too late")

    z.register_hook(lambda grad: engine.queue_callback(fail))
    with pytest.raises(ValueError, match="too late"):
        (z * 3).sum().backward()


def test_hooks_of_a_tensor_are_listed() -> None:
    x = torch.ones(2, requires_grad=True)
    assert x._backward_hooks is None

    def double(grad: torch.Tensor) -> torch.Tensor:
        return grad * 2

    x.register_hook(double)
    assert list(x._backward_hooks.values()) == [double]
    y = torch.ones(2, requires_grad=True)
    y._backward_hooks = x._backward_hooks
    y.sum().backward()
    assert y.grad.tolist() == [2, 2]
