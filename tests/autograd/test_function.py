"""Function: programs that define operations with gradients of their own."""

from __future__ import annotations

import gc
import pickle
import threading
import traceback
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import Function
from rushlight.autograd.function import InplaceFunction, once_differentiable


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def function(forward, backward, setup_context=None) -> type[Function]:
    """A Function made of lambdas."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    if setup_context:
        methods["setup_context"] = staticmethod(setup_context)
    return type(Function)("Custom", (Function,), methods)


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


class Cube(Function):
    @staticmethod
    def forward(x):
        return x**3, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        _, slope = output
        ctx.save_for_backward(x, slope)

    @staticmethod
    def backward(ctx, grad, grad_slope):
        x, slope = ctx.saved_tensors
        return grad * slope + grad_slope * 6 * x


class LegendrePolynomial3(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class MyReLU(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input


class Double_(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Pair(Function):
    """Two products; backward notes what it gets."""

    @staticmethod
    def forward(ctx, x, materialize=True):
        ctx.set_materialize_grads(materialize)
        ctx.seen = []
        return x * 2, "text", x * 3, (x * 4).long()

    @staticmethod
    def backward(ctx, *grads):
        ctx.seen.append(grads)
        a, _, b, _ = grads
        return sum(k * g for k, g in ((2, a), (3, b)) if g is not None), None


# Programs


def test_exp_and_legendre_polynomials_have_their_gradients() -> None:
    x = leaf(-1.0, 0.5, 2.0)
    Exp.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(x.detach().numpy()))
    x.grad = None
    LegendrePolynomial3.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1.5 * (5 * x.detach().numpy() ** 2 - 1))


def test_relu_trains_a_layer() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(8, 5), torch.randn(5, 3, requires_grad=True)
    MyReLU.apply(x.mm(w)).sum().backward()
    ours = w.grad.clone()
    w.grad = None
    x.mm(w).relu().sum().backward()
    assert torch.equal(ours, w.grad)


def test_setup_context_sees_inputs_and_outputs() -> None:
    x = leaf(2.0, 3.0)
    y, slope = Cube.apply(x)
    (y.sum() + slope.sum()).backward()
    assert x.grad.tolist() == [12.0 + 12.0, 27.0 + 18.0]


def test_backward_is_differentiated_as_the_ops_that_it_is_made_of() -> None:
    x = leaf(2.0)
    y, _ = Cube.apply(x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)
    assert (first.item(), second.item(), third.item()) == (12.0, 12.0, 6.0)
    (first,) = torch.autograd.grad(Exp.apply(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert second.item() == pytest.approx(np.exp(2.0))


def test_a_straight_through_estimator_and_a_gradient_reversal() -> None:
    Round = function(lambda ctx, x: x.round(), lambda ctx, grad: grad)

    def reverse(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    Reverse = function(reverse, lambda ctx, grad: (-ctx.scale * grad, None))
    x = leaf(0.4, 1.6)
    Round.apply(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    x.grad = None
    Reverse.apply(x, 0.5).sum().backward()
    assert x.grad.tolist() == [-0.5, -0.5]


def test_a_backward_may_call_backward() -> None:
    def inner(ctx, grad):
        with torch.enable_grad():
            x = ctx.x.detach().requires_grad_()
            Exp.apply(x).sum().backward()
        return grad * x.grad

    def forward(ctx, x):
        ctx.x = x
        return x.exp()

    x = leaf(1.0)
    function(forward, inner).apply(x).backward()
    assert x.grad.item() == pytest.approx(np.e)


# What is passed


def test_needs_input_grad_has_a_place_for_every_argument() -> None:
    seen = []

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return args[0] * args[2]

    x = leaf(1.0)
    function(forward, None).apply(x, "text", x.detach(), None)
    assert seen == [(True, False, False, False)]


def test_forward_runs_unrecorded_and_backward_as_asked() -> None:
    modes = []

    def forward(ctx, x):
        modes.append(torch.is_grad_enabled())
        return x * 2

    def backward(ctx, grad):
        modes.append(torch.is_grad_enabled())
        return grad * 2

    x = leaf(1.0)
    Custom = function(forward, backward)
    Custom.apply(x).backward()
    torch.autograd.grad(Custom.apply(x), x, create_graph=True)
    assert modes == [False, False, False, True]
    assert torch.is_grad_enabled()


def test_results_that_are_no_tensors_pass_and_have_no_gradient() -> None:
    x = leaf(1.0, 2.0)
    a, text, b, whole = Pair.apply(x)
    assert text == "text" and not whole.requires_grad and b.requires_grad
    a.sum().backward()
    ((grad_a, grad_text, grad_b, grad_whole),) = a.grad_fn.seen
    assert grad_a.tolist() == [1.0, 1.0] and grad_b.tolist() == [0.0, 0.0]
    assert grad_text is None and grad_whole.tolist() == [0, 0]
    assert grad_whole.dtype == torch.int64
    assert x.grad.tolist() == [2.0, 2.0]


def test_gradients_need_not_be_materialized() -> None:
    x = leaf(1.0, 2.0)
    _, _, b, _ = Pair.apply(x, False)
    b.sum().backward()
    assert b.grad_fn.seen[0][0] is None
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_function_that_gets_no_gradient_gets_zeros() -> None:
    seen = []
    Stop = function(lambda ctx, x: x * 1, lambda ctx, grad: None)
    Note = function(lambda ctx, x: x * 1, lambda ctx, grad: seen.append(grad) or grad)
    x = leaf(1.0)
    Stop.apply(Note.apply(x)).sum().backward()
    assert seen[0].tolist() == [0.0] and x.grad.tolist() == [0.0]


def test_nothing_is_recorded_without_need() -> None:
    for y in (Exp.apply(torch.ones(2)), Pair.apply(torch.ones(2))[0]):
        assert y.grad_fn is None and not y.requires_grad
    with torch.no_grad():
        assert Exp.apply(leaf(1.0)).grad_fn is None
    assert Exp.apply(torch.ones(2)).tolist() == pytest.approx([np.e, np.e])


def test_arguments_by_name_and_defaults() -> None:
    def forward(x, factor=3, *, shift=0.0):
        return x * factor + shift

    def setup(ctx, inputs, output):
        ctx.inputs = inputs

    Custom = function(forward, lambda ctx, grad: (grad, None, None), setup)
    x = leaf(1.0)
    assert Custom.apply(x).grad_fn.inputs[1:] == (3, 0.0)
    assert Custom.apply(x, shift=1.0, factor=2).grad_fn.inputs[1:] == (2, 1.0)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        Custom.apply()
    Plain = function(lambda ctx, x, k=1: x * k, lambda ctx, grad: (grad, None))
    y = Plain.apply(x, k=4)
    y.backward()
    assert (y.item(), x.grad.item()) == (4.0, 1.0)


# What backward returns


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda g: g, r"function CustomBackward returned an incorrect number of gradients "
                      r"\(expected 2, got 1\)"),
        (lambda g: (g, g, g), r"incorrect number of gradients \(expected 2, got 3\)"),
        (lambda g: [g, None], r"incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (g, g), "gradient different than None at position 2, but the corresponding "
                           "forward input was not a Variable"),
        (lambda g: ("g", None), r"expected Variable or None \(got str\)"),
        (lambda g: (g.new_ones(3), None), r"Function CustomBackward returned an invalid gradient "
                                          r"at index 0 - got \(3,\) but expected shape"),
        (lambda g: (g.new_ones(()), None), r"got \(\) but expected shape compatible with \(2,\)"),
        (lambda g: (g + 1j, None), "got complex128 but expected a real one"),
        (lambda g: (g.to("meta"), None), "expected device cpu but got meta"),
    ],
)  # fmt: skip
def test_wrong_gradients_are_refused(returned, message) -> None:
    x = leaf(1.0, 2.0)
    y = function(lambda ctx, x, k: x * k, lambda ctx, grad: returned(grad)).apply(x, 3)
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (lambda g: (g, None, None, None), [1.0, 1.0]),
        (lambda g: (g.new_ones(3, 2), None), [3.0, 3.0]),
        (lambda g: (g.float(), None), [1.0, 1.0]),
        (lambda g: (g.long(), None), [1.0, 1.0]),
    ],
)
def test_gradients_are_brought_into_the_form_of_the_input(returned, expected) -> None:
    x = leaf(1.0, 2.0)
    function(lambda ctx, x, k: x * k, lambda ctx, g: returned(g)).apply(x, 3).sum().backward()
    assert x.grad.tolist() == expected and x.grad.dtype == torch.float64


def test_no_gradient_leaves_grad_alone() -> None:
    x = leaf(1.0)
    function(lambda ctx, x: x * 1, lambda ctx, grad: None).apply(x).backward()
    assert x.grad is None


# Saved tensors


def test_saved_tensors_are_inputs_results_others_and_none() -> None:
    def forward(ctx, x):
        middle, result = x * 2, x * 3
        ctx.save_for_backward(x, middle, None, result)
        assert ctx.saved_tensors == ()
        return result

    x = leaf(1.0)
    y = function(forward, lambda ctx, grad: grad).apply(x)
    saved = y.grad_fn.saved_tensors
    assert saved[0] is x and saved[2] is None
    assert saved[1].tolist() == [2.0] and not saved[1].requires_grad
    assert saved[3].tolist() == [3.0] and saved[3].grad_fn is y.grad_fn


def test_saved_tensors_are_freed_by_backward() -> None:
    x = leaf(1.0)
    y = Exp.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = y.grad_fn.saved_tensors
    assert x.grad.item() == pytest.approx(2 * np.e)


def test_a_write_to_a_saved_tensor_is_named_with_both_lines() -> None:
    x = leaf(1.0) * 1
    y = LegendrePolynomial3.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError) as error:
        y.backward()
    text = str(error.value)
    assert "LegendrePolynomial3 saved its input (test_function.py:" in text
    assert "but add_ changed it in place afterwards (test_function.py:" in text


def test_what_is_saved_must_be_tensors() -> None:
    x = leaf(1.0)
    with pytest.raises(TypeError, match="can only save variables, but argument 1 is of type int"):
        function(lambda ctx, x: (ctx.save_for_backward(x, 3), x * 1)[1], None).apply(x)
    with pytest.raises(AssertionError, match="save_for_forward expects all arguments"):
        function(lambda ctx, x: (ctx.save_for_forward(x, 3), x * 1)[1], None).apply(x)
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        function(lambda ctx, x: (ctx.mark_dirty(3), x * 1)[1], None).apply(x)
    with pytest.raises(TypeError, match="set_materialize_grads expects a bool, got str"):
        function(lambda ctx, x: ctx.set_materialize_grads("no"), None).apply(x)


def test_saved_variables_is_the_old_name_of_saved_tensors() -> None:
    def backward(ctx, grad):
        with pytest.warns(DeprecationWarning, match="saved_tensors"):
            (x,) = ctx.saved_variables
        return grad * x

    Old = function(lambda ctx, x: (ctx.save_for_backward(x), x * 1)[1], backward)
    x = leaf(3.0)
    Old.apply(x).backward()
    assert x.grad.tolist() == [3.0]


# Views and writes in place


def test_an_input_returned_as_it_is_becomes_a_view() -> None:
    Same = function(lambda ctx, x: x, lambda ctx, grad: grad * 10)
    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and y._base is x and y.data_ptr() == x.data_ptr()
    y.backward()
    assert x.grad.tolist() == [10.0]
    plain = torch.ones(2)
    assert Same.apply(plain) is not plain


def test_an_input_returned_as_it_is_keeps_its_class() -> None:
    class Kept(torch.Tensor):
        pass

    Same = function(lambda ctx, x: x, lambda ctx, grad: grad * 10)
    for x in (torch.ones(2), leaf(1.0, 2.0) * 1):
        kept = x.as_subclass(Kept)
        y = Same.apply(kept)
        assert type(y) is Kept and y is not kept and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert type(Same.apply(torch.nn.Parameter(torch.ones(2)))) is torch.Tensor
    with pytest.raises(RuntimeError, match="view was created inside a custom Function"):
        Same.apply((leaf(1.0) * 1).as_subclass(Kept)).add_(1)

    class Itself(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return args[0] if func is torch.Tensor.view_as else None

    same = torch.ones(2).as_subclass(Itself)
    assert Same.apply(same) is same


def test_views_from_a_function_cannot_be_written() -> None:
    View = function(lambda ctx, x: x.view(-1, 1), lambda ctx, grad: grad.view(-1) * 10)
    for x in (leaf(1.0, 2.0), leaf(1.0, 2.0) * 1):
        with pytest.raises(RuntimeError, match="view was created inside a custom Function"):
            View.apply(x).add_(1)
    base = leaf(1.0, 2.0) * 1
    y = View.apply(base)
    base.add_(1)
    with pytest.raises(RuntimeError, match="Output 0 of Custom is a view and its base"):
        y.sum().backward()
    Two = function(lambda ctx, x: (x[:1], x[1:]), lambda ctx, a, b: torch.cat([a, b]))
    with pytest.raises(RuntimeError, match="returns multiple views"):
        Two.apply(leaf(1.0, 2.0) * 1)[0].add_(1)


def test_a_dirty_input_gets_the_function_as_its_history() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    before = y._version
    assert Double_.apply(y) is y
    assert y._version > before and y.grad_fn.name() == "Double_Backward"
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_dirty_view_changes_the_history_of_its_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    window = base[:2]
    assert Double_.apply(window) is window
    assert base.grad_fn.name() == "CopySlices"
    (base * base.detach()).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0, 3.0]


def test_a_dirty_view_need_not_be_the_first_argument() -> None:
    def forward(ctx, factor, window):
        ctx.save_for_backward(factor, window.clone())
        ctx.mark_dirty(window)
        return window.mul_(factor)

    def backward(ctx, grad):
        factor, window = ctx.saved_tensors
        return grad * window, grad * factor

    x, factor = leaf(1.0, 2.0, 3.0), leaf(5.0, 7.0)
    base = x * 1
    function(forward, backward).apply(factor, base[:2])
    base.sum().backward()
    assert x.grad.tolist() == [5.0, 7.0, 1.0] and factor.grad.tolist() == [1.0, 2.0]


def test_a_dirty_result_that_is_saved_can_be_differentiated() -> None:
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x.exp_()

    for cut in (lambda t: t, lambda t: t[:1]):
        x = leaf(1.0)
        base = x * 1
        ExpInPlace = function(forward, lambda ctx, grad: grad * ctx.saved_tensors[0])
        ExpInPlace.apply(cut(base))
        (first,) = torch.autograd.grad(base.sum(), x, create_graph=True)
        assert torch.autograd.grad(first, x)[0].item() == pytest.approx(np.e)


def test_mistakes_about_dirty_inputs_are_refused() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used"):
        Double_.apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="marked as dirty .* were not returned as output"):
        function(lambda ctx, x: (ctx.mark_dirty(x), x * 1)[1], None).apply(leaf(1.0) * 1)

    def several(ctx, x):
        ctx.mark_dirty(x)
        return x, x * 1

    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        function(several, None).apply((leaf(1.0, 2.0) * 1)[:1])

    def stranger(ctx, x):
        y = x * 1
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="tensor that was not an input"):
        function(stranger, None).apply(leaf(1.0))


def test_results_marked_as_not_differentiable_do_not_require_grad() -> None:
    def forward(ctx, x):
        values, order = x * 2, x.sign()
        ctx.mark_non_differentiable(order)
        return values, order

    x = leaf(-1.0, 2.0)
    values, order = function(forward, lambda ctx, grad, _: grad * 2).apply(x)
    assert values.requires_grad and not order.requires_grad and order.grad_fn is None
    (values * order).sum().backward()
    assert x.grad.tolist() == [-2.0, 2.0]


# The node


def test_the_node_is_the_context() -> None:
    contexts = []

    def forward(ctx, x):
        ctx.note = "a note"
        contexts.append(ctx)
        return x * 2

    x = leaf(1.0)
    y = function(forward, lambda ctx, grad: grad).apply(x)
    assert y.grad_fn is contexts[0] and y.grad_fn.note == "a note"
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "CustomBackward"
    ((node, slot),) = y.grad_fn.next_functions
    assert node.variable is x and slot == 0
    assert "CustomBackward object at" in repr(y.grad_fn)
    assert "grad_fn=<CustomBackward>" in repr(y)


def test_the_node_outlives_its_results_in_python() -> None:
    x = leaf(1.0)
    y = Exp.apply(x)
    node = y.grad_fn
    del y
    gc.collect()
    assert node.name() == "ExpBackward" and len(node.next_functions) == 1
    (saved,) = node.saved_tensors
    del node
    gc.collect()
    saved.backward()
    assert x.grad.item() == pytest.approx(np.e)


def test_a_context_of_a_call_that_was_not_recorded_stays_whole() -> None:
    kept = []
    function(lambda ctx, x: kept.append(ctx) or x * 1, None).apply(torch.ones(1))
    assert kept[0].saved_tensors == () and kept[0].next_functions == ()
    assert kept[0].needs_input_grad == (False,) and kept[0].name() == "CustomBackward"


def test_cycles_of_contexts_and_tensors_are_collected() -> None:
    class Token:
        pass

    def cycles():
        y = Exp.apply(leaf(1.0))
        y.grad_fn.result = y
        yield y.grad_fn
        y = Exp.apply(leaf(1.0))
        y.grad_fn.myself = y.grad_fn
        yield y.grad_fn
        y, _ = Cube.apply(leaf(1.0))
        y.note = y.grad_fn
        yield y.grad_fn
        kept = []
        function(lambda ctx, x: kept.append(ctx) or x * 1, None).apply(torch.ones(1))
        kept[0].cycle = kept
        yield kept[0]

    dead = []
    for node in cycles():
        node.token = Token()
        dead.append(weakref.ref(node.token))
    del node
    gc.collect()
    assert [ref() for ref in dead] == [None] * 4


def test_the_collector_leaves_what_backward_needs() -> None:
    x = leaf(1.0)

    def forward(ctx, x):
        ctx.factor, ctx.myself = 3.0, ctx
        return x * 3

    y = function(forward, lambda ctx, grad: grad * ctx.factor).apply(x)
    z = y * 2
    y.note = y
    del y
    gc.collect()
    z.backward()
    assert x.grad.tolist() == [6.0]


def test_a_long_chain_is_walked_and_freed_without_recursion() -> None:
    y = x = leaf(1.0)
    Same = function(lambda ctx, x: x * 1, lambda ctx, grad: grad)
    for _ in range(20_000):
        before, y = y, Same.apply(y)
        y.grad_fn.before = before
    del before
    y.backward()
    assert x.grad.item() == 1.0
    del y


# Mistakes


def test_what_is_not_implemented_says_so() -> None:
    class Empty(Function):
        pass

    x = leaf(1.0)
    with pytest.raises(NotImplementedError, match="must implement the forward function"):
        Empty.apply(x)
    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        type(Function)("Half", (Function,), {"forward": staticmethod(lambda ctx, x: x * 1)}).apply(
            x
        ).backward()
    with pytest.raises(NotImplementedError, match="must implement the jvp function"):
        Exp.jvp(None)
    with pytest.raises(NotImplementedError, match="override the vmap staticmethod"):
        Exp.vmap(None, (0,), x)
    assert Exp.generate_vmap_rule is False


def test_vjp_is_another_name_for_backward_but_not_beside_it() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    x = leaf(1.0)
    Twice.apply(x).backward()
    assert x.grad.item() == 2.0
    Twice.backward = staticmethod(lambda ctx, grad: grad)
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        Twice.apply(x).backward()


def test_functions_are_not_instantiated() -> None:
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Exp()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        made(leaf(1.0))
    with pytest.warns(DeprecationWarning, match="InplaceFunction"):
        assert InplaceFunction(inplace=True).inplace
    assert made.saved_tensors == () and made.name() == "Exp" and made.next_functions == ()
    with pytest.raises(RuntimeError, match="belongs to no Function"):
        torch.autograd.function.BackwardCFunction().apply(1)


def test_a_backward_marked_once_differentiable_refuses_the_second() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            assert not torch.is_grad_enabled()
            return torch.from_numpy(grad.detach().numpy() * 2)

    x = leaf(3.0)
    (Double.apply(x) * x).backward()
    assert x.grad.item() == 12.0
    (first,) = torch.autograd.grad(Double.apply(x) * x, x, create_graph=True)
    assert first.item() == 12.0
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        first.backward()


def test_exceptions_keep_their_traceback_and_leave_the_engine_usable() -> None:
    def failing_backward(ctx, grad):
        raise ZeroDivisionError("here")

    def failing_forward(ctx, x):
        raise KeyError("there")

    x = leaf(1.0)
    with pytest.raises(ZeroDivisionError, match="here") as error:
        function(lambda ctx, x: x * 1, failing_backward).apply(x).backward()
    assert "failing_backward" in "".join(traceback.format_tb(error.tb))
    with pytest.raises(KeyError, match="there") as error:
        function(failing_forward, None).apply(x)
    assert "failing_forward" in "".join(traceback.format_tb(error.tb))
    assert torch.is_grad_enabled()
    Exp.apply(x).backward()
    assert x.grad.item() == pytest.approx(np.e)


def test_abuse_does_not_crash() -> None:
    x = leaf(1.0)
    node = Exp.apply(x).grad_fn
    for broken in (pickle.dumps, lambda n: n.saved_tensors(), lambda n: n(x, x)):
        with pytest.raises(TypeError):
            broken(node)
    del node.needs_input_grad, node.to_save
    assert node.needs_input_grad is None
    with pytest.raises(AttributeError):
        del node.saved_tensors
    with pytest.raises(TypeError):
        del node.materialize_grads
    with pytest.raises(TypeError):
        Exp.apply()
    with pytest.raises(AttributeError):
        Exp.apply(Exp)
    with pytest.raises(AttributeError):
        torch._C._FunctionBase.apply(x)
    Broken = function(lambda ctx, x: x * 1, lambda ctx, grad: grad)
    Broken._backward_cls = int
    with pytest.raises(TypeError, match="must be a class of contexts"):
        Broken.apply(x)
    orphan = type(node)()
    orphan.__dict__.clear()
    assert orphan.saved_tensors == () and orphan.name() == "ExpBackward"
    recursive = function(lambda ctx, x: recursive.apply(x), None)
    with pytest.raises(RecursionError):
        recursive.apply(x)


def test_a_context_that_is_asked_while_it_dies_answers() -> None:
    said = []
    Custom = function(lambda ctx, x: x * 1, lambda ctx, grad: grad)
    Custom._backward_cls.__del__ = lambda ctx: said.append((ctx.saved_tensors, ctx.name()))
    Custom.apply(leaf(1.0))
    gc.collect()
    assert said == [((), "Function")]


def test_threads_share_a_graph() -> None:
    x = leaf(*np.linspace(-1.0, 1.0, 50))
    shared = Exp.apply(x)
    failures = []

    def work():
        try:
            for _ in range(50):
                y = LegendrePolynomial3.apply(shared)
                (grad,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
                value = np.exp(x.detach().numpy())
                np.testing.assert_allclose(grad.numpy(), 1.5 * (5 * value**2 - 1) * value)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
