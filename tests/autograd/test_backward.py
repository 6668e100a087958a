"""Backward: accumulation, graphs that are kept or freed, gradients of gradients, modes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import rushlight as torch


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


def test_gradients_of_several_uses_add_up() -> None:
    x = leaf(1.0, 2.0)
    (x * x + x).sum().backward()
    assert x.grad.tolist() == [3.0, 5.0]


def test_a_second_backward_accumulates_into_grad() -> None:
    x = leaf(1.0)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    assert x.grad.tolist() == [5.0]


def test_the_gradient_may_stand_in_a_list() -> None:
    x = leaf(1.0, 2.0)
    (x * 3).backward([torch.tensor([1.0, 2.0])])
    assert x.grad.tolist() == [3.0, 6.0]
    for wrong in ([], [torch.ones(2)] * 2):
        with pytest.raises(RuntimeError, match=f"got 1 tensors and {len(wrong)} gradients"):
            (x * 3).backward(wrong)


def test_grad_keeps_its_identity() -> None:
    x = leaf(1.0)
    (x * 2).sum().backward()
    assert x.grad is x.grad


def test_two_leaves_never_share_the_memory_of_their_gradients() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward(torch.tensor([1.0, 1.0]))
    x.grad.zero_()
    assert y.grad.tolist() == [1.0, 1.0]


def test_gradient_argument_is_not_aliased_by_grad() -> None:
    x = leaf(1.0, 2.0)
    g = torch.tensor([1.0, 1.0])
    (x + 0).backward(g)
    g.zero_()
    assert x.grad.tolist() == [1.0, 1.0]


def test_broadcast_gradients_are_summed_to_the_input_shape() -> None:
    x = torch.ones(3, 1, requires_grad=True)
    y = torch.ones(4, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.shape == (3, 1) and x.grad[0, 0].item() == 4.0
    assert y.grad.shape == (4,) and y.grad[0].item() == 3.0


def test_gradients_come_back_in_the_dtype_of_the_input() -> None:
    x = torch.ones(2, dtype=torch.float32, requires_grad=True)
    y = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.dtype is torch.float32 and y.grad.dtype is torch.float64


def test_second_backward_raises_unless_the_graph_is_retained() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_backward_needs_a_gradient_for_several_elements() -> None:
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        (leaf(1.0, 2.0) * 2).backward()


def test_backward_without_history_raises() -> None:
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()


def test_gradients_of_gradients_of_gradients() -> None:
    x = leaf(3.0)
    y = (x**4).sum()
    for expected in (4 * 27.0, 12 * 9.0, 24 * 3.0, 24.0):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        np.testing.assert_allclose(y.detach().numpy(), [expected], rtol=1e-5)


def test_none_is_no_tensor() -> None:
    x: Any = torch.ones(2, requires_grad=True)
    for call in (
        lambda: torch.autograd.grad(x.sum(), [None]),
        lambda: torch.autograd.grad([None], [x]),
        lambda: torch.autograd.backward([None]),
        lambda: x.sum().backward(inputs=[None, x]),
    ):
        with pytest.raises(RuntimeError, match="have to be Tensors or GradientEdges"):
            call()


def test_grad_leaves_the_grad_attribute_alone_and_reports_unused_inputs() -> None:
    x, unused = leaf(1.0), leaf(1.0)
    (g,) = torch.autograd.grad((x * 2).sum(), x)
    assert g.tolist() == [2.0] and x.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        torch.autograd.grad((x * 2).sum(), [x, unused])
    gx, none = torch.autograd.grad((x * 2).sum(), [x, unused], allow_unused=True)
    assert gx.tolist() == [2.0] and none is None


def test_arguments_of_grad_and_backward_stand_where_pytorch_has_them() -> None:
    x, unused = leaf(2.0), leaf(1.0)
    gx, none = torch.autograd.grad((x * x).sum(), [x, unused], None, False, True, True, True)
    assert gx.requires_grad and gx.tolist() == [4.0] and none is None
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        torch.autograd.grad((x * 2).sum(), x, only_inputs=False)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        torch.autograd.backward(x * 3, grad_variables=torch.ones(1), inputs=[x])
    assert x.grad.tolist() == [3.0]


def test_variable_is_a_tensor_that_shares_memory_without_history() -> None:
    data = torch.zeros(2)
    x = torch.autograd.Variable(data, requires_grad=True)
    assert type(x) is torch.Tensor and x.data_ptr() == data.data_ptr() and x.requires_grad
    assert not data.requires_grad and not torch.autograd.Variable(x * 2).requires_grad
    assert isinstance(data, torch.autograd.Variable)
    assert not isinstance(0.0, torch.autograd.Variable)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got float"):
        torch.autograd.Variable(0.0)
    with pytest.warns(UserWarning, match="volatile was removed"):
        torch.autograd.Variable(data, volatile=True)


def test_grad_of_an_inner_tensor() -> None:
    x = leaf(2.0)
    inner = x * 3
    outer = (inner * inner).sum()
    gi, gx = torch.autograd.grad(outer, [inner, x])
    assert gi.tolist() == [12.0] and gx.tolist() == [36.0]


def test_backward_with_inputs_fills_only_these() -> None:
    x, y = leaf(2.0), leaf(3.0)
    (x * y).sum().backward(inputs=[x])
    assert x.grad.tolist() == [3.0] and y.grad is None


def test_modes_nest_and_come_back_after_errors() -> None:
    x = leaf(1.0)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        with pytest.raises(ValueError, match="stop"), torch.enable_grad():
            raise ValueError("stop")
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_no_grad_decorates_functions_and_generators() -> None:
    x = leaf(1.0)

    @torch.no_grad()
    def double() -> torch.Tensor:
        return x * 2

    @torch.no_grad()
    def steps():
        yield (x * 2).requires_grad
        yield (x * 2).requires_grad

    assert not double().requires_grad
    iterator = steps()
    assert next(iterator) is False
    assert (x * 2).requires_grad
    assert next(iterator) is False


def test_decorating_a_class_warns() -> None:
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Model:
            enabled = torch.is_grad_enabled()

    assert Model is not None


def test_set_grad_enabled_works_at_once_and_as_a_scope() -> None:
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_inference_tensors_cannot_be_saved_for_backward() -> None:
    with torch.inference_mode():
        y = torch.ones(1) * 2
    assert y.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        leaf(1.0) * y


def test_only_the_gradients_that_are_asked_for_are_computed() -> None:
    x, weight, bias = (torch.randn(2, 2, requires_grad=True) for _ in range(3))
    for y in (x * weight, x @ weight, torch.nn.functional.linear(x, weight, bias[0])):
        seen: list[list[bool]] = []
        y.grad_fn.register_hook(
            lambda grads, _, seen=seen: seen.append([g is not None for g in grads[:2]])
        )
        together = torch.autograd.grad(y.sum(), (x, weight), retain_graph=True)
        for i, tensor in enumerate((x, weight)):
            (alone,) = torch.autograd.grad(y.sum(), tensor, retain_graph=True)
            assert torch.equal(alone, together[i])
        y.sum().backward(inputs=[x])
        assert seen == [[True, True], [True, False], [False, True], [True, False]]
        assert torch.equal(x.grad, together[0]) and weight.grad is None
        x.grad = None


def test_what_an_inplace_write_covers_gets_the_gradients_that_are_asked_for() -> None:
    x, factor = torch.randn(3, 2, requires_grad=True), torch.randn(2, requires_grad=True)
    y = x * 2
    view = y[1]
    early = view.exp()
    view.mul_(factor)
    total = (y**2).sum() + early.sum()
    together = torch.autograd.grad(total, (x, factor), retain_graph=True)
    assert torch.equal(torch.autograd.grad(total, x, retain_graph=True)[0], together[0])
    assert torch.equal(torch.autograd.grad(total, factor)[0], together[1])


def test_hooks_replace_gradients_and_can_be_removed() -> None:
    x = leaf(1.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.item()) or g * 10)
    y = x * 2
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert x.grad.tolist() == [40.0] and seen == [4.0]
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [42.0]


def test_a_hook_that_raises_stops_backward_with_its_own_error() -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()


def test_post_accumulate_hooks_see_the_finished_gradient() -> None:
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.item())))
    (x * 2 + x).sum().backward()
    assert seen == [(True, 3.0)]


def test_retain_grad_keeps_the_gradient_of_an_inner_tensor() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0]
    assert y.retains_grad and not x.retains_grad


def test_retain_grad_keeps_no_gradient_of_many_samples() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    z = y * y
    (both,) = torch.autograd.grad(z, x, torch.eye(2), retain_graph=True, is_grads_batched=True)
    assert both.tolist() == [[8.0, 0.0], [0.0, 16.0]]
    z.sum().backward()
    assert y.grad.tolist() == [4.0, 8.0]


def test_reading_the_gradient_of_an_inner_tensor_in_vain_warns() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None and x.grad is None and y.detach().grad is None


def test_detach_shares_memory_and_cuts_history() -> None:
    x = leaf(1.0)
    d = (x * 2).detach()
    assert not d.requires_grad and d.grad_fn is None
    x.detach().fill_(5.0)
    assert x.tolist() == [5.0]


def test_grad_fn_names_and_links() -> None:
    x = leaf(1.0)
    y = x.exp()
    assert y.grad_fn.name() == "ExpBackward0"
    ((node, slot),) = y.grad_fn.next_functions
    assert node.name() == "torch::autograd::AccumulateGrad" and slot == 0
    assert type(node).__name__ == "AccumulateGrad" and "<AccumulateGrad " in repr(node)
    assert node.variable is x
    assert x.grad_fn is None and x.is_leaf and not y.is_leaf


def test_a_chain_of_a_million_ops_runs_backward_and_is_freed() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(1_000_000):
        y = y + 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    del y


def test_backward_in_threads_on_a_shared_graph() -> None:
    x = leaf(1.0, 2.0)
    shared = x * 2

    def work() -> None:
        for _ in range(50):
            (shared * 3).sum().backward(retain_graph=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [1200.0, 1200.0]


def test_only_floating_tensors_can_require_grad() -> None:
    with pytest.raises(
        RuntimeError, match="floating point and complex dtype can require gradients"
    ):
        torch.ones(2, dtype=torch.int64).requires_grad_()


def test_requires_grad_of_a_result_cannot_be_switched_off() -> None:
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf variables"):
        (leaf(1.0) * 2).requires_grad = False


def test_the_gradient_has_a_second_name() -> None:
    x = torch.ones(2, requires_grad=True)
    x._grad = torch.ones(2)
    assert x.grad is x._grad is not None
