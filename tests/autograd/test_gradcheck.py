"""gradcheck finds wrong gradients, says where, and leaves right ones alone."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from sparse_matrices import LAYOUTS, in_layout, random_matrix

import rushlight as torch
from rushlight import _C, Tensor
from rushlight.autograd import forward_ad, gradcheck, gradgradcheck
from rushlight.autograd.gradcheck import GradcheckError

BOTH_MODES = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])


def leaf(*shape: int, dtype: Any = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(shape, dtype=dtype, generator=generator).requires_grad_()


def with_backward(change: Callable[[list[Any]], list[Any]], *tensors: Tensor) -> tuple[Any, ...]:
    """The tensors, whose gradients a function changes on their way back."""
    return _C._gate(lambda grads: change(list(grads)), list(tensors))


def wrong_exp(x: Tensor) -> Tensor:
    return with_backward(lambda grads: [grads[0] * 1.5], x.exp())[0]


RIGHT: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "sin": (torch.sin, lambda: (leaf(3, 2),)),
    "matmul": (torch.matmul, lambda: (leaf(3, 2), leaf(2, 4))),
    "several outputs": (
        lambda x, y: (x @ y, x.sum(), y.exp(), x.detach()),
        lambda: (leaf(3, 2), leaf(2, 3)),
    ),
    "constants": (
        lambda x, i, power: x[i] ** power,
        lambda: (leaf(3), torch.tensor([2, 0]), 3),
    ),
    "one of two": (torch.mul, lambda: (leaf(3), leaf(3).detach())),
    "complex": (lambda z: z.exp() * z.conj(), lambda: (leaf(2, 2, dtype=torch.complex128),)),
    "complex to real": (lambda z: (z.abs(), z.imag), lambda: (leaf(3, dtype=torch.complex128),)),
    "real to complex": (torch.view_as_complex, lambda: (leaf(3, 2),)),
    "both": (
        lambda x, z: (x * z, x + z),
        lambda: (leaf(2, 2), leaf(2, 2, dtype=torch.complex128)),
    ),
    "empty": (lambda x: x.exp(), lambda: (leaf(0, 3),)),
    "empty result": (lambda x: x[:0], lambda: (leaf(3),)),
    "number": (torch.exp, lambda: (leaf(),)),
    "strided": (lambda x: x.exp(), lambda: (leaf(4, 6).detach()[::2, 1::2].requires_grad_(),)),
    "transposed": (lambda x: x.cumsum(0), lambda: (leaf(4, 3).detach().t().requires_grad_(),)),
    "unused": (lambda x, y: x * 2, lambda: (leaf(3), leaf(2))),
    "input itself": (lambda x: x, lambda: (leaf(3),)),
    "in place": (lambda x: x.clone().mul_(x), lambda: (leaf(3),)),
}


@BOTH_MODES
@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_pass(name: str, fast_mode: bool) -> None:
    func, make = RIGHT[name]
    inputs = make()
    before = [x.clone() if isinstance(x, Tensor) else x for x in inputs]
    assert gradcheck(func, inputs, fast_mode=fast_mode) is True
    assert gradgradcheck(func, inputs, fast_mode=fast_mode) is True
    for now, then in zip(inputs, before, strict=True):
        assert not isinstance(now, Tensor) or (torch.equal(now, then) and now._version == 0)


def test_a_single_tensor_and_a_list_are_inputs_too() -> None:
    assert gradcheck(torch.sin, leaf(3))
    assert gradcheck(torch.mul, [leaf(3), leaf(3)])


def test_inputs_that_func_captured_are_moved_too() -> None:
    weight = leaf(3)
    assert gradcheck(lambda *_: weight * weight, weight)


@BOTH_MODES
def test_a_wrong_gradient_is_caught_and_shown(fast_mode: bool) -> None:
    def func(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        scale = torch.ones(2, 2, dtype=torch.float64)
        scale[1, 0] = 2
        (z,) = with_backward(lambda grads: [grads[0] * scale], y * 3)
        return x.exp(), z + x

    inputs = leaf(2, 2), leaf(2, 2)
    with pytest.raises(GradcheckError) as error:
        gradcheck(func, inputs, fast_mode=fast_mode)
    text = str(error.value)
    assert "Jacobian mismatch for output 1 with respect to input 1: 1 of 16 elements" in text
    assert (
        "d output 1[1, 0] / d input 1[1, 0]: 6 by backward, 3 by finite differences; apart 3, "
        "allowed 0.00301" in text
    )
    assert "more than 1e-05 + 0.001 * |numerical| (eps=1e-06)" in text
    assert gradcheck(func, inputs, fast_mode=fast_mode, raise_exception=False) is False
    assert gradcheck(func, inputs, fast_mode=fast_mode, rtol=2) is True


def test_a_message_lists_the_farthest_elements_first() -> None:
    with pytest.raises(GradcheckError) as error:
        gradcheck(wrong_exp, leaf(4, 4))
    apart = [float(x) for x in re.findall(r"apart ([\d.e-]+),", str(error.value))]
    assert apart == sorted(apart, reverse=True) and len(apart) == 5
    assert "16 of 256 elements" in str(error.value) and "and 11 more" in str(error.value)


@BOTH_MODES
def test_a_gradient_that_is_cut_is_caught(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda x: x * x.detach(), leaf(3), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="expected to be zero, because no output requires"):
        gradcheck(lambda x: x.detach() * 2, leaf(3), fast_mode=fast_mode)
    assert gradcheck(lambda x: torch.ones(3), leaf(3), fast_mode=fast_mode)


@BOTH_MODES
def test_nan_is_never_right(fast_mode: bool) -> None:
    for x in (torch.tensor([-1.0, 1.0]), torch.tensor([0.0, 1.0])):
        with pytest.raises(GradcheckError, match="nan by|inf by"):
            gradcheck(torch.sqrt, x.double().requires_grad_(), fast_mode=fast_mode)

    def func(x: Tensor) -> Tensor:
        return with_backward(lambda grads: [grads[0] * math.nan], x.exp())[0]

    with pytest.raises(GradcheckError, match="nan by backward"):
        gradcheck(func, leaf(3), fast_mode=fast_mode)


@BOTH_MODES
@pytest.mark.parametrize("part", ["real", "imaginary"])
def test_a_wrong_complex_gradient_is_caught_in_each_part(part: str, fast_mode: bool) -> None:
    def func(z: Tensor) -> Tensor:
        keep = z.real if part == "imaginary" else z.real.detach()
        turn = z.imag if part == "real" else z.imag.detach()
        return torch.complex(keep, turn)

    z = leaf(3, dtype=torch.complex128)
    with pytest.raises(GradcheckError, match=f"for the {part} part of the output: 3 of 9"):
        gradcheck(func, z, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda z: with_backward(lambda g: [g[0].conj()], z * 1j)[0], z)


@BOTH_MODES
def test_a_wrong_second_gradient_is_caught(fast_mode: bool) -> None:
    def func(x: Tensor) -> Tensor:
        square = x + (x * x - x).detach()
        return with_backward(lambda grads: [grads[0] * 2 * x.detach()], square)[0]

    assert gradcheck(func, leaf(3), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0"):
        gradgradcheck(func, leaf(3), fast_mode=fast_mode)
    assert gradgradcheck(func, leaf(3), fast_mode=fast_mode, raise_exception=False) is False


def test_gradients_of_outputs_may_be_given() -> None:
    x = leaf(3)
    assert gradgradcheck(torch.exp, x, leaf(3))
    assert gradgradcheck(torch.exp, x, [leaf(3).detach()])
    assert gradgradcheck(torch.exp, x, gen_non_contig_grad_outputs=True)
    with pytest.raises(ValueError, match="no output of func requires grad"):
        gradgradcheck(lambda x: x.detach(), x)


@BOTH_MODES
def test_backward_that_differs_between_runs_is_caught(fast_mode: bool) -> None:
    runs = itertools.count()

    def func(x: Tensor) -> Tensor:
        return with_backward(lambda grads: [grads[0] + 1e-7 * (next(runs) % 2) * grads[0]], x)[0]

    with pytest.raises(GradcheckError, match="Backward is not reentrant.*tolerance for nondeter"):
        gradcheck(func, leaf(3), fast_mode=fast_mode)
    assert gradcheck(func, leaf(3), fast_mode=fast_mode, nondet_tol=1e-6)


def test_backward_must_be_multiplied_by_its_gradient() -> None:
    def func(x: Tensor) -> Tensor:
        # Right wherever the gradient is not zero.
        return with_backward(
            lambda grads: [grads[0] + 1e-6 * (grads[0].abs().sum() == 0)], x.sum()
        )[0]

    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(func, leaf(3))


def test_absent_gradients_must_count_as_zeros() -> None:
    def func(factor: int) -> Callable[[Tensor], tuple[Any, ...]]:
        def change(grads: list[Any]) -> list[Any]:
            scale = 1 if any(g is None for g in grads) else factor
            return [None if g is None else g * scale for g in grads]

        return lambda x: with_backward(change, x.exp(), x.sin())

    assert gradcheck(func(1), leaf(3))
    assert gradcheck(func(3), leaf(3), check_undefined_grad=False)
    with pytest.raises(
        GradcheckError, match="(?s)undefined output grads.*for output 0 the gradient of input 0"
    ):
        gradcheck(func(3), leaf(3))


def test_backward_gives_gradients_in_the_dtype_of_inputs_as_asked() -> None:
    def func(x: Tensor) -> Tensor:
        return with_backward(lambda grads: [grads[0].float()], x)[0]

    assert gradcheck(func, leaf(3), check_grad_dtypes=True)
    assert gradcheck(torch.mul, (leaf(3), leaf(3, dtype=torch.complex128)), check_grad_dtypes=True)


@BOTH_MODES
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_inputs(layout: Any, masked: bool, fast_mode: bool) -> None:
    indices, values = random_matrix(4, 4, 6, 0)
    matrix = in_layout(torch.sparse_coo_tensor(indices, values, (4, 4)).coalesce(), layout)
    inputs = matrix.requires_grad_(), leaf(4, 3)
    assert gradcheck(lambda s, d: s @ d, inputs, masked=masked, fast_mode=fast_mode)
    assert gradcheck(lambda s: s.to_dense().exp(), inputs[0], masked=masked, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="with respect to input 0"):
        gradcheck(lambda s, d: wrong_exp(s @ d), inputs, masked=masked, fast_mode=fast_mode)


def test_unspecified_places_count_unless_masked() -> None:
    diagonal = torch.eye(3, dtype=torch.float64).to_sparse().requires_grad_()

    def func(s: Tensor) -> Tensor:
        # The gradient at other places than the diagonal is lost.
        return torch.diag_embed(s.to_dense().diagonal()) + s.to_dense().detach().tril(-1)

    assert gradcheck(func, diagonal, masked=True)
    with pytest.raises(GradcheckError, match=r"d output 0\[1, 0\] / d input 0\[1, 0\]: 0 by"):
        gradcheck(func, diagonal, masked=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_entries_in_the_same_place_have_a_number_each(fast_mode: bool) -> None:
    values, d = torch.randn(3, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    matrix = torch.sparse_coo_tensor([[0, 2, 0], [1, 3, 1]], values, (3, 4)).requires_grad_()
    assert gradcheck(lambda x: x @ d, matrix, masked=True, fast_mode=fast_mode)


def test_sparse_results_are_compared_as_dense_ones() -> None:
    assert gradcheck(lambda x: (x * torch.eye(3).double()).to_sparse(), leaf(3, 3))


def test_inputs_that_cannot_be_checked() -> None:
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, leaf(3).detach())
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double prec"):
        gradcheck(lambda x: x * 1, leaf(3, dtype=torch.float32), atol=0.1)
    expanded = leaf(1).detach().expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(torch.sin, expanded)
    for how in (
        {"check_backward_ad": False},
        {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
        {"check_batched_forward_grad": True},
    ):
        with pytest.raises(AssertionError, match="check_"):
            gradcheck(torch.sin, leaf(3), **how)
    with pytest.raises(AssertionError, match="check_rev_over_rev"):
        gradgradcheck(torch.sin, leaf(3), check_rev_over_rev=False)


@pytest.mark.parametrize("func", [lambda x: {"out": x}, lambda x: (), lambda x: None])
def test_functions_that_return_no_tensor_are_refused(func: Any) -> None:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(TypeError, match="func must return a tensor or a tuple of them"):
        gradcheck(func, x)


def test_outputs_must_keep_their_shape_and_dtype() -> None:
    with pytest.raises(AssertionError, match="outputs with the same shape when inputs are pert"):
        gradcheck(lambda x: x[: 1 + int(x[0].item() > 0)], torch.zeros(3).double().requires_grad_())


def test_an_error_in_func_leaves_inputs_as_they_were() -> None:
    calls = itertools.count()

    def func(x: Tensor) -> Tensor:
        if next(calls) == 2:
            raise KeyError("stop")
        return x.exp()

    x = leaf(3)
    before = x.detach().clone()
    with pytest.raises(KeyError):
        gradcheck(func, x)
    assert torch.equal(x, before)


def test_grad_mode_around_it_does_not_matter() -> None:
    x = leaf(3)
    with torch.no_grad():
        assert gradcheck(torch.exp, x)
        assert gradgradcheck(torch.exp, x)


def test_random_numbers_of_the_program_are_left_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    gradcheck(torch.exp, leaf(3), fast_mode=True)
    assert torch.equal(torch.rand(3), expected)


@BOTH_MODES
def test_batched_gradients(fast_mode: bool) -> None:
    for name in ("sin", "matmul", "several outputs", "complex", "complex to real"):
        func, inputs = RIGHT[name]
        assert gradcheck(func, inputs(), check_batched_grad=True, fast_mode=fast_mode), name
        assert gradgradcheck(func, inputs(), check_batched_grad=True, fast_mode=fast_mode), name


@BOTH_MODES
@pytest.mark.parametrize("name", RIGHT)
def test_forward_mode(name: str, fast_mode: bool) -> None:
    func, inputs = RIGHT[name]
    assert gradcheck(func, inputs(), check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(
        func, inputs(), check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode
    )


@BOTH_MODES
def test_batched_forward_mode(fast_mode: bool) -> None:
    for name in ("sin", "matmul", "several outputs", "complex", "real to complex"):
        func, inputs = RIGHT[name]
        assert gradcheck(
            func, inputs(), fast_mode=fast_mode,
            check_forward_ad=True, check_batched_forward_grad=True,
        ), name  # fmt: skip


@BOTH_MODES
def test_forward_mode_over_backward(fast_mode: bool) -> None:
    for name in ("sin", "matmul", "several outputs", "complex"):
        func, inputs = RIGHT[name]
        assert gradgradcheck(func, inputs(), check_fwd_over_rev=True, fast_mode=fast_mode), name


class WrongTangent(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * 2

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return tangents[0] * 3


@BOTH_MODES
def test_a_wrong_tangent_is_caught(fast_mode: bool) -> None:
    assert gradcheck(WrongTangent.apply, leaf(3), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch.*(?s:.*)3 by forward mode, 2 by"):
        gradcheck(WrongTangent.apply, leaf(3), check_forward_ad=True, fast_mode=fast_mode)


def test_forward_mode_gives_every_input_a_tangent() -> None:
    def func(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if forward_ad._current_level >= 0:
            value, tangent = forward_ad.unpack_dual(y)
            assert tangent is not None
            y = forward_ad.make_dual(value, tangent * 1.1)
        return x + y, y

    with pytest.raises(GradcheckError, match="output 0 with respect to input 1(?s:.*)forward mode"):
        gradcheck(func, (leaf(2), leaf(2)), check_forward_ad=True)


class WrongForBatches(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        batched = _C._lift_of(grads[0]) is not None
        return grads[0] * (3 if batched else 2)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        batched = _C._lift_of(tangents[0]) is not None
        return tangents[0] * (3 if batched else 2)


def test_wrong_batches_are_caught() -> None:
    func = WrongForBatches.apply
    assert gradcheck(func, leaf(3), check_forward_ad=True)
    with pytest.raises(GradcheckError, match="Batched gradients of output 0 with respect to inp"):
        gradcheck(func, leaf(3), check_batched_grad=True)
    with pytest.raises(GradcheckError, match="Batched gradients of output 0 along input 0"):
        gradcheck(func, leaf(3), check_forward_ad=True, check_batched_forward_grad=True)
