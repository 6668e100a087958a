"""gradient, unravel_index and fill_diagonal_, against NumPy, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.matrix import directional_check, weighted_sum

import rushlight as torch

rng = np.random.default_rng(6)
GRID = rng.normal(size=(4, 5, 3))


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("dim", [None, 1, (0, -1)])
@pytest.mark.parametrize("spacing", [1, 0.25])
def test_gradient_on_an_even_grid(edge_order: int, dim: Any, spacing: float) -> None:
    ours = torch.gradient(torch.tensor(GRID), spacing=spacing, dim=dim, edge_order=edge_order)
    theirs = np.gradient(GRID, spacing, axis=dim, edge_order=edge_order)
    theirs = theirs if isinstance(theirs, (list, tuple)) else [theirs]
    for mine, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_at_given_places(edge_order: int) -> None:
    places = [np.cumsum(rng.uniform(0.5, 2, n)) for n in GRID.shape]
    ours = torch.gradient(
        torch.tensor(GRID), spacing=[torch.tensor(p) for p in places], edge_order=edge_order
    )
    for mine, expected in zip(ours, np.gradient(GRID, *places, edge_order=edge_order), strict=True):
        np.testing.assert_allclose(mine.numpy(), expected, rtol=1e-10, atol=1e-12)


def test_gradients_are_row_major() -> None:
    assert all(part.is_contiguous() for part in torch.gradient(torch.tensor(GRID), edge_order=2))


def test_gradient_is_differentiable() -> None:
    directional_check(
        lambda t: weighted_sum(list(torch.gradient(t[0], spacing=(t[1],), dim=0, edge_order=2))),
        [torch.tensor(GRID), torch.tensor([0.0, 1.0, 3.0, 4.0], dtype=torch.float64)],
        1e-6,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_order": 3}, "edge_order"),
        ({"dim": (0, 0)}, "must be different"),
        ({"spacing": [1.0]}, "one for each of 3 dims"),
        ({"spacing": torch.ones(3)}, "as a list"),
        ({"spacing": [torch.ones(2)], "dim": 0}, "vector of 4 elements"),
    ],
)
def test_gradient_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.gradient(torch.tensor(GRID), **options)
    with pytest.raises(RuntimeError, match="at least edge_order"):
        torch.gradient(torch.ones(1))
    with pytest.raises(IndexError, match="out of range"):
        torch.gradient(torch.ones(3), dim=1)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (3, 1, 2)])
def test_unravel_index(shape: tuple[int, ...]) -> None:
    places = np.array([[0, 5, 3], [2, 2, 1]])
    ours = torch.unravel_index(torch.tensor(places), shape)
    for mine, expected in zip(ours, np.unravel_index(places, shape), strict=True):
        np.testing.assert_array_equal(mine.numpy(), expected)


def test_unravel_index_counts_from_the_end_and_goes_round() -> None:
    assert [c.item() for c in torch.unravel_index(torch.tensor(-1), (2, 3))] == [1, 2]
    assert [c.item() for c in torch.unravel_index(torch.tensor(7), (2, 3))] == [0, 1]
    assert torch.unravel_index(torch.tensor(4), 5)[0].item() == 4
    with pytest.raises(ValueError, match="negative"):
        torch.unravel_index(torch.tensor(0), (2, -3))
    with pytest.raises(TypeError, match="float32"):
        torch.unravel_index(torch.tensor(0.5), (2, 3))


def test_unique_of_integers_near_and_far_from_each_other() -> None:
    for x in (rng.integers(-3, 9, (5, 40)), rng.integers(-(2**62), 2**62, 50), np.array([7])):
        values, inverse, counts = torch.unique(
            torch.tensor(x), return_inverse=True, return_counts=True
        )
        expected = np.unique(x, return_inverse=True, return_counts=True)
        for mine, theirs in zip((values, inverse, counts), expected, strict=True):
            np.testing.assert_array_equal(mine.numpy(), theirs.reshape(mine.shape))
        assert values.dtype is torch.int64
    extremes = torch.tensor([2**63 - 1, -(2**63), 2**63 - 1])
    assert torch.unique(extremes).tolist() == [-(2**63), 2**63 - 1]
    assert torch.unique(torch.tensor([True, False, True])).tolist() == [False, True]
    assert torch.unique(torch.tensor([3, 255, 3], dtype=torch.uint8)).tolist() == [3, 255]


def test_searches_take_numbers() -> None:
    edges = torch.tensor([1, 2, 3])
    assert torch.bucketize(2, edges, right=True).item() == 2
    assert torch.bucketize(1.5, edges.double()).item() == 1
    assert torch.isin(3, edges).item() and not torch.isin(2.5, edges).item()
    assert not torch.isin(torch.tensor(4), 3).item()


@pytest.mark.parametrize("shape", [(7, 2), (3, 3), (2, 5), (4, 3), (9, 1), (3, 0), (0, 3)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape: tuple[int, int], wrap: bool) -> None:
    expected = np.zeros(shape)
    if all(shape):  # NumPy has no step for a matrix without columns
        np.fill_diagonal(expected, 2.0, wrap=wrap)
    x = torch.zeros(shape, dtype=torch.float64)
    assert x.fill_diagonal_(2.0, wrap=wrap) is x
    np.testing.assert_array_equal(x.numpy(), expected)
    columns = torch.zeros(shape[::-1], dtype=torch.float64).t()
    np.testing.assert_array_equal(columns.fill_diagonal_(2.0, wrap=wrap).numpy(), expected)


def test_integers_are_close_without_tolerances_where_they_are_equal() -> None:
    a = torch.tensor([2**53, -(2**62)])
    assert torch.isclose(a, a + torch.tensor([1, 0]), rtol=0, atol=0).tolist() == [False, True]
    assert torch.allclose(a, a + 1, rtol=0, atol=1) and not torch.allclose(a, a + 1, 0, 0)
