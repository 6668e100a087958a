"""Sizes at which loops take another way: short rows, several runs of one result, small products,
index tensors with one column, and quotients too large for one division; NumPy is the oracle.
"""

from typing import Any

import numpy as np
import pytest
from ops.matrix import ROWS, SAMPLED, call, each_sample, tensors_in
from samples import Sample

import rushlight as torch

rng = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def agrees(actual: torch.Tensor, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("inner", [1, 2, 7, 49, 64, 100, 255, 256, 300, 1030])
def test_broadcast_along_rows_and_columns(inner: int) -> None:
    x, column, row, image = normal(50, 37, inner), normal(37, 1), normal(inner), normal(50, 1, 1)
    t = torch.tensor(x)
    assert np.array_equal((t * torch.tensor(column)).numpy(), x * column)
    assert np.array_equal((t * torch.tensor(row)).numpy(), x * row)
    assert np.array_equal((t * torch.tensor(image)).numpy(), x * image)
    both = t.double() * torch.tensor(column) + torch.tensor(row)  # cast on the way
    agrees(both, x.astype(float) * column + row)
    t[:, ::2] -= torch.tensor(row)
    x[:, ::2] -= row
    assert np.array_equal(t.numpy(), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "float64"])
@pytest.mark.parametrize("inner", [5, 20, 70, 256, 300])
def test_broadcast_elements_count_as_often_as_they_are_needed(inner: int, dtype: str) -> None:
    x, column = (torch.randint(1, 9, (37, n)).to(getattr(torch, dtype)) for n in (inner, 1))
    whole = column.expand(37, inner).contiguous()
    for op in (torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.lt):
        assert torch.equal(op(x, column), op(x, whole))
        assert torch.equal(op(column, x), op(whole, x))
        assert torch.equal(op(x, column[0]), op(x, column[0, 0].expand(37, inner).contiguous()))


@pytest.mark.parametrize("n", [1, 3, 8, 21, 700])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_what_lies_between_elements_is_left_alone(dtype: str, n: int) -> None:
    pairs = torch.randint(-9, 9, (3, n, 2)).to(getattr(torch, dtype))
    x, before = pairs[..., 0], pairs.clone()
    x += before[..., 1]
    assert torch.equal(x, before[..., 0] + before[..., 1])
    x.copy_(before[..., 0].contiguous())
    assert torch.equal(pairs, before)
    x.fill_(7)
    assert (x == 7).all()
    assert torch.equal(pairs[..., 1], before[..., 1])


@pytest.mark.parametrize("n", [7, 8, 13, 16, 32, 64, 77, 128, 203])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int32"])
def test_digits_of_a_row_do_not_depend_on_the_rows_around_it(dtype: str, n: int) -> None:
    x = (torch.randn(37, n) * 9).to(getattr(torch, dtype))
    if x.is_floating_point():
        x[5, n // 2] = x[20, 0] = x[36, n - 1] = float("nan")
    names = "sum amax amin prod" + (" mean norm nansum" if x.is_floating_point() else "")
    for name in names.split():
        together = getattr(x, name)(dim=1)
        alone = torch.cat([getattr(row, name)(dim=1) for row in x.split(1)])
        assert torch.equal(together.nan_to_num(3), alone.nan_to_num(3)), name


@pytest.mark.parametrize("inner", [3, 33, 64, 70, 784, 9000])
@pytest.mark.parametrize("name", ["sum", "amax", "mean", "var", "logsumexp"])
def test_reductions_over_several_runs(name: str, inner: int) -> None:
    x = normal(40, 5, inner)
    actual = getattr(torch.tensor(x), name)(dim=(0, 2))
    wide = x.astype(float)
    expected = {
        "sum": lambda: wide.sum((0, 2)),
        "amax": lambda: wide.max((0, 2)),
        "mean": lambda: wide.mean((0, 2)),
        "var": lambda: wide.var((0, 2), ddof=1),
        "logsumexp": lambda: np.log(np.exp(wide).sum((0, 2))),
    }[name]()
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (3, 1, 3), (3, 3, 3), (1, 1, 64), (1, 1, 513)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batches_of_small_products(m: int, n: int, k: int, dtype: str) -> None:
    a, b = normal(300, m, k).astype(dtype), normal(300, k, n).astype(dtype)
    expected = a.astype(float) @ b.astype(float)
    left, right = torch.tensor(a), torch.tensor(b)
    agrees(left @ right, expected, 1e-4)
    agrees(left.mT.contiguous().mT @ right.mT.contiguous().mT, expected, 1e-4)
    agrees(left @ right[:1].expand(300, -1, -1), a @ b[:1], 1e-4)


@pytest.mark.parametrize("columns", [8, 24, 33, 56, 63])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_many_rows_of_few_columns(columns: int, dtype: str) -> None:
    x = rng.integers(-9, 10, (3, 50, 11, columns)).astype(dtype)
    assert np.array_equal(torch.tensor(x).sum((1, 2)).numpy(), x.sum((1, 2)))
    assert np.array_equal(torch.tensor(x)[..., 1:].amax((1, 2)).numpy(), x[..., 1:].max((1, 2)))


@pytest.mark.parametrize("m", [8, 33, 128])
@pytest.mark.parametrize(("n", "k"), [(512, 48), (1024, 20), (40, 1024), (513, 1023)])
def test_products_of_rows_at_distances_of_powers_of_two(m: int, n: int, k: int) -> None:
    a, b, row = (rng.integers(-3, 4, size).astype("float32") for size in [(m, k), (k, n), (n,)])
    for left in (torch.tensor(a), torch.tensor(a.T.copy()).t()):
        for right in (torch.tensor(b), torch.tensor(b.T.copy()).t()):
            assert np.array_equal((left @ right).numpy(), a @ b)
            plus = torch.addmm(torch.tensor(row), left, right, beta=2, alpha=0.5)
            assert np.array_equal(plus.numpy(), 2 * row + a @ b / 2)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_indices_with_dims_of_size_one(dim: int) -> None:
    x = normal(6, 7, 8)
    for shape in [(6, 7, 1), (6, 1, 1), (1, 7, 1), (1, 1, 8), (1, 1, 1)]:
        places = rng.integers(0, x.shape[dim], shape)
        at = list(np.indices(shape))
        at[dim] = places
        assert np.array_equal(
            torch.tensor(x).gather(dim, torch.tensor(places)).numpy(), x[tuple(at)]
        )
        values, written, added = normal(*shape), x.copy(), x.copy()
        np.add.at(added, tuple(at), values)
        index, source = torch.tensor(places), torch.tensor(values)
        agrees(torch.tensor(x).scatter_add(dim, index, source), added)
        np.maximum.at(written, tuple(at), values)
        most = torch.tensor(x).scatter_reduce(dim, index, source, "amax")
        assert np.array_equal(most.numpy(), written)


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8"])
def test_operands_in_another_order_of_dims(order: tuple[int, ...], dtype: str) -> None:
    x, y, column = (rng.integers(-8, 8, shape).astype(dtype) for shape in [(33, 20, 17)] * 2 + [17])
    other = np.ascontiguousarray(y.transpose(order))
    back = torch.tensor(other).permute([int(d) for d in np.argsort(order)])
    tensor = torch.tensor(x)
    assert np.array_equal((tensor - back).numpy(), x - y)
    assert np.array_equal((back < tensor).numpy(), y < x)
    assert np.array_equal((back[:, :, :1] + tensor).numpy(), y[:, :, :1] + x)
    assert np.array_equal((back[0] * tensor + torch.tensor(column)).numpy(), y[0] * x + column)
    assert np.array_equal(tensor.sub_(back).numpy(), x - y)


@pytest.mark.parametrize("length", [1, 2, 15, 64, 129, 1000])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "complex128"])
def test_copies_of_every_second_and_third_element(dtype: str, length: int) -> None:
    x = (rng.normal(size=(3, length)) * 9).astype(np.int8).astype(dtype)
    t = torch.tensor(x)
    for every in (2, 3):
        for start in range(min(every, length)):
            np.testing.assert_array_equal(t[:, start::every].clone().numpy(), x[:, start::every])
            np.testing.assert_array_equal((t[1, start::every] + 1).numpy(), x[1, start::every] + 1)


@pytest.mark.parametrize("length", [1, 2, 15, 64, 129, 1000])
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64", "complex128"])
def test_stacks_of_two_along_a_new_last_dim(dtype: str, length: int) -> None:
    x = (rng.normal(size=(3, length + 1)) * 9).astype(np.int8).astype(dtype)
    t = torch.tensor(x)
    for a, b in [
        (np.s_[0, 1:], np.s_[1, 1:]),
        (np.s_[2, 1:], np.s_[0, :-1]),
        (np.s_[1, 1:], np.s_[1, :-1]),
        (np.s_[1], np.s_[1]),
        (np.s_[:2], np.s_[1:]),
    ]:
        stacked = torch.stack([t[a], t[b]], -1)
        np.testing.assert_array_equal(stacked.numpy(), np.stack([x[a], x[b]], -1))
    np.testing.assert_array_equal(t[1:].t().contiguous().numpy(), x[1:].T)


@pytest.mark.parametrize("length", [1, 15, 16, 255, 256, 257, 1000])
@pytest.mark.parametrize("name", ["bool", "uint8", "int16", "int32", "int64", "float64"])
def test_conversions_from_and_to_float16(name: str, length: int) -> None:
    x = (normal(length) * 30).astype(name)
    half = torch.tensor(x).to(torch.float16)
    assert np.array_equal(half.numpy(), x.astype(np.float16))
    assert np.array_equal(half.to(getattr(torch, name)).numpy(), x.astype(np.float16).astype(name))


@pytest.mark.parametrize("shape", [(1, 17000), (3, 1), (3, 7), (9, 65), (70, 131), (2, 9000)])
def test_sums_of_bfloat16_are_those_of_its_floats(shape: tuple[int, int]) -> None:
    x = torch.from_numpy(rng.integers(-9, 10, shape).astype(np.float32))
    for floats in (x, x.t().contiguous().t(), x[:, ::2]):
        halves = floats.bfloat16()
        for dims in ((0,), (1,), (0, 1)):
            total = floats.sum(dims)  # exact
            assert torch.equal(halves.sum(dims), total.bfloat16())
            assert torch.equal(halves.sum(dims, dtype=torch.float32), total)
            mean = floats.mean(dims).bfloat16()
            assert torch.equal(halves.mean(dims), mean)


@pytest.mark.parametrize("shape", [(1, 17000), (3, 1), (300, 9), (9, 1025), (2, 2050), (40, 257)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_running_sums_and_products(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    x = torch.from_numpy(1 + normal(*shape) / 64).to(dtype).requires_grad_()
    double = x.detach().double().numpy()
    digits = 1e-6 if dtype is torch.float32 else 2**-8
    for dim in (0, 1):
        for name in ("cumsum", "cumprod"):
            actual = getattr(x.detach(), name)(dim).double().numpy()
            np.testing.assert_allclose(actual, getattr(np, name)(double, dim), rtol=digits)
        x.grad = None
        x.cumsum(dim).sum().backward()  # sums of ones, from the last back
        places = torch.arange(shape[dim], 0, -1).to(dtype)
        assert x.grad is not None
        assert x.grad.movedim(dim, 1).eq(places).all()


def test_extremes_of_rows_keep_nan() -> None:
    x, values = np.zeros((3, 20), "float32"), normal(5, 20)
    values[1, 3] = x[2, 4] = np.nan
    rows = np.array([[0], [1], [1], [2], [2]]).repeat(20, 1)
    for name, merge in [("amax", np.maximum), ("amin", np.minimum)]:
        expected = x.copy()
        merge.at(expected, (rows, np.arange(20)), values)
        index = torch.tensor(rows[:, :1]).expand(-1, 20)
        actual = torch.tensor(x).scatter_reduce(0, index, torch.tensor(values), name)
        assert np.array_equal(actual.numpy(), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact_for_all_quotients(dtype: Any) -> None:
    bits = rng.integers(0, 256, 20000 * np.dtype(dtype).itemsize, dtype=np.uint8)
    special = np.array([np.inf, np.nan, 5, -5, 0, -0.0, 1e38], dtype)
    x = np.concatenate([bits.view(dtype), special])
    wholes = dtype(0.7) * rng.integers(-(1 << 20), 1 << 20, 20000).astype(dtype)
    x = np.concatenate([x, wholes, np.nextafter(wholes, dtype(0))])
    with np.errstate(all="ignore"):
        for y in [0.7, -3.0, 1e-40, 3e38, np.inf, -np.inf, 0.0, np.nan]:
            y = dtype(y)
            actual = torch.fmod(torch.tensor(x), torch.tensor(y)).numpy()
            assert np.array_equal(actual, np.fmod(x, y), equal_nan=True)
            if np.isfinite(y):
                remainder = torch.remainder(torch.tensor(x), torch.tensor(y)).numpy()
                assert np.array_equal(remainder, np.mod(x, y), equal_nan=True)


@pytest.mark.parametrize("keys", [1, 16, 64, 70, 200])
@pytest.mark.parametrize("features", [16, 20, 64])
def test_attention_of_one_query(keys: int, features: int) -> None:
    q, k, v = normal(2, 3, 1, features), normal(2, 3, keys, features), normal(2, 3, keys, features)
    scores = q.astype(float) @ k.swapaxes(-1, -2) / np.sqrt(features)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v
    attention = torch.nn.functional.scaled_dot_product_attention
    agrees(attention(torch.tensor(q), torch.tensor(k), torch.tensor(v)), expected)
    turned = torch.tensor(k.swapaxes(1, 2).copy()).transpose(1, 2)
    agrees(attention(torch.tensor(q), turned, torch.tensor(v)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [n for n in SAMPLED if ROWS[n]["batch"] == "by_elements"])
@each_sample
def test_an_element_does_not_depend_on_its_place(name: str, sample: Sample, dtype: type) -> None:
    shapes = {array.shape for array in sample.arrays()}
    if len(shapes) != 1 or 0 in shapes.pop():
        pytest.skip("broadcasts, or has no elements")

    def stretched(array: np.ndarray) -> np.ndarray:
        return np.resize(array.astype(dtype) if array.dtype == np.float64 else array, 331)

    whole = call(name, sample.map(stretched))
    for part in (slice(0, 1), slice(17, 18), slice(301, 318), slice(1, 331, 7)):
        alone = call(name, sample.map(lambda array, part=part: stretched(array)[part]))
        for every, some in zip(tensors_in(whole), tensors_in(alone), strict=True):
            np.testing.assert_array_equal(every[part].numpy(), some.numpy())


def with_nan(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float32)
    x[rng.random(x.shape) < 0.01] = np.nan
    return x


def running_extreme(x: np.ndarray, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Along the rows; the last of equal elements counts, and NaN is beyond every number."""
    values, places = x.copy(), np.zeros(x.shape, np.int64)
    for i in range(1, x.shape[1]):
        new, last = x[:, i], values[:, i - 1]
        takes = np.isnan(new) | ((new >= last) if largest else (new <= last))
        values[:, i] = np.where(takes, new, last)
        places[:, i] = np.where(takes, i, places[:, i - 1])
    return values, places


@pytest.mark.parametrize("length", [1, 3, 9, 10, 17, 100, 1000])
@pytest.mark.parametrize(
    "kind", ["random", "ascending", "equal", "nan", "int8", "uint8", "int16", "int32", "bool"]
)
def test_running_extremes(kind: str, length: int) -> None:
    x = {
        "random": lambda: normal(5, length),
        "ascending": lambda: np.arange(5.0 * length).reshape(5, length) // 3,
        "equal": lambda: rng.integers(0, 3, (5, length)).astype(np.float64),
        "nan": lambda: with_nan(normal(5, length)),
    }.get(kind, lambda: rng.integers(0, 3, (5, length)).astype(kind))()
    for largest, name in ((True, "cummax"), (False, "cummin")):
        expected = running_extreme(x, largest)
        for t, dim in ((torch.tensor(x), 1), (torch.tensor(x.T.copy()), 0)):
            found = getattr(t, name)(dim)
            for actual, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal((actual if dim else actual.T).numpy(), wanted)


@pytest.mark.parametrize("columns", [1, 3, 5, 16, 33])
@pytest.mark.parametrize("rows", [2, 60, 129, 5000])
def test_extremes_of_few_columns(rows: int, columns: int) -> None:
    equal = rng.integers(0, 4, (rows, columns))
    for x in (normal(rows, columns), equal, equal.astype(np.float64), with_nan(equal)):
        t = torch.tensor(x)
        np.testing.assert_array_equal(t.argmax(0).numpy(), x.argmax(0))
        np.testing.assert_array_equal(t.min(0).indices.numpy(), x.argmin(0))
        np.testing.assert_array_equal(t.max(0).values.numpy(), x.max(0))
        np.testing.assert_array_equal(t.count_nonzero(0).numpy(), np.count_nonzero(x, 0))
        assert t.count_nonzero() == np.count_nonzero(x)


@pytest.mark.parametrize("length", [1, 2, 3, 15, 16, 17, 63, 64, 65])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
def test_short_rows_are_sorted(length: int, dtype: str) -> None:
    x = rng.integers(-5, 6, (40, length)).astype(dtype)
    order = x.argsort(1, kind="stable")
    values, places = torch.tensor(x).sort(stable=True)
    np.testing.assert_array_equal(places.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, 1))
    middle = torch.tensor(x).median(1).values.numpy()
    np.testing.assert_array_equal(middle, values.numpy()[:, (length - 1) // 2])
    largest = np.sort(x, 1)[:, ::-1][:, :2]
    np.testing.assert_array_equal(torch.tensor(x).topk(min(2, length)).values.numpy(), largest)
    for row, mode, place in zip(x, *torch.tensor(x).mode(), strict=True):
        found, counts = np.unique(row, return_counts=True)
        assert mode.item() == found[counts.argmax()]
        assert place.item() == np.flatnonzero(row == mode.item())[-1]


@pytest.mark.parametrize("length", [100, 1000])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_long_rows_of_integers_are_sorted(dtype: str, length: int) -> None:
    info = np.iinfo(dtype)
    for low, high in [(-3, 4), (-100, 100), (100, 520), (info.min, info.max)]:
        x = rng.integers(max(low, info.min), min(high, info.max), length).astype(dtype)
        for row in (x, x // 16 * 16, np.append(x, [info.min, info.max]).astype(dtype)):
            t, order = torch.tensor(row), row.argsort(kind="stable")
            np.testing.assert_array_equal(t.argsort(stable=True).numpy(), order)
            np.testing.assert_array_equal(t.sort().values.numpy(), row[order])
            np.testing.assert_array_equal(
                t.argsort(descending=True, stable=True).numpy(),
                (info.max - row.astype(object)).argsort(kind="stable"),
            )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("length", [70, 600, 5000])
@pytest.mark.parametrize("kind", ["wide", "close", "few far", "one far", "ascending", "nan"])
def test_long_rows_of_any_spread_are_sorted(kind: str, length: int, dtype: str) -> None:
    x = {
        "wide": lambda: normal(length) * 10.0 ** rng.integers(-9, 9, length),
        "close": lambda: rng.integers(0, 40, length) + 2.0**20,
        "few far": lambda: rng.integers(0, 9, length) * 2.0 ** rng.choice([0, 20, 40], length),
        "one far": lambda: np.append(-(2.0**62), rng.integers(0, 90, length)),
        "ascending": lambda: np.arange(length) / 2,
        "nan": lambda: with_nan(normal(length)) if dtype != "int64" else normal(length),
    }[kind]().astype(dtype)
    for descending in (False, True):
        key = np.where(np.isnan(x), np.inf, x) if dtype != "int64" else x
        order = (-key if descending else key).argsort(kind="stable")
        t = torch.tensor(x)
        np.testing.assert_array_equal(t.argsort(descending=descending).numpy(), order)
        for k in (3, length // 5, length // 2, length - 1):
            best = t.topk(k, largest=descending)
            np.testing.assert_array_equal(best.indices.numpy(), order[:k])
            np.testing.assert_array_equal(best.values.numpy(), x[order[:k]])
    ordered = x[x.argsort(kind="stable")]
    numbers = np.count_nonzero(~np.isnan(x))
    middle = ordered[(len(x) - 1) // 2 if numbers == len(x) else numbers]
    np.testing.assert_array_equal(torch.tensor(x).median().numpy(), middle)
    np.testing.assert_array_equal(torch.tensor(x).nanmedian().numpy(), ordered[(numbers - 1) // 2])
    found, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    assert torch.tensor(x).mode().values.item() == found[counts.argmax()]


@pytest.mark.parametrize("rows", [1, 3, 16, 33])
@pytest.mark.parametrize("length", [2, 17, 50])
def test_short_columns_are_sorted_as_rows_are(length: int, rows: int) -> None:
    x = with_nan(rng.integers(-5, 6, (rows, length)) / 2)
    x[0, :2] = np.nan, -0.0
    t, columns = torch.tensor(x), torch.tensor(x.T.copy())
    order = np.where(np.isnan(x), np.inf, x).argsort(1, kind="stable")
    np.testing.assert_array_equal(t.argsort(1, stable=True).numpy(), order)
    down = np.where(np.isnan(x), -np.inf, -x).argsort(1, kind="stable")
    np.testing.assert_array_equal(t.argsort(1, descending=True).numpy(), down)
    for by_row, by_column in [
        (t.sort(1), columns.sort(0)),
        (t.topk(2, 1), columns.topk(2, 0)),
        (t.median(1), columns.median(0)),
        (t.kthvalue(2, 1), columns.kthvalue(2, 0)),
        (t.mode(1), columns.mode(0)),
    ]:
        for a, b in zip(by_row, by_column, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy().T)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("columns", [1, 3, 4, 5, 17, 70])
def test_edges_are_continued_in_all_widths(columns: int, dtype: str) -> None:
    x = rng.integers(-99, 99, (2, 5, 4, columns)).astype(dtype)
    before, after = min(3, columns - 1), min(2, columns - 1)
    amounts = [(0, 0), (0, 0), (1, 2), (before, after)]
    images = torch.tensor(x), torch.tensor(x).to(memory_format=torch.channels_last)
    for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        expected = np.pad(x, amounts, name)
        for t in images:
            padded = torch.nn.functional.pad(t, (before, after, 1, 2), mode)
            np.testing.assert_array_equal(padded.numpy(), expected)


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
@pytest.mark.parametrize(
    "sizes", [(1, 1), (40, 3), (3, 40), (2, 5, 4), (3, 17, 16), (2, 16, 17), (2, 300, 200)]
)
def test_triangles_of_all_shapes(sizes: tuple[int, ...], dtype: str) -> None:
    x = rng.integers(1, 99, sizes).astype(dtype)
    t, turned = torch.tensor(x), torch.tensor(np.swapaxes(x, -1, -2).copy()).mT
    for k in (-400, -38, -3, -1, 0, 1, 2, 14, 38, 400):
        for matrices in (t, turned):
            np.testing.assert_array_equal(matrices.tril(k).numpy(), np.tril(x, k))
            np.testing.assert_array_equal(matrices.triu(k).numpy(), np.triu(x, k))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100])
def test_places_of_few_values(count: int) -> None:
    edges, x = np.sort(normal(13)), normal(3, count)
    rows = np.sort(normal(3, 13), 1)
    for side in ("left", "right"):
        found = torch.searchsorted(torch.tensor(edges), torch.tensor(x), side=side)
        np.testing.assert_array_equal(found.numpy(), np.searchsorted(edges, x, side))
        found = torch.searchsorted(torch.tensor(rows), torch.tensor(x), side=side)
        expected = [np.searchsorted(row, v, side) for row, v in zip(rows, x, strict=True)]
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("length", [1, 2, 3, 50])
def test_trapezoid_rule(length: int) -> None:
    x = normal(4, length)
    expected = (x[:, 1:] + x[:, :-1]).sum(1) / 4
    agrees(torch.trapezoid(torch.tensor(x), dx=0.5), expected)
    x[:, 0] = np.inf
    assert length == 1 or torch.trapezoid(torch.tensor(x)).isposinf().all()


def odd_shape(generator: np.random.Generator, most: int) -> list[int]:
    sizes = [1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 130]
    shape = [int(size) for size in generator.choice(sizes, generator.integers(1, 6))]
    while np.prod(shape) > most:
        shape[generator.integers(len(shape))] = 1
    return shape


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_copies_between_orders_of_dims(dtype: str) -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        shape = odd_shape(generator, 60_000)
        numbers = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        order = generator.permutation(len(shape)).tolist()
        permuted, expected = torch.tensor(numbers).permute(order), numbers.transpose(order)
        assert np.array_equal(permuted.contiguous().numpy(), expected)
        back = torch.empty(permuted.shape[::-1], dtype=permuted.dtype).permute(
            *reversed(range(len(shape)))
        )
        assert np.array_equal(back.copy_(permuted).numpy(), expected)
        dim = int(generator.integers(len(shape)))
        parts = [permuted.contiguous()] * int(generator.integers(1, 4))
        joined = np.concatenate([expected] * len(parts), dim)
        assert np.array_equal(torch.cat(parts, dim).numpy(), joined)


@pytest.mark.usefixtures("threads")
def test_dims_of_one_element_are_reduced() -> None:
    generator = np.random.default_rng(2)
    for _ in range(50):
        x = torch.tensor(generator.integers(-2, 3, odd_shape(generator, 5000)))
        dim = int(generator.integers(x.dim()))
        x = x.permute(*generator.permutation(x.dim()).tolist())
        one = x.unsqueeze(dim)
        for name in ("sum", "prod", "amax", "amin"):
            assert torch.equal(getattr(one, name)(dim), x)
        assert torch.equal(one.any(dim), x != 0) and torch.equal(one.double().mean(dim), x.double())
        values, places = one.max(dim)
        assert torch.equal(values, x) and not places.any() and not one.argmin(dim).any()
        assert one.sum(dim, keepdim=True).shape == one.shape
        assert np.array_equal(x.nonzero().numpy(), np.argwhere(x.numpy()))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64"])
def test_narrow_matrices_and_their_steps_are_reduced(dtype: str) -> None:
    generator = np.random.default_rng(5)
    for _ in range(100):
        whole = generator.integers(0, 9, odd_shape(generator, 20_000)).astype(dtype)
        order = generator.permutation(whole.ndim)
        steps = tuple(slice(int(k), None, int(k) + 1) for k in generator.integers(0, 2, whole.ndim))
        x, t = whole.transpose(order)[steps], torch.tensor(whole).permute(*order.tolist())[steps]
        dim = int(generator.integers(x.ndim))
        if x.shape[dim] == 0:
            continue
        exact = x.astype(np.float64)
        assert np.array_equal(t.sum(dim, dtype=torch.float64).numpy(), exact.sum(dim))
        assert np.array_equal(t.amax(dim).numpy(), x.max(dim))
        values, places = t.min(dim)
        assert np.array_equal(values.numpy(), x.min(dim))
        assert np.array_equal(places.numpy(), x.argmin(dim))
        assert np.array_equal((t > 3).any(dim).numpy(), (x > 3).any(dim))
        if x.shape[dim] > 1:
            agrees(t.double().std(dim), exact.std(dim, ddof=1))


@pytest.mark.usefixtures("threads")
def test_a_few_places_of_many_rows_are_read_and_written() -> None:
    generator = np.random.default_rng(3)
    for rows, length, count in [(3000, 2, 1), (700, 9, 8), (50, 40, 3), (5, 3, 8), (90_000, 3, 2)]:
        x = generator.integers(0, 99, (rows, length)).astype(np.int16)
        index = generator.integers(0, length, count)
        t, i = torch.tensor(x), torch.tensor(index)
        assert np.array_equal(t.index_select(1, i).numpy(), x[:, index])
        source = generator.integers(0, 99, (rows, count)).astype(np.int16)
        expected = x.copy()
        for k, place in enumerate(index):
            expected[:, place] = source[:, k]
        assert np.array_equal(t.index_copy(1, i, torch.tensor(source)).numpy(), expected)
        expected[:, index] = 7
        assert np.array_equal(torch.tensor(expected).index_fill(1, i, 7).numpy(), expected)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["int64", "int32", "bool", "float64"])
@pytest.mark.parametrize("length", [1, 7, 8, 9, 63, 300, 2050, 40_001])
def test_running_sums_and_products_of_integers_and_doubles(dtype: str, length: int) -> None:
    numbers = np.random.default_rng(4).integers(-2, 3, (3, length)).astype(dtype)
    for array in (numbers, np.ascontiguousarray(numbers.T)):
        x, dim = torch.tensor(array), int(array.shape[0] != 3)
        kept = x.cumsum(dim).numpy().dtype
        for d in (0, 1):
            assert np.array_equal(x.cumsum(d).numpy(), np.cumsum(array, d, dtype=kept))
            assert np.array_equal(x.cumprod(d).numpy(), np.cumprod(array, d, dtype=kept))
    if dtype == "float64":
        leaf = torch.tensor(numbers, requires_grad=True)
        (leaf.cumsum(1) * leaf.detach()).sum().backward()
        agrees(leaf.grad, np.cumsum(numbers[:, ::-1], 1)[:, ::-1])


@pytest.mark.parametrize("shape", [(8, 1, 16, 16), (3, 1, 5), (2, 1, 4, 4, 4)])
def test_batches_of_one_channel_are_normalized(shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    y = torch.nn.functional.batch_norm(torch.tensor(x), None, None, training=True)
    agrees(y, (x - x.mean()) / np.sqrt(x.var() + 1e-5))
    assert y.is_contiguous()
