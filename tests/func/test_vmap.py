"""Indexing, writing and nesting inside vmap against loops over the samples."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.func import grad, jacfwd, jacrev, jvp, vmap

COUNT = 3
RNG = np.random.default_rng(17)


@pytest.fixture(autouse=True)
def no_loops() -> Iterator[None]:
    """Nothing here runs sample by sample."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*batching rule.*")
        yield


def batch(*shape: int) -> Any:
    return torch.tensor(RNG.normal(size=(COUNT, *shape)))


def places(size: int, *shape: int) -> Any:
    """Index tensors for a dim of this size, some counted from the end."""
    return torch.tensor(RNG.integers(-size, size, size=(COUNT, *shape)))


def masks(*shape: int) -> Any:
    return torch.tensor(RNG.random(size=(COUNT, *shape)) < 0.5)


def check(f: Callable[..., Any], *args: Any, in_dims: Any = 0) -> None:
    """vmap(f) equals f of each sample."""
    dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
    mapped = vmap(f, in_dims=in_dims)(*args)
    looped = torch.stack(
        [
            f(*(a if d is None else a.select(d, k) for a, d in zip(args, dims, strict=True)))
            for k in range(COUNT)
        ]
    )
    assert mapped.shape == looped.shape
    assert mapped.dtype == looped.dtype
    np.testing.assert_allclose(mapped.numpy(), looped.numpy(), rtol=1e-12, atol=1e-12)


BASIC: list[Any] = [
    0,
    -1,
    ...,
    None,
    slice(None),
    slice(1, None, 2),
    slice(None, -1),
    (0, 1),
    (slice(None), 2),
    (..., None),
    (..., 0),
    (None, ..., slice(0, 2)),
    (1, slice(None, None, 3), None, -1),
    True,
    False,
]


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_basic_indexing(index: Any) -> None:
    check(lambda x: x[index], batch(3, 4, 5))


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_writing_by_basic_indexing(index: Any) -> None:
    def f(x: Any, value: Any) -> Any:
        x = x.clone()
        x[index] = value
        return x

    check(f, batch(3, 4, 5), batch())
    check(f, batch(3, 4, 5), batch()[0], in_dims=(0, None))


# How an index is made of two index tensors; NumPy's rule for the place of their dims has a case
# for each.
FORMS: list[Callable[[Any, Any], Any]] = [
    lambda i, _: i,
    lambda i, j: (i, j),
    lambda i, _: (slice(None), i),
    lambda i, j: (slice(None), i, j),
    lambda i, j: (i, slice(None), j),
    lambda i, j: (i, None, j),
    lambda i, _: (..., i),
    lambda i, j: (..., i, slice(None), j),
    lambda i, _: (0, i),
    lambda i, _: (i, 0),
    lambda i, _: (slice(None), 0, i),
    lambda i, j: (None, i, slice(1, None), j),
]


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
@pytest.mark.parametrize("shape", [(), (2,), (2, 1)], ids=str)
@pytest.mark.parametrize(
    "has", [(0, 0, 0), (0, None, None), (None, 0, 0), (0, 0, None), (0, None, 0)]
)
def test_index_tensors(form: Callable[[Any, Any], Any], shape: Any, has: Any) -> None:
    x, i, j = batch(3, 4, 5), places(3, *shape), places(3, *shape[:1])
    args = tuple(t if d == 0 else t[0] for t, d in zip((x, i, j), has, strict=True))

    def read(x: Any, i: Any, j: Any) -> Any:
        return x[form(i, j)]

    def write(x: Any, i: Any, j: Any, value: Any) -> Any:
        x = x.clone() if has[0] == 0 else x.new_zeros(x.shape) + x + 0 * i.sum() + 0 * j.sum()
        x[form(i, j)] = value
        return x

    def add(x: Any, i: Any, j: Any, value: Any) -> Any:
        x = x.clone() if has[0] == 0 else x + 0 * i.sum() + 0 * j.sum()
        picked = x[form(i, j)]
        x[form(i, j)] = picked * value
        return x

    check(read, *args, in_dims=has)
    for f in (write, add):
        check(f, *args, batch(), in_dims=(*has, 0))
        check(f, *args, batch()[0], in_dims=(*has, None))


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_gradients_through_index_tensors(form: Callable[[Any, Any], Any]) -> None:
    x, i, j = batch(3, 4, 5), places(3, 2), places(3, 2)

    def f(x: Any, i: Any, j: Any) -> Any:
        return (x[form(i, j)] ** 3).sum()

    def written(x: Any, i: Any, j: Any) -> Any:
        y = x * 2
        y[form(i, j)] = x[form(j, i)] ** 2
        return (y**2).sum()

    for g in (f, written):
        check(grad(g), x, i, j)
        check(lambda x, i, j, g=g: jvp(lambda t: g(t, i, j), (x,), (x.cos(),))[1], x, i, j)


def test_jacobians_of_indexing() -> None:
    x, i = batch(4)[0], places(4, 3)[0]

    def f(x: Any) -> Any:
        y = x.sin()
        y[0] = x[1] * x[2]
        y[i] = y[i] * x[:3]
        return y

    np.testing.assert_allclose(jacrev(f)(x).numpy(), jacfwd(f)(x).numpy(), atol=1e-12)


def test_masks_that_are_the_same_for_all() -> None:
    mask = masks(3, 4)[0]
    check(lambda x: x[mask], batch(3, 4, 5))
    check(lambda x: x[0][mask[0]], batch(3, 4, 5))
    check(lambda x: x.masked_fill(mask, 2.0), batch(3, 4))
    check(lambda x, v: x.masked_fill(mask, v), batch(3, 4), batch())
    check(lambda x, v: x.masked_fill_(x > 0, v), batch(3, 4).clone(), batch())
    check(lambda x, v: x.masked_fill(mask, v), batch(4), batch())

    def write(x: Any, value: Any) -> Any:
        x = x.clone()
        x[mask] = value
        return x

    check(write, batch(3, 4, 5), batch(5))


def test_masks_of_each_sample_write_one_value() -> None:
    def write(x: Any, mask: Any, value: Any) -> Any:
        x = x.clone()
        x[mask] = value
        return x

    def write_behind(x: Any, mask: Any, value: Any) -> Any:
        x = x.clone()
        x[:, mask] = value
        return x

    x = batch(3, 4, 5)
    check(write, x, masks(3), batch())
    check(write, x, masks(3, 4), batch(5))
    check(write, x, masks(3, 4), batch(1, 5))
    check(write, x, masks(3, 4, 5), batch()[0], in_dims=(0, 0, None))
    check(write, x, masks(), batch(5))
    check(write_behind, x, masks(4), batch())
    check(write_behind, x, masks(4), batch(5))
    check(write_behind, x, masks(4), batch(3, 1, 5))
    check(write_behind, x, masks(4, 5), batch(3, 1))
    with pytest.raises(RuntimeError, match="takes one value"):
        vmap(write_behind)(x, masks(4), batch(3, 2, 5))


def test_masks_of_each_sample_write_as_many_values_as_they_have_elements() -> None:
    def write(x: Any, mask: Any, value: Any) -> Any:
        x = x.clone()
        x[mask] = value
        return x

    rows = torch.tensor(np.array([RNG.permutation(6) < 4 for _ in range(COUNT)]))
    check(write, batch(6, 2), rows, batch(4, 2))
    check(write, batch(2, 3), rows.reshape(COUNT, 2, 3), batch(4))
    check(write, batch(2, 3), rows.reshape(COUNT, 2, 3), batch(4)[0], in_dims=(0, 0, None))
    check(lambda x, m, v: x.masked_scatter(m, v), batch(6), rows, batch(5))


def test_masks_of_each_sample_pick_nothing() -> None:
    with pytest.raises(RuntimeError, match=r"torch\.where"):
        vmap(lambda x, mask: x[mask])(batch(4), masks(4))
    with pytest.raises(RuntimeError, match=r"torch\.where"):
        vmap(lambda x: x[x > 0])(batch(4))


def test_nested_vmap() -> None:
    x, i = batch(4, 5), places(4, 2)
    check(lambda x, i: vmap(lambda row, k: row[k], in_dims=(1, None))(x, i), x, i)
    check(lambda x, i: vmap(lambda row, k: row[k], in_dims=(None, 0))(x, i), x, i)
    check(lambda x: vmap(lambda y: vmap(lambda z: z * y.sum())(y))(x), x)

    def write(row: Any, k: Any) -> Any:
        row = row.clone()
        row[k] = row[0]
        return row

    check(lambda x, i: vmap(write, in_dims=(1, None))(x, i), x, i)


@pytest.mark.parametrize("in_dim", [0, 1, 2, -1])
@pytest.mark.parametrize("out_dim", [0, 1, -1])
def test_dims_of_samples(in_dim: int, out_dim: int) -> None:
    x = torch.tensor(RNG.normal(size=(4, 4, 4)))
    mapped = vmap(lambda t: t[1:] * 2, in_dims=in_dim, out_dims=out_dim)(x)
    looped = torch.stack([x.select(in_dim, k)[1:] * 2 for k in range(4)], dim=out_dim)
    np.testing.assert_array_equal(mapped.numpy(), looped.numpy())


def test_dims_in_the_structure_of_arguments() -> None:
    x, y = batch(2), batch(2).T
    sums, shared = vmap(
        lambda d, scale: (d["x"] + d["y"] * scale, scale * 2),
        in_dims=({"x": 0, "y": 1}, None),
        out_dims=(1, None),
    )({"x": x, "y": y}, torch.tensor(3.0))
    np.testing.assert_allclose(sums.numpy(), (x + y.T * 3).T.numpy())
    assert shared.item() == 6


def test_writing_to_what_has_samples() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y[0].add_(x[1])
        y[1:].mul_(2)
        y.t()[0] += 1
        y.diagonal().fill_(3)
        return y

    check(f, batch(3, 3))


def test_writing_to_the_argument_writes_all_samples() -> None:
    x = batch(4)
    expected = x.numpy().copy()
    expected[:, 0] = 7
    expected *= 2

    def f(x: Any) -> Any:
        x[0] = 7
        return x.mul_(2)

    vmap(f)(x)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_samples_keep_tangents_and_history() -> None:
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    _, along = jvp(vmap(torch.sin), (x.detach(),), (torch.ones(2),))
    assert torch.equal(along, x.detach().cos())
    (gradient,) = torch.autograd.grad(vmap(torch.sin)(x).sum(), x)
    assert torch.equal(gradient, x.detach().cos())


def test_requires_grad_is_not_set_on_the_tensor_of_the_caller() -> None:
    x = torch.ones(2, 3)
    gradient = vmap(lambda x: torch.autograd.grad((x.requires_grad_() ** 2).sum(), x)[0])(x)
    assert gradient.tolist() == [[2.0] * 3] * 2
    assert not x.requires_grad


def test_writing_samples_to_what_is_shared_is_refused() -> None:
    shared = torch.zeros(4)

    def write(x: Any) -> Any:
        shared[0] = x
        return shared

    with pytest.raises(RuntimeError, match="same for all samples"):
        vmap(write)(batch())
    with pytest.raises(RuntimeError, match="same for all samples"):
        vmap(shared.add_)(batch(4))
    with pytest.raises(RuntimeError, match="same for all samples"):
        vmap(lambda i: shared.index_fill_(0, i, 1.0))(places(4, 2))
    assert not shared.any()


def test_new_tensors_have_samples() -> None:
    def f(x: Any) -> Any:
        made = [torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 2.0)]
        made += [x.new_zeros(x.shape), x.new_full(x.shape, 3.0), torch.empty_like(x)]
        made[-1].fill_(1)
        for k, t in enumerate(made):
            t[k % 2] = x[1] * k
        return torch.stack(made)

    check(f, batch(2, 3))


def test_tangents_have_memory_of_their_own() -> None:
    x, along = batch(4)[0], torch.ones(4, dtype=torch.float64)

    def f(x: Any) -> Any:
        y = x.clone()
        y.fill_(2.0)
        z = x + x[0]
        z[1:] = y[1:]
        return z

    _, slope = jvp(f, (x,), (along,))
    np.testing.assert_array_equal(slope.numpy(), [2, 0, 0, 0])
    np.testing.assert_array_equal(along.numpy(), 1)


def test_shape_changes_in_place() -> None:
    check(lambda x: x.clone().unsqueeze_(0).transpose_(1, 2).squeeze_(0) * 2, batch(2, 3))


def test_no_samples_and_one() -> None:
    for count in (0, 1):
        x = torch.zeros(count, 4, dtype=torch.float64)
        i = torch.zeros(count, 2, dtype=torch.int64)
        assert vmap(lambda x, i: x[i])(x, i).shape == (count, 2)
        assert vmap(lambda x, i: x.index_fill(0, i, 1.0))(x, i).shape == (count, 4)


def test_a_large_temporary_is_not_written_with_samples() -> None:
    shared, samples = torch.ones(100_000), torch.arange(2.0)[:, None].expand(2, 100_000)
    mapped = torch.func.vmap(lambda a: (shared * 2) + a)(samples)
    assert mapped[:, 0].tolist() == [2, 3]


def test_a_tensor_inside_gives_no_memory() -> None:
    def view(a: torch.Tensor) -> torch.Tensor:
        with pytest.raises(BufferError, match="inside vmap"):
            memoryview(a)
        with pytest.raises(RuntimeError, match="inside vmap"):
            a.numpy()
        with pytest.raises(BufferError, match="inside vmap"):
            np.from_dlpack(a)
        assert a.data_ptr() == 0
        return a

    assert torch.func.vmap(view)(torch.ones(2, 3)).shape == (2, 3)


def test_a_tensor_inside_is_no_data_of_another() -> None:
    outside = torch.zeros(3)

    def f(row: Any) -> Any:
        with pytest.raises(RuntimeError, match="inside vmap"):
            outside.data = row
        with pytest.raises(RuntimeError, match="inside vmap"):
            row.data = outside
        return row

    vmap(f)(batch(1000))
    assert outside.tolist() == [0, 0, 0]


def test_a_tensor_inside_is_copied() -> None:
    copied = torch.func.vmap(lambda a: copy.deepcopy(a) * 2)(torch.ones(2, 3))
    assert copied.tolist() == [[2, 2, 2]] * 2


@pytest.mark.parametrize("op", [torch.mm, torch.dot])
def test_products_want_samples_of_their_rank(op: Any) -> None:
    for shapes in (((2,), (2, 2)), ((2, 2), (2,)), ((3, 2, 2), (2, 2)), ((3, 2, 2), (3, 2, 2))):
        with pytest.raises(RuntimeError, match="D tensors expected"):
            vmap(op)(*(batch(*shape) for shape in shapes))
    with pytest.raises(RuntimeError, match="D tensors expected"):
        vmap(op, in_dims=(0, None))(batch(), torch.ones(3, 3))


class Taken(torch.autograd.Function):
    """One element, by default that at 1."""

    @staticmethod
    def forward(x: Any, place: int = 1) -> Any:
        return x[place]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.place = inputs
        ctx.shape = x.shape

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        result = grad.new_zeros(ctx.shape)
        result[ctx.place] = grad
        return result, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, _: Any) -> Any:
        return tangent[ctx.place]

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, place: Any) -> Any:
        assert in_dims == (0, None)
        return Taken.apply(x.movedim(0, 1), place), 0


def test_a_function_of_the_program_has_its_defaults() -> None:
    x = batch(4)
    assert torch.equal(vmap(Taken.apply)(x), x[:, 1])
    assert torch.equal(vmap(lambda row: Taken.apply(row, place=2))(x), x[:, 2])
    assert torch.equal(jvp(Taken.apply, (x[0],), (x[1],))[1], x[1, 1])
    assert torch.equal(grad(Taken.apply)(x[0]), torch.eye(4, dtype=x.dtype)[1])


class Times(torch.autograd.Function):
    """A product whose gradients have the broadcast shape."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, y = ctx.saved_tensors
        return grad * y, grad * x


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_gradients_of_a_generated_rule_are_summed_to_the_shape_of_a_sample(in_dims: Any) -> None:
    x = batch(4) if in_dims[0] == 0 else torch.randn(4, dtype=torch.float64)
    y = batch(2, 4) if in_dims[1] == 0 else torch.randn(2, 4, dtype=torch.float64)

    def gradients(x: Any, y: Any, function: Any) -> Any:
        return grad(lambda x, y: function(x, y).square().sum(), argnums=(0, 1))(x, y)

    mine = vmap(lambda x, y: gradients(x, y, Times.apply), in_dims=in_dims)(x, y)
    theirs = vmap(lambda x, y: gradients(x, y, torch.mul), in_dims=in_dims)(x, y)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b)


def test_gather_takes_numbers_for_vectors_of_one_element() -> None:
    number, vector, nothing = batch(), batch(1), torch.zeros(COUNT, dtype=torch.int64)
    for x, index in itertools.product((number, vector), (nothing, nothing[:, None])):
        picked = vmap(lambda x, index: torch.gather(x, 0, index))(x, index)
        assert picked.shape == index.shape and torch.equal(picked.flatten(), x.flatten())


def test_samples_of_nothing_join_with_all() -> None:
    nothing, rows = torch.ones(5, 0), torch.arange(30.0).reshape(5, 2, 3)
    joined = torch.vmap(lambda *parts: torch.cat(parts, 1))(nothing, rows, nothing)
    assert torch.equal(joined, rows)
    assert torch.vmap(lambda a, b: torch.cat([a, b]))(nothing, nothing).shape == (5, 0)
    whole = torch.vmap(lambda a, b: torch.cat([a, b], -1), in_dims=(0, None))(rows, torch.ones(0))
    assert torch.equal(whole, rows)
    slopes = torch.vmap(torch.func.grad(lambda a, b: torch.cat([a, b]).sum(), argnums=(0, 1)))
    assert [g.shape for g in slopes(nothing, rows[:, 0])] == [(5, 0), (5, 3)]


def test_what_is_written_to_a_view_of_samples_has_a_gradient_in_the_base() -> None:
    def filled(x: torch.Tensor) -> torch.Tensor:
        out = x.new_ones(2, 2)
        out[0][1] = x[0] * x[1]
        return out

    def changed(x: torch.Tensor) -> torch.Tensor:
        return filled(x).sin_().mul_(x)

    def seen_by_another_view(x: torch.Tensor) -> torch.Tensor:
        out = x.new_ones(2, 2)
        row = out[0]
        out.copy_(x.expand(2, 2))
        return row

    x = batch(2)
    expected = torch.eye(2, dtype=x.dtype).expand(len(x), 2, 2)
    assert torch.equal(torch.vmap(torch.func.jacrev(seen_by_another_view))(x), expected)
    for f in (filled, changed):
        expected = torch.stack([torch.func.jacrev(f)(row) for row in x])
        for jacobian in (torch.func.jacrev, torch.func.jacfwd):
            torch.testing.assert_close(torch.vmap(jacobian(f))(x), expected)
