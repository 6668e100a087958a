"""Sizes at which loops take another way: short rows, several runs of one result, small products,
index tensors with one column, and quotients too large for one division; NumPy is the oracle.
"""

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


def test_remainders_are_exact_for_all_quotients() -> None:
    bits = rng.integers(0, 1 << 32, 20000, dtype=np.uint32)
    special = np.array([np.inf, np.nan, 5, -5, 0, -0.0, 1e38], np.float32)
    x = np.concatenate([bits.view(np.float32), special])
    with np.errstate(all="ignore"):
        for y in [0.7, -3.0, 1e-40, 3e38, np.inf, -np.inf, 0.0, np.nan]:
            y = np.float32(y)
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
