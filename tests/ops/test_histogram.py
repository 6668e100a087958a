"""Histograms of one and several dims, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch

rng = np.random.default_rng(4)
EDGES = np.array([-2.0, -0.5, 0.0, 1.5])


def assert_same(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours.hist.numpy(), theirs[0], rtol=1e-12)
    edges = ours.bin_edges if isinstance(ours.bin_edges, tuple) else (ours.bin_edges,)
    expected = theirs[1] if isinstance(theirs[1], (list, tuple)) else (theirs[1],)
    for mine, edge in zip(edges, expected, strict=True):
        np.testing.assert_allclose(mine.numpy(), edge, rtol=1e-12)


@pytest.mark.parametrize("size", [0, 1, 50, 300_000])
@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram(size: int, density: bool, weighted: bool) -> None:
    x, w = rng.normal(size=size), rng.uniform(size=size)
    weight, weights = (torch.tensor(w), w) if weighted else (None, None)
    if size == 0 and density:
        return  # 0 / 0
    for bins, span in ((7, None), (5, (-1.0, 2.0)), (EDGES, None)):
        if size == 1 and density and not (np.min(EDGES) <= x[0] <= np.max(EDGES)):
            continue
        ours = torch.histogram(
            torch.tensor(x),
            torch.tensor(bins) if bins is EDGES else bins,
            range=span,
            weight=weight,
            density=density,
        )
        with np.errstate(invalid="ignore"):
            theirs = np.histogram(x, bins, span, weights=weights, density=density)
        assert_same(ours, theirs)


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogramdd(density: bool, weighted: bool) -> None:
    x, w = rng.normal(size=(200, 3)), rng.uniform(size=200)
    weight, weights = (torch.tensor(w), w) if weighted else (None, None)
    for bins, span in (([2, 3, 4], None), (3, [(-1, 1), (-2, 2), (0, 3)]), ([EDGES] * 3, None)):
        edges: Any = [torch.tensor(b) for b in bins] if span is None and bins[0] is EDGES else bins
        flat = None if span is None else [v for pair in span for v in pair]
        ours = torch.histogramdd(torch.tensor(x), edges, range=flat, weight=weight, density=density)
        assert_same(ours, np.histogramdd(x, bins, span, weights=weights, density=density))


def test_values_outside_and_nan_count_nowhere() -> None:
    x = torch.tensor([0.0, 1.0, 2.0, -0.1, 2.1, float("nan"), float("inf")])
    assert x.histc(2, 0, 2).tolist() == [1, 2]
    assert x.histogram(2, range=(0, 2)).hist.tolist() == [1, 2]
    assert torch.histogram(x, torch.tensor([0.0, 1.0, 2.0])).hist.tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="not finite"):
        x.histc(2)
    with pytest.raises(RuntimeError, match="not finite"):
        x.histogram(2)


def test_counts_do_not_stop_where_float32_has_no_next_integer() -> None:
    counts = torch.zeros(1 << 25).histc(3, -1, 1)
    assert counts.tolist() == [0, 1 << 25, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.histc(0), "bins must be > 0"),
        (lambda x: x.histc(3, 2, 1), "max must be larger than min"),
        (lambda x: x.histogram(0), "bins must be positive"),
        (lambda x: x.histogram(2, range=(1.0, 0.0)), "min should not exceed max"),
        (lambda x: x.histogram(2, range=(1.0,)), "must have 2 numbers"),
        (lambda x: x.histogram(2, weight=torch.ones(2)), r"shape \(2,\)"),
        (lambda x: x.histogram(torch.ones(1)), "at least 2 elements"),
        (lambda x: x.histogram(torch.ones(3), range=(0.0, 1.0)), "together with edges"),
        (lambda x: x.histogram(torch.ones(3, dtype=torch.float64)), "dtype"),
        (lambda x: torch.histogramdd(x, 3), "at least 2 dims"),
        (lambda x: torch.histogramdd(x.reshape(1, 3), [1, 2]), "one entry for each of 3"),
    ],
)
def test_refuses(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(torch.tensor([1.0, 2.0, 3.0]))


def test_edges_that_do_not_ascend_crash_nothing() -> None:
    x = torch.randn(100)
    torch.histogram(x, torch.tensor([1.0, -1.0, 0.5]))
    torch.histogram(x, torch.tensor([float("nan"), 0.0, float("nan")]))
    torch.histogram(x, torch.tensor([-1.0, float("nan"), 1.0]))
