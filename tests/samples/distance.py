"""Samples of distances between points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples


def norm_of(gaps: np.ndarray, p: float, axis: int | None = -1, keepdims: bool = False) -> Any:
    sizes = np.abs(gaps)
    if p == 0:
        return (sizes != 0).sum(axis, keepdims=keepdims)
    if np.isinf(p):
        return sizes.max(axis, keepdims=keepdims)
    return (sizes**p).sum(axis, keepdims=keepdims) ** (1 / p)


def cdist_ref(x1: np.ndarray, x2: np.ndarray, p: float = 2.0, compute_mode: str = "") -> Any:
    return norm_of(x1[..., :, None, :] - x2[..., None, :, :], p)


@samples("cdist", ref=cdist_ref)
def cdist() -> Iterator[Any]:
    yield normal(3, 4), normal(5, 4)
    yield normal(30, 3), normal(2, 3)
    yield Sample(normal(3, 4), normal(5, 4), compute_mode="use_mm_for_euclid_dist")
    for p in (1.0, 0.5, 1.5, 3.0, np.inf):
        yield normal(3, 4), normal(2, 4), p
    yield normal(2, 1, 3, 2), normal(4, 5, 2)
    yield normal(70, 2), normal(66, 2), 1.0
    yield normal(0, 4), normal(5, 4)
    yield normal(3, 0), normal(5, 0)


def pdist_ref(x: np.ndarray, p: float = 2.0) -> Any:
    return cdist_ref(x, x, p)[np.triu_indices(len(x), 1)]


@samples("pdist", ref=pdist_ref)
def pdist() -> Iterator[Any]:
    yield normal(5, 3)
    yield normal(4, 3), 1.0
    yield normal(4, 3), 2.5
    yield normal(1, 3)
    yield normal(105, 2)


def pairwise_ref(
    x1: np.ndarray, x2: np.ndarray, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    return norm_of(x1 - x2 + eps, p, -1, keepdim)


@samples("pairwise_distance", ref=pairwise_ref)
def pairwise_distance() -> Iterator[Any]:
    yield normal(3, 4), normal(3, 4)
    yield Sample(normal(3, 4), normal(4), 1.0, keepdim=True)
    yield Sample(normal(2, 3, 4), normal(3, 4), p=3.0, eps=0.1)
    yield Sample(normal(4), normal(4), p=np.inf)


def cosine_ref(x1: np.ndarray, x2: np.ndarray, dim: int = 1, eps: float = 1e-8) -> Any:
    x1, x2 = np.broadcast_arrays(x1, x2)
    norms = np.linalg.norm(x1, axis=dim).clip(eps) * np.linalg.norm(x2, axis=dim).clip(eps)
    return (x1 * x2).sum(dim) / norms


@samples("cosine_similarity", ref=cosine_ref)
def cosine_similarity() -> Iterator[Any]:
    yield normal(3, 4), normal(3, 4)
    yield normal(3, 4), normal(3, 1), 0
    yield Sample(normal(3, 4), normal(4), dim=-1, eps=3.0)


@samples("dist", ref=lambda x, y, p=2: norm_of(x - y, p, None))
def dist() -> Iterator[Any]:
    yield normal(3, 4), normal(3, 4)
    yield normal(3, 4), normal(4), 1
    yield normal(3), normal(3), 3.5
    yield normal(3), normal(3), np.inf


def renorm_ref(x: np.ndarray, p: float, dim: int, maxnorm: float) -> np.ndarray:
    axes = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    norms = (np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p)
    return x * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)


@samples("renorm", "renorm_", ref=renorm_ref)
def renorm() -> Iterator[Any]:
    yield normal(3, 4), 2, 0, 1.5
    yield normal(3, 4), 1, 1, 2
    yield normal(2, 3, 4), 3.0, -2, 1.2
