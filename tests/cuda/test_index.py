"""Indexing, sorting and searching on CUDA beyond the samples: several blocks and passes, every
dtype, layouts, duplicates and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as rl

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

FLOATS = [rl.float32, rl.float64, rl.float16, rl.bfloat16]
INTEGERS = [rl.int64, rl.int32, rl.int16, rl.int8, rl.uint8, rl.bool]
DTYPES = [*FLOATS, *INTEGERS]


def numbers(seed: int, *shape: int, dtype: Any = rl.float32) -> Any:
    """Numbers with ties; small enough that sums are exact in every float dtype."""
    drawn = np.random.default_rng(seed).integers(-8, 8, shape)
    return rl.tensor(drawn).to(dtype)


def places(seed: int, end: int, *shape: int) -> Any:
    return rl.tensor(np.random.default_rng(seed).integers(0, end, shape))


def assert_equal(on_cuda: Any, on_cpu: Any) -> None:
    assert on_cuda.device.type == "cuda"
    assert on_cuda.dtype is on_cpu.dtype
    assert on_cuda.shape == on_cpu.shape
    mine, reference = on_cuda.cpu(), on_cpu
    if mine.dtype is rl.bfloat16:
        mine, reference = mine.float(), reference.float()
    np.testing.assert_array_equal(mine.numpy(), reference.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_the_last_of_several_values_is_written_and_all_are_added(dtype, accumulate) -> None:
    x, index = numbers(0, 40, 3, dtype=dtype), places(1, 40, 2500)
    values = numbers(2, 2500, 3, dtype=dtype)
    if accumulate:
        values = (values % 2).to(dtype)
    mine = x.cuda().index_put_((index.cuda(),), values.cuda(), accumulate)
    assert_equal(mine, x.index_put_((index,), values, accumulate))


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 8, 12])
@pytest.mark.parametrize("dtype", [rl.float32, rl.uint8, rl.complex128])
def test_rows_of_any_width_move(dtype, columns) -> None:
    x, index = numbers(0, 30, columns).to(dtype), places(1, 30, 77)
    assert_equal(x.cuda()[index.cuda()], x[index])
    for start in (0, 1):  # what does not begin at a multiple of a vector
        assert_equal(x.cuda()[start:][index.cuda() // 2], x[start:][index // 2])
    mine, reference = x.cuda(), x.clone()
    rows = numbers(2, 77, columns).to(dtype)
    mine[index.cuda()] = rows.cuda()
    reference[index] = rows
    assert_equal(mine, reference)


def test_indices_stand_anywhere_and_in_any_layout() -> None:
    x = numbers(0, 5, 6, 7, 8)
    a, b = places(1, 5, 4, 1), places(2, 5, 3)
    mask = x[:, :, 0, 0] > 0
    for key in [
        np.s_[:, a],
        np.s_[:, :, a, b],
        np.s_[a, :, b],
        np.s_[..., a - 5],
        np.s_[mask],
        np.s_[:, a, :, b],
        np.s_[a.T, 1:3],
    ]:
        keys = key if isinstance(key, tuple) else (key,)
        there = tuple(k.cuda() if isinstance(k, rl.Tensor) else k for k in keys)
        for view in (lambda t: t, lambda t: t.transpose(0, 1).contiguous().transpose(0, 1)):
            assert_equal(view(x.cuda())[there], view(x)[keys])
        assert_equal(x.cuda()[keys], x[keys])  # indices may be on the CPU
        mine, reference = x.cuda(), x.clone()
        mine[there] = -1.5
        reference[keys] = -1.5
        assert_equal(mine, reference)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter_reduces(reduce, dim) -> None:
    x, src = numbers(0, 30, 40, dtype=rl.float64), numbers(1, 30, 40, dtype=rl.float64)
    index = places(2, 30, 30, 40)
    mine = x.cuda().scatter_reduce(dim, index.cuda(), src.cuda(), reduce)
    assert_equal(mine, x.scatter_reduce(dim, index, src, reduce))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (300, 5), (3, 2048), (2, 2049), (10001,)])
@pytest.mark.parametrize("descending", [False, True])
def test_sorts_are_stable(dtype, shape, descending) -> None:
    x = numbers(0, *shape, dtype=dtype)
    values, indices = x.cuda().sort(descending=descending)
    expected_values, expected_indices = x.sort(descending=descending)
    assert_equal(values, expected_values)
    assert_equal(indices, expected_indices)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.float16, rl.bfloat16, rl.int64])
@pytest.mark.parametrize("length", [900, 9000])
def test_sorts_any_bits(dtype, length) -> None:
    """Infinities, NaN, zeros of both signs and numbers of every magnitude."""
    rng = np.random.default_rng(0)
    if dtype is rl.int64:
        x = rl.tensor(rng.integers(-(2**63), 2**63 - 1, length))
    else:
        drawn = rng.normal(size=length) * 10.0 ** rng.integers(-6, 6, length)
        drawn[:: length // 9] = [np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, np.nan, -0.0, 0.0, 0.0][
            : len(drawn[:: length // 9])
        ]
        x = rl.tensor(drawn).to(dtype)
    for descending in (False, True):
        assert_equal(x.cuda().argsort(descending=descending), x.argsort(descending=descending))


def test_sorts_along_any_dim() -> None:
    x = numbers(0, 4, 2100, 3)
    for dim in (0, 1, 2):
        assert_equal(x.cuda().sort(dim)[1], x.sort(dim)[1])
        assert_equal(x.cuda().topk(3, dim)[1], x.topk(3, dim)[1])
        assert_equal(x.transpose(0, 2).cuda().sort(dim)[0], x.transpose(0, 2).sort(dim)[0])
    assert_equal(x.cuda().kthvalue(1000, 1)[0], x.kthvalue(1000, 1)[0])


@pytest.mark.parametrize("dtype", [rl.float32, rl.int64, rl.bfloat16])
def test_unique_and_searches(dtype) -> None:
    x = numbers(0, 50, 70, dtype=dtype)
    mine = rl.unique(x.cuda(), return_inverse=True, return_counts=True)
    for on_cuda, on_cpu in zip(
        mine, rl.unique(x, return_inverse=True, return_counts=True), strict=True
    ):
        assert_equal(on_cuda, on_cpu)
    rows, _ = x.sort()
    for right in (False, True):
        assert_equal(
            rl.searchsorted(rows.cuda(), x.cuda(), right=right),
            rl.searchsorted(rows, x, right=right),
        )
        assert_equal(
            rl.bucketize(x.cuda(), rows[0].cuda(), right=right),
            rl.bucketize(x, rows[0], right=right),
        )


@pytest.mark.parametrize("shape", [(), (0, 3), (5000,), (13, 11, 40)])
def test_nonzero_lists_places_in_order(shape) -> None:
    x = numbers(0, *shape) * (numbers(1, *shape) > 3)
    assert_equal(x.cuda().nonzero(), x.nonzero())
    if shape:
        assert_equal(x.cuda()[x.cuda() != 0], x[x != 0])
        assert_equal(x.cuda().masked_select(x.cuda() > 1), x.masked_select(x > 1))


def test_bins_and_classes_are_counted() -> None:
    x = places(0, 9, 4000)
    assert_equal(x.cuda().bincount(), x.bincount())
    weights = numbers(1, 4000)
    assert_equal(x.cuda().bincount(weights.cuda()), x.bincount(weights))
    one_hot = rl.nn.functional.one_hot
    assert_equal(one_hot(x[:50].cuda()), one_hot(x[:50]))
    with pytest.raises(RuntimeError, match="Class values must be non-negative.*, got -2"):
        one_hot(x[:50].cuda() - 2)


def test_an_embedding_learns() -> None:
    weight, index = numbers(0, 50, 16), places(1, 50, 8, 300)
    gradients = []
    for device in ("cpu", "cuda"):
        table = weight.detach().to(device).requires_grad_()
        rows = rl.nn.functional.embedding(index.to(device), table, padding_idx=3)
        rows.backward(numbers(2, 8, 300, 16).to(device))
        gradients.append(table.grad)
    assert_equal(gradients[1], gradients[0])


def test_adding_is_the_same_in_every_run() -> None:
    drawn = np.random.default_rng(0).normal(size=(6000, 2)).astype(np.float32)
    values, index = rl.tensor(drawn).cuda(), places(1, 5, 6000).cuda()
    sums = [rl.zeros(5, 2, device="cuda").index_add_(0, index, values) for _ in range(2)]
    assert_equal(sums[0], sums[1].cpu())
    expected = rl.zeros(5, 2).index_add_(0, index.cpu(), values.cpu())
    np.testing.assert_allclose(sums[0].cpu().numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "ends", [[200], [63, 200], [64, 200], [65, 128, 200], [1, 64, 65, 193, 200]]
)
def test_long_runs_are_added_in_parts(ends) -> None:
    """Runs of equal indices that begin and end at, before and behind the borders of chunks."""
    lengths = np.diff([0, *ends])
    index, values = rl.tensor(np.repeat(np.arange(len(ends)), lengths)), numbers(0, 3, 200, 2)
    mine = numbers(1, 3, len(ends), 2).cuda().index_add_(1, index.cuda(), values.cuda())
    assert_equal(mine, numbers(1, 3, len(ends), 2).index_add_(1, index, values))


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (
            lambda x, i: x[i + 9],
            IndexError,
            "index 11 is out of bounds for dimension 0 with size 4",
        ),
        (lambda x, i: x[:, i - 9], IndexError, "index -9 is out of bounds for dimension 1"),
        (lambda x, i: x.gather(0, i[None] - 1), IndexError, "index -1 is out of bounds"),
        (
            lambda x, i: x.scatter(0, i[None] + 3, x),
            IndexError,
            "index 5 is out of bounds for dimension 0 with size 4",
        ),
        (
            lambda x, i: rl.nn.functional.embedding(i + 2, x),
            IndexError,
            r"index 4 at position \(2,\) is out of range for 4 rows",
        ),
        (lambda x, i: x.gather(0, i[None].cpu()), RuntimeError, "on the same device"),
        (lambda x, i: x.cpu()[i], RuntimeError, "indices should be either on cpu or on the same"),
    ],
)
def test_a_mistake_is_told_and_does_no_harm(mistake, error, message) -> None:
    x = numbers(0, 4, 3).cuda()
    with pytest.raises(error, match=message):
        mistake(x, rl.arange(3, device="cuda"))
    assert_equal(x + 0, numbers(0, 4, 3))


def test_meta_tensors_carry_shapes() -> None:
    x, index = rl.empty(4, 5, device="meta"), rl.zeros(7, dtype=rl.int64, device="meta")
    assert x[index].shape == (7, 5)
    assert x[:, index].shape == (4, 7)
    assert x.gather(1, rl.zeros(4, 2, dtype=rl.int64, device="meta")).shape == (4, 2)
    assert x.index_add(0, index, rl.empty(7, 5, device="meta")).shape == (4, 5)
    assert x.sort()[1].dtype is rl.int64
    assert x.topk(2)[0].shape == (4, 2)
    assert rl.nn.functional.embedding(index, x).shape == (7, 5)
    assert rl.searchsorted(x, x).shape == (4, 5)
    assert x.tril().shape == x.flip(0).shape == x.roll(1, 0).shape == (4, 5)
    x[index] = 1
    with pytest.raises(NotImplementedError, match="whose shape would depend on values"):
        x.nonzero()
