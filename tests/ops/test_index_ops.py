"""Index tensors, gather, scatter and embedding: order of writes, threads, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F

LARGE = 70_000


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(8)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("columns", [(), (5,)], ids=["elements", "rows"])
def test_the_last_value_wins(columns: tuple[int, ...], generator: np.random.Generator) -> None:
    places = generator.integers(-1000, 1000, LARGE)
    values = generator.normal(size=(LARGE, *columns))
    expected = np.zeros((1000, *columns))
    for place, value in zip(places, values, strict=True):
        expected[place] = value
    written = torch.zeros(1000, *columns, dtype=torch.float64)
    written[torch.from_numpy(places)] = torch.from_numpy(values)
    np.testing.assert_array_equal(written.numpy(), expected)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("columns", [(), (5,), (3, 2)], ids=["elements", "rows", "matrices"])
def test_added_values_come_in_the_order_of_the_index(
    columns: tuple[int, ...], generator: np.random.Generator
) -> None:
    places = generator.integers(0, 1000, LARGE)
    values = generator.normal(size=(LARGE, *columns)).astype(np.float32)
    expected = np.zeros((1000, *columns), np.float32)
    np.add.at(expected, places, values)
    index, source = torch.from_numpy(places), torch.from_numpy(values)
    target = torch.zeros(1000, *columns)
    np.testing.assert_array_equal(target.clone().index_add_(0, index, source).numpy(), expected)
    wide = index.reshape(LARGE, *[1] * len(columns)).expand(LARGE, *columns)
    np.testing.assert_array_equal(target.clone().scatter_add_(0, wide, source).numpy(), expected)
    np.testing.assert_array_equal(
        target.clone().scatter_add_(0, wide.contiguous(), source).numpy(), expected
    )


GATHERED = [
    ((30_000, 5), 1, None),  # many short rows
    ((3, 70_000), 1, None),  # few long ones
    ((70_000, 1), 1, (70_000, 4)),
    ((20, 1, 300, 7), 3, (20, 1, 200, 3)),
    ((5, 6, 1, 900), 1, (2, 11, 1, 800)),
]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("sizes", "dim", "picked"), GATHERED, ids=str)
@pytest.mark.parametrize("turned", [False, True], ids=["row_major", "turned"])
def test_gather_and_scatter_take_rows_and_columns_of_any_length(
    sizes: tuple[int, ...],
    dim: int,
    picked: tuple[int, ...] | None,
    turned: bool,
    generator: np.random.Generator,
) -> None:
    x = generator.normal(size=sizes).astype(np.float32)
    index = generator.integers(0, sizes[dim], picked or sizes)
    if turned:
        index = np.asfortranarray(index)
    window = tuple(slice(n) if d != dim else slice(None) for d, n in enumerate(index.shape))
    places = torch.from_numpy(index)
    expected = np.take_along_axis(x[window], index, dim)
    np.testing.assert_array_equal(torch.from_numpy(x).gather(dim, places).numpy(), expected)
    sums = torch.zeros(*sizes, dtype=torch.int64).scatter_add_(dim, places, places)
    added = np.zeros(sizes, np.int64)
    at = list(np.indices(index.shape))
    at[dim] = index
    np.add.at(added, tuple(at), index)
    np.testing.assert_array_equal(sums.numpy(), added)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_and_scatter_agree_with_numpy_on_large_arrays(
    dim: int, generator: np.random.Generator
) -> None:
    shape = (40, 50, 60)
    x, y = generator.normal(size=(2, *shape))
    index = generator.integers(0, shape[dim], shape)
    np.testing.assert_array_equal(
        torch.from_numpy(x).gather(dim, torch.from_numpy(index)).numpy(),
        np.take_along_axis(x, index, dim),
    )
    order = np.argsort(generator.random(shape), dim)
    expected = x.copy()
    np.put_along_axis(expected, order, y, dim)
    written = torch.from_numpy(x.copy()).scatter_(dim, torch.from_numpy(order), torch.from_numpy(y))
    np.testing.assert_array_equal(written.numpy(), expected)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("shape", [(LARGE,), (1, LARGE), (300, 401), (9000, 3, 3)], ids=str)
@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_masks_find_and_set_their_elements(
    shape: tuple[int, ...], share: float, generator: np.random.Generator
) -> None:
    x = generator.normal(size=shape)
    mask = generator.random(shape) < share
    tensor, flags = torch.from_numpy(x.copy()), torch.from_numpy(mask)
    np.testing.assert_array_equal(flags.nonzero().numpy(), np.argwhere(mask))
    np.testing.assert_array_equal(tensor[flags].numpy(), x[mask])
    tensor[flags] = torch.from_numpy(-x[mask])
    np.testing.assert_array_equal(tensor.numpy(), np.where(mask, -x, x))


def test_a_gradient_through_an_index_reaches_every_use() -> None:
    x = torch.zeros(3, 2, requires_grad=True)
    x[torch.tensor([0, 2, 0, -1])].sum().backward()
    assert x.grad.tolist() == [[2, 2], [0, 0], [2, 2]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: x[torch.tensor([0, 3])],
            IndexError,
            "index 3 is out of bounds for dimension 0 with size 3",
        ),
        (
            lambda x: x[:, torch.tensor([-3])],
            IndexError,
            "index -3 is out of bounds for dimension 1 with size 2",
        ),
        (
            lambda x: x[torch.tensor([0]), torch.tensor([2**62])],
            IndexError,
            "out of bounds for dimension 1",
        ),
        (lambda x: x[torch.tensor([0.5])], IndexError, "tensors used as indices must be"),
        (lambda x: x[torch.tensor([True, False])], IndexError, "shape of the mask"),
        (
            lambda x: x[torch.tensor([0, 1]), torch.tensor([0, 1, 0])],
            IndexError,
            "could not be broadcast",
        ),
        (
            lambda x: x.index_put_((torch.tensor([0]),), torch.ones(3)),
            RuntimeError,
            "shape mismatch",
        ),
        (lambda x: x.index_select(0, torch.tensor([[0]])), IndexError, "supposed to be a vector"),
        (
            lambda x: x.index_add_(0, torch.tensor([0]), torch.ones(2, 2)),
            RuntimeError,
            "takes a source of shape",
        ),
        (
            lambda x: x.index_copy_(0, torch.tensor([0]), torch.ones(1, 2).int()),
            RuntimeError,
            "same dtype",
        ),
        (
            lambda x: x.gather(0, torch.tensor([[3]])),
            RuntimeError,
            "index 3 is out of bounds for dimension 0 with size 3",
        ),
        (lambda x: x.gather(0, torch.tensor([[-1]])), RuntimeError, "index -1 is out of bounds"),
        (lambda x: x.gather(0, torch.tensor([0])), RuntimeError, "same number of dimensions"),
        (
            lambda x: x.gather(0, torch.zeros(1, 3, dtype=torch.int64)),
            RuntimeError,
            "Size does not match",
        ),
        (lambda x: x.gather(0, torch.zeros(1, 1)), RuntimeError, "Expected dtype int32 or int64"),
        (
            lambda x: x.scatter_(0, torch.tensor([[3]]), 1.0),
            RuntimeError,
            "index 3 is out of bounds",
        ),
        (
            lambda x: x.scatter_(0, torch.tensor([[0]]), x, reduce="max"),
            RuntimeError,
            "either add or multiply",
        ),
        (
            lambda x: x.scatter_reduce(0, torch.tensor([[0]]), x, "add"),
            RuntimeError,
            "reduce argument",
        ),
        (lambda x: x.take(torch.tensor([6])), IndexError, "index 6 is out of bounds"),
        (lambda x: x.masked_select(torch.ones(3, 2)), RuntimeError, "BoolTensor for mask"),
        (
            lambda x: x.masked_scatter(x == x, torch.ones(2)),
            RuntimeError,
            "number of ones in mask: 2 < 6",
        ),
        (lambda x: torch.bincount(torch.tensor([-1])), RuntimeError, "non-negative"),
    ],
)
def test_wrong_indices_are_refused(call: Callable[[Any], Any], error: Any, message: str) -> None:
    x = torch.zeros(3, 2)
    with pytest.raises(error, match=message):
        call(x)
    assert torch.equal(x, torch.zeros(3, 2))


def test_embedding_names_the_place_of_a_wrong_number() -> None:
    table = torch.zeros(3, 4)
    text = (
        r"^embedding: index 5 at position \(0, 2\) is out of range for 3 rows; "
        r"valid indices are 0 to 2\.$"
    )
    with pytest.raises(IndexError, match=text):
        F.embedding(torch.tensor([[0, 1, 5], [7, 0, 0]]), table)
    with pytest.raises(IndexError, match="index -1 at position"):
        F.embedding(torch.tensor([-1]), table)
    with pytest.raises(IndexError, match="the table has no rows"):
        F.embedding(torch.tensor([0]), torch.zeros(0, 4))


def test_embedding_skips_the_padding_row_and_scales_by_frequency() -> None:
    table = torch.ones(4, 2, requires_grad=True)
    numbers = torch.tensor([1, 1, 3, 0])
    F.embedding(numbers, table, padding_idx=3).sum().backward()
    assert table.grad[:, 0].tolist() == [1, 2, 0, 0]
    table.grad = None
    F.embedding(numbers, table, scale_grad_by_freq=True).sum().backward()
    assert table.grad[:, 0].tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize(("norm_type", "norm"), [(2.0, 5.0), (1.0, 7.0), (float("inf"), 4.0)])
def test_embedding_shortens_the_rows_it_uses(norm_type: float, norm: float) -> None:
    table = torch.tensor([[3.0, 4.0], [3.0, 4.0]])
    F.embedding(torch.tensor([1]), table, max_norm=1.0, norm_type=norm_type)
    assert table[0].tolist() == [3, 4]
    assert torch.allclose(table[1], torch.tensor([3.0, 4.0]) / norm)


def test_sorting_is_stable_and_puts_nan_last() -> None:
    x = torch.tensor([1.0, float("nan"), -0.0, 0.0, -float("inf"), 1.0])
    assert x.sort().indices.tolist() == [4, 2, 3, 0, 5, 1]
    assert x.sort(descending=True).indices.tolist() == [1, 0, 5, 2, 3, 4]
    assert x.topk(3).indices.tolist() == [1, 0, 5]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("descending", [False, True])
def test_long_rows_are_sorted_as_short_ones_are(
    dtype: str, descending: bool, generator: np.random.Generator
) -> None:
    x = generator.normal(size=(7, 5000)) * 50
    x = (abs(x) if dtype == "uint8" else x).astype(dtype)
    key = x.astype(np.float64) * (-1 if descending else 1)
    values, places = torch.from_numpy(x).sort(descending=descending)
    expected = np.argsort(key, 1, kind="stable")
    np.testing.assert_array_equal(places.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, 1))
    best = torch.from_numpy(x).topk(9, largest=descending)
    np.testing.assert_array_equal(best.indices.numpy(), expected[:, :9])


def test_unique_counts_and_numbers_its_values() -> None:
    x = torch.tensor([[3, 1], [3, 2]])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3]
    assert torch.equal(values[inverse], x)
    assert counts.tolist() == [1, 1, 2]
    assert torch.unique(torch.tensor([float("nan")] * 2)).numel() == 2


@pytest.mark.parametrize("truths", [[], [0, 1, 1], [1, 1], [0, 0, 0], [2, 0, 255]])
def test_unique_truths(truths: list[int]) -> None:
    x = np.array(truths, np.uint8)
    t = torch.from_numpy(x).view(torch.bool)  # every byte but 0 is true
    expected = np.unique(x != 0, return_inverse=True, return_counts=True)
    found = torch.unique(t, return_inverse=True, return_counts=True)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.tolist() == theirs.tolist()
    assert torch.unique(t).tolist() == expected[0].tolist()


@pytest.mark.parametrize("dim", [0, 1])
def test_unique_slices_agree_with_numpy(dim: int, generator: np.random.Generator) -> None:
    x = generator.integers(0, 2, (9, 3))
    mine = torch.unique(torch.from_numpy(x), dim=dim, return_inverse=True, return_counts=True)
    theirs = np.unique(x, axis=dim, return_inverse=True, return_counts=True)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)


def test_unique_consecutive_keeps_later_repeats() -> None:
    values, inverse, counts = torch.unique_consecutive(
        torch.tensor([1, 1, 2, 1]), return_inverse=True, return_counts=True
    )
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == (
        [1, 2, 1],
        [0, 0, 1, 2],
        [2, 1, 1],
    )


def test_unique_has_a_history_without_a_derivative() -> None:
    x = torch.tensor([1.0, 2.0, 1.0], requires_grad=True)
    for op in (torch.unique, torch.unique_consecutive):
        values, counts = op(x, return_counts=True)
        assert values.requires_grad and not counts.requires_grad
        with pytest.raises(NotImplementedError, match="is not implemented"):
            (values.sum() + x.sum()).backward()


def test_an_index_may_be_what_is_written() -> None:
    x = torch.tensor([2, 0, 1])
    x[x] = torch.tensor([10, 20, 30])
    assert x.tolist() == [20, 30, 10]
    x = torch.tensor([2, 0, 1])
    x[x] += x
    assert x.tolist() == [2, 1, 3]


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 8, 16, 24])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
def test_rows_of_all_sizes_are_found(columns: int, dtype: type) -> None:
    table = np.arange(50 * columns).reshape(50, columns).astype(dtype)
    places = np.array([0, 49, 7, 7, -1, 3])
    t = torch.tensor(table)
    for index in (places, places[:4]):
        assert np.array_equal(t[torch.tensor(index)].numpy(), table[index])
        assert np.array_equal(t[:, 0][torch.tensor(index)].numpy(), table[index, 0])
    every = torch.tensor(np.arange(columns))
    assert np.array_equal(t.index_select(1, every).numpy(), table)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_added_one_by_one(dtype: Any) -> None:
    torch.manual_seed(0)
    places, values = torch.randint(0, 5, (3, 40)), torch.randn(3, 40).to(dtype)
    expected = torch.zeros(3, 5, dtype=dtype)
    for row in range(3):
        for place, value in zip(places[row].tolist(), values[row], strict=True):
            expected[row, place] += value
    sums = torch.zeros(3, 5, dtype=dtype)
    assert torch.equal(sums.scatter_add(1, places, values), expected)
    assert torch.equal(sums[0].scatter_add(0, places[0], values[0]), expected[0])
    rows = torch.zeros(5, 40, dtype=dtype).index_add(0, torch.tensor([1, 4, 1]), values)
    assert torch.equal(rows[1], values[0] + values[2])
    assert torch.equal(rows[4], values[1])
    assert torch.equal(sums[0].index_add(0, places[0], values[0]), expected[0])
    flat = torch.arange(3)[:, None]
    assert torch.equal(sums.index_put((flat, places), values, accumulate=True), expected)
    places[2, 39] = 5
    with pytest.raises(RuntimeError, match="index 5 is out of bounds"):
        sums.scatter_add_(1, places, values)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
def test_halves_meet_one_by_one(dtype: Any, reduce: str) -> None:
    torch.manual_seed(0)
    places, values = torch.randint(0, 4, (40,)), torch.randn(40).to(dtype)
    values[places == 2] *= 1e4 if dtype == torch.float16 else 1e30
    values[7], places[7] = float("nan"), 1
    meet = {"sum": torch.add, "prod": torch.mul, "amax": torch.maximum, "amin": torch.minimum}
    start = torch.randn(4).to(dtype)
    expected = start.clone()
    for place, value in zip(places.tolist(), values, strict=True):
        expected[place] = meet[reduce](expected[place], value)
    met = start.scatter_reduce(0, places, values, reduce)
    np.testing.assert_array_equal(met.float().numpy(), expected.float().numpy())


@pytest.mark.parametrize("first", [[0.0, 5.0], [0.0, 0.0]])
@pytest.mark.parametrize("other", [4.0, 0.0])
def test_products_at_places_with_zeros_have_second_gradients(first: Any, other: float) -> None:
    index = torch.tensor([0, 0, 1, 2, 2])
    x = torch.tensor([2.0, 0.0, 3.0], dtype=torch.float64, requires_grad=True)
    src = torch.tensor([*first, other, 6.0, 7.0], dtype=torch.float64, requires_grad=True)
    for multiply in (
        lambda x, src: x.scatter_reduce(0, index, src, "prod"),
        lambda x, src: x.index_reduce(0, index, src, "prod"),
    ):
        assert torch.autograd.gradcheck(multiply, (x, src))
        assert torch.autograd.gradgradcheck(multiply, (x, src))


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("amax", [0.5, 0.5, 1.0, 0.0, 1.0]),
        ("amin", [0.5, 0.5, 1.0, 0.0, 1.0]),
        ("prod", [np.nan, np.nan, 6.0, np.nan, 1.0]),
    ],
)
def test_a_nan_at_a_place_gets_the_gradient_of_what_it_made(
    reduce: str, expected: list[float]
) -> None:
    src = torch.tensor([np.nan, np.nan, np.nan, 6.0, 7.0], dtype=torch.float64, requires_grad=True)
    start = {"amax": -np.inf, "amin": np.inf, "prod": 1.0}[reduce]
    start = torch.full((3,), start, dtype=torch.float64)
    start.scatter_reduce(0, torch.tensor([0, 0, 1, 1, 2]), src, reduce).sum().backward()
    np.testing.assert_array_equal(src.grad.numpy(), expected)


def test_elements_that_share_memory_are_not_scattered_to() -> None:
    x = torch.zeros(1).expand(3)
    with pytest.raises(RuntimeError, match="more than one element"):
        x.masked_scatter_(torch.tensor([True, False, True]), torch.ones(2))
