"""Tangents that divide by zero or count twice, of what is written in place, and of Functions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad


def tangent(f: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The tangent of f(x) when each element of x has the tangent 1."""
    with forward_ad.dual_level():
        result = forward_ad.unpack_dual(f(forward_ad.make_dual(x, torch.ones_like(x))))
    assert result.tangent is not None
    return result.tangent


@pytest.mark.parametrize("norm", [torch.norm, torch.linalg.norm, torch.linalg.vector_norm])
def test_tangent_of_the_norm_of_a_vector_of_zeros_is_zero(norm: Callable) -> None:
    assert tangent(norm, torch.zeros(5)).item() == 0
    x = torch.zeros(5, requires_grad=True)
    (first,) = torch.autograd.grad(norm(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [0] * 5 and second.isfinite().all()


def test_tangent_of_a_value_filled_in_twice_counts_once() -> None:
    index = torch.tensor([1, 1])
    filled = tangent(lambda v: torch.index_fill(torch.zeros(3), 0, index, v), torch.tensor(2.0))
    assert filled.tolist() == [0, 1, 0]


def test_tangent_of_a_diagonal_of_no_complex_numbers() -> None:
    none = torch.zeros(0, dtype=torch.complex128)
    assert tangent(torch.diag_embed, none).shape == (0, 0)


def test_elements_of_a_dual_tensor_as_numbers_are_those_of_its_value() -> None:
    x = torch.tensor([[1.0, 2.0]])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        assert dual.tolist() == [[1.0, 2.0]]
        assert dual[0, 1].tolist() == dual[0, 1].item() == 2.0


STEPS: dict[str, Callable] = {
    "floor": lambda x: torch.div(x, 2, rounding_mode="floor"),
    "bernoulli": lambda x: torch.bernoulli(x / 10),
    "normal": lambda x: torch.normal(x, 1.0),
    "poisson": torch.poisson,
    "cat": lambda x: torch.cat([x[:0], x[:0]]),
    "vector_norm": lambda x: torch.linalg.vector_norm(x, 0),
    "slogdet": lambda x: torch.linalg.slogdet(torch.diag(x))[0],
}


@pytest.mark.parametrize("name", STEPS)
def test_the_tangent_of_a_step_is_zero(name: str) -> None:
    x = torch.tensor([1.5, 2.5])
    assert torch.equal(tangent(STEPS[name], x), torch.zeros_like(STEPS[name](x)))


def test_what_does_not_depend_has_no_tangent() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        for f in (torch.zeros_like, torch.rand_like, torch.detach, torch.isnan, torch.argmax):
            assert forward_ad.unpack_dual(f(dual)).tangent is None


def filled_rows(x: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros(3, 2)
    out[0] = x * x
    first, rest = out.split([1, 2])
    rest[1].copy_(x.flip(0)).mul_(3)
    rest.mT[1].add_(x[0] * x[1])
    return out * 2 + first


def test_tangents_written_to_views_of_samples_are_those_of_the_base() -> None:
    xs = torch.arange(1.0, 7.0).reshape(3, 2)
    one = torch.stack([torch.func.jacfwd(filled_rows)(x) for x in xs])
    assert one[0, 0].tolist() == [[6, 0], [0, 12]]
    per_sample = torch.func.vmap(torch.func.jacfwd(filled_rows))
    assert torch.equal(per_sample(xs), one)
    assert torch.equal(torch.func.vmap(per_sample)(xs[None]), one[None])
    assert torch.equal(torch.func.vmap(torch.func.jacfwd(filled_rows), in_dims=1)(xs.mT), one)


def test_inner_tangents_written_to_views_of_duals_are_those_of_the_base() -> None:
    def of_both(x: torch.Tensor) -> torch.Tensor:
        def inner(y: torch.Tensor) -> torch.Tensor:
            out = x * 1
            out[0] = y.prod()
            return out

        return torch.func.jacfwd(inner)(x)

    first, outer = torch.func.jvp(of_both, (torch.tensor([2.0, 3.0]),), (torch.ones(2),))
    assert first.tolist() == [[3, 2], [0, 0]] and outer.tolist() == [[1, 1], [0, 0]]


def test_tangents_written_to_views_of_views_reach_the_views_between() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        row = x.new_zeros(2, 3)[1].narrow(0, 1, 2)
        row[0] = x[0] * x[1]
        row.unsqueeze(0)[0, 1] = row[0].clone() * x[0]
        return row * 1

    x = torch.tensor([[2.0, 3.0], [5.0, 7.0]])
    expected = torch.tensor([[[3.0, 2.0], [12, 4]], [[7, 5], [70, 25]]])
    assert torch.equal(torch.stack([torch.func.jacfwd(f)(row) for row in x]), expected)
    assert torch.equal(torch.func.vmap(torch.func.jacfwd(f))(x), expected)
    nested = torch.func.jacfwd(torch.func.jacfwd(f))(x[0])
    assert torch.equal(nested, torch.func.jacrev(torch.func.jacrev(f))(x[0]))


def test_long_chains_of_views_are_freed() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        view = out = x.new_zeros(3)
        for _ in range(20_000):
            view = view[:]
        view[1] = x
        return out * 1

    x = torch.tensor(2.0)
    assert torch.func.jacfwd(f)(x).tolist() == [0, 1, 0]
    assert torch.vmap(torch.func.jacfwd(f))(x[None]).tolist() == [[0, 1, 0]]


def test_a_view_of_a_dual_may_become_another_shape_in_place() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.unsqueeze_(0).transpose_(0, 1)
        y[1] = x[0] * x[1]
        return y.mT

    assert torch.func.jacfwd(f)(torch.tensor([2.0, 3.0])).tolist() == [[[2, 0], [3, 2]]]


def test_detach_in_place_drops_the_tangent_and_the_history_inside_transforms() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.detach_()
        return (y * x).sum()

    x = torch.tensor([2.0, 3.0])
    assert tangent(f, x).item() == 10
    assert torch.func.jacfwd(f)(x).tolist() == torch.func.grad(f)(x).tolist() == [4, 6]
    assert torch.func.vmap(torch.func.grad(f))(x[:, None]).tolist() == [[4], [6]]
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        tangent(lambda x: x[:1].detach_(), x)


def test_a_tangent_may_not_be_dual_itself() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            forward_ad.make_dual(torch.ones(2), dual)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, in_place):
        ctx.in_place = in_place
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent.mul_(2) if ctx.in_place else tangent * 2


def test_a_function_that_writes_runs_once_and_returns_what_it_wrote() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        y = Doubled.apply(x, True)
        assert y is x
        value, direction = forward_ad.unpack_dual(x)
        assert value.tolist() == [2, 2] and direction.tolist() == [2, 2]
        with pytest.raises(RuntimeError, match="not modifying the forward mode gradients inplace"):
            Doubled.apply(x, False)


class Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mask = torch.rand(x.shape) < 0.5
        return x * ctx.mask

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * ctx.mask


def test_the_notes_for_a_tangent_are_those_of_the_results() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(100), torch.ones(100))
        value, direction = forward_ad.unpack_dual(Masked.apply(x))
        assert torch.equal(value, direction)


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 * ctx.saved_tensors[0] ** 2

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 3 * ctx.saved_tensors[0] ** 2


def test_notes_on_a_context_serve_nested_derivatives() -> None:
    def slope(f: Callable) -> Callable:
        return lambda x: torch.func.jvp(f, (x,), (torch.ones(2),))[1]

    x = torch.tensor([2.0, 3.0])
    assert slope(slope(Cubed.apply))(x).tolist() == [12, 18]
    assert slope(torch.func.grad(lambda x: Cubed.apply(x).sum()))(x).tolist() == [12, 18]
    assert torch.func.grad(lambda x: slope(Cubed.apply)(x).sum())(x).tolist() == [12, 18]


class Parts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n, wrong):
        rounded = x.round()
        ctx.mark_non_differentiable(rounded)
        ctx.wrong = wrong
        return x * 2, rounded, n + 1

    @staticmethod
    def jvp(ctx, tangent, n, _):
        assert n is None
        return tangent * 2, tangent if ctx.wrong else None, None


def test_results_that_are_not_differentiable_have_no_tangent() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        y, rounded, n = Parts.apply(x, torch.tensor(3), False)
        assert forward_ad.unpack_dual(y).tangent.tolist() == [2, 2] and n.item() == 4
        assert forward_ad.unpack_dual(rounded).tangent is None
        with pytest.raises(RuntimeError, match="should return None at that position"):
            Parts.apply(x, torch.tensor(3), True)
