"""vmap and forward mode of every op: equal to a loop over samples, and to the gradient."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ops.matrix import (
    DIFFERENTIABLE,
    SAMPLED,
    SAMPLES,
    direction_of,
    each_differentiable_sample,
    each_sample,
    points_of,
    scalar_of,
    seen,
    tensor_of,
    tensors_in,
    writes_input,
)
from samples import Sample

import rushlight as rl

COUNT = 3

# Ops that vmap runs sample by sample.
LOOPS = {
    # rare
    "embedding_renorm_", "histc", "nonzero_static",
    # the entries of each sample are checked, and gradients go through a sparse matrix
    "embedding_bag",
    # the steps depend on the sample when batch_sizes do
    "gru.data", "lstm.data", "rnn_relu.data", "rnn_tanh.data",
}  # fmt: skip

# Ops that vmap cannot run, with the reason.
REFUSED = {
    name: reason
    for reason, names in {
        "gives one value": ["allclose", "equal", "is_nonzero"],
        "has a shape that depends on values": [
            "masked_select", "nonzero", "nonzero.tuple", "nonzero.untupled",
            "repeat_interleave.index", "repeat_interleave.tensor", "tensor_split",
            "vision.ops.batched_nms", "vision.ops.nms", "where.places",
        ],
        "reads its ends as numbers": ["linspace.tensors", "logspace.tensors"],
    }.items()
    for name in names
}  # fmt: skip


def test_the_page_names_ops_that_vmap_loops_over_or_refuses() -> None:
    page = (Path(__file__).parents[2] / "docs" / "transforms.md").read_text()
    assert [name for name in (*LOOPS, *REFUSED) if f"`{name}`" not in page] == []


def sample_of(array: np.ndarray, k: int) -> np.ndarray:
    """Sample k of a batch made of one array: others are near it; integers are the same."""
    return array * (1 - k / 64) if array.dtype.kind in "fc" else array


def masks(count: int) -> Iterator[list[bool]]:
    """Which of so many tensors have samples: all, or one of them."""
    yield [True] * count
    if count > 1:
        for i in range(min(count, 3)):
            yield [i == j for j in range(count)]


def flat(result: Any) -> list[Any]:
    return tensors_in(*(result if isinstance(result, (list, tuple)) else [result]))


def close(actual: Any, expected: Any, tolerance: float = 1e-9) -> None:
    actual, expected = actual.detach(), expected.detach()
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(
        actual.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def run_by_vmap(name: str, sample: Sample, mask: list[bool]) -> tuple[list[Any], list[Any]]:
    """What vmap gives for a batch of samples, and what a loop gives."""
    arrays = sample.arrays()
    batches = [
        np.stack([sample_of(a, k) for k in range(COUNT)]) if has else a
        for a, has in zip(arrays, mask, strict=True)
    ]

    def f(*tensors: Any) -> Any:
        left = list(tensors)
        if writes_input(name):
            left[0] = left[0].clone()
        filled = sample.map(lambda _: left.pop(0))
        return tuple(flat(seen(name)(*filled.args, **filled.kwargs)))

    in_dims = tuple(0 if has else None for has in mask)
    mapped = rl.func.vmap(f, in_dims=in_dims)(*map(tensor_of, batches))
    looped = []
    for k in range(COUNT):
        one = [b[k] if has else b for b, has in zip(batches, mask, strict=True)]
        looped.append(f(*(tensor_of(np.asarray(a)) for a in one)))
    return list(mapped), [rl.stack(parts) for parts in zip(*looped, strict=True)]


@each_sample
@pytest.mark.parametrize("name", [n for n in SAMPLED if n not in REFUSED])
def test_vmap_equals_a_loop(name: str, sample: Sample) -> None:
    count = len(sample.arrays())
    if not count:
        pytest.skip("takes no tensor")
    for mask in masks(count):
        if writes_input(name) and not mask[0]:
            continue  # refused: tests/func/test_vmap.py
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mapped, looped = run_by_vmap(name, sample, mask)
        for mine, theirs in zip(mapped, looped, strict=True):
            close(mine, theirs)
        if name not in LOOPS:
            assert not [str(w.message) for w in caught if "batching rule" in str(w.message)]


@each_differentiable_sample
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_forward_mode_equals_the_gradient(name: str, sample: Sample) -> None:
    op = SAMPLES[name]
    points = points_of(op, sample)
    generator = np.random.default_rng(11)
    along = [direction_of(p, generator) for p in points]
    f = scalar_of(name, op, sample)
    value, slope = rl.func.jvp(lambda *xs: f(list(xs)), tuple(points), tuple(along))
    leaves = [p.clone().requires_grad_() for p in points]
    expected = f(leaves)
    gradients = rl.autograd.grad(expected, leaves, allow_unused=True, materialize_grads=True)
    products = zip(gradients, along, strict=True)
    close(value, expected)
    total = sum((g.conj() * d).sum().real.item() for g, d in products)
    np.testing.assert_allclose(slope.item(), total, rtol=1e-7, atol=1e-7, equal_nan=True)


# Ops that look at their elements for a tangent.
LOOPS_ALONG_TANGENTS = {*LOOPS, "linalg.matrix_exp"}


@each_differentiable_sample
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_forward_mode_per_sample_equals_a_loop(name: str, sample: Sample) -> None:
    op = SAMPLES[name]
    if name in REFUSED:
        pytest.skip(REFUSED[name])
    points = points_of(op, sample)
    generator = np.random.default_rng(12)
    along = tuple(direction_of(p, generator) for p in points)
    f = scalar_of(name, op, sample)

    def slope(*xs: Any) -> Any:
        return rl.func.jvp(lambda *xs: f(list(xs)), xs, along)[1]

    batches = [rl.stack([p * (1 - k / 64) for k in range(COUNT)]) for p in points]
    with warnings.catch_warnings():
        loops = "ignore" if name in LOOPS_ALONG_TANGENTS else "error"
        warnings.filterwarnings(loops, ".*no batching rule")
        mapped = rl.func.vmap(slope)(*batches)
    close(mapped, rl.stack([slope(*(b[k].clone() for b in batches)) for k in range(COUNT)]), 1e-7)


@each_differentiable_sample
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_for_many_cotangents_equal_a_loop(name: str, sample: Sample) -> None:
    op = SAMPLES[name]
    leaves = [p.requires_grad_() for p in points_of(op, sample)]
    f = scalar_of(name, op, sample)
    result = f(leaves)
    weights = tensor_of(np.array([1.0, -2.0, 0.5]))

    def pull(weight: Any) -> Any:
        return rl.autograd.grad(
            result, leaves, weight, retain_graph=True, allow_unused=True, materialize_grads=True
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name in LOOPS else "error")
        mapped = rl.func.vmap(pull)(weights)
    for i, mine in enumerate(mapped):
        close(mine, rl.stack([pull(w)[i] for w in weights]))


@each_differentiable_sample
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_per_sample_equals_a_loop(name: str, sample: Sample) -> None:
    op = SAMPLES[name]
    if name in REFUSED:
        pytest.skip(REFUSED[name])
    points = points_of(op, sample)
    f = scalar_of(name, op, sample)
    gradient = rl.func.grad(lambda *xs: f(list(xs)), argnums=tuple(range(len(points))))
    batches = [rl.stack([p * (1 - k / 64) for k in range(COUNT)]) for p in points]
    mapped = rl.func.vmap(gradient)(*batches)
    for i, mine in enumerate(mapped):
        close(
            mine,
            rl.stack([gradient(*(b[k].clone() for b in batches))[i] for k in range(COUNT)]),
            1e-7,
        )
