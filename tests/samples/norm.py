"""Samples of normalizations."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples, uniform


def by_channel(v: np.ndarray | None, ndim: int) -> Any:
    return None if v is None else v.reshape(1, -1, *[1] * (ndim - 2))


def affine(z: np.ndarray, weight: Any, bias: Any) -> np.ndarray:
    z = z if weight is None else z * weight
    return z if bias is None else z + bias


def batch_norm_ref(
    x: np.ndarray, mean: Any, var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> np.ndarray:  # fmt: skip
    axes = (0, *range(2, x.ndim))
    m = x.mean(axes, keepdims=True) if training else by_channel(mean, x.ndim)
    v = x.var(axes, keepdims=True) if training else by_channel(var, x.ndim)
    return affine((x - m) / np.sqrt(v + eps), by_channel(weight, x.ndim), by_channel(bias, x.ndim))


@samples("nn.functional.batch_norm", ref=batch_norm_ref, constant=(1, 2))
def batch_norm() -> Iterator[Any]:
    yield Sample(normal(4, 3, 5), None, None, normal(3), normal(3), training=True)
    yield Sample(normal(6, 3), None, None, training=True, eps=1e-2)
    yield Sample(normal(2, 3, 4, 2), None, None, normal(3), training=True)
    yield normal(4, 3, 5), normal(3), uniform(3, low=0.5), normal(3), normal(3)
    yield normal(4, 3), normal(3), uniform(3, low=0.5)


def layer_norm_ref(
    x: np.ndarray, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> np.ndarray:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    z = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return affine(z, weight, bias)


@samples("nn.functional.layer_norm", ref=layer_norm_ref)
def layer_norm() -> Iterator[Any]:
    yield normal(3, 5), (5,), normal(5), normal(5)
    yield normal(2, 3, 4), (3, 4), normal(3, 4)
    yield normal(2, 3, 4), (4,)
    yield normal(5), (5,), normal(5), normal(5)


def group_norm_ref(
    x: np.ndarray, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> np.ndarray:
    z = x.reshape(x.shape[0], groups, -1)
    z = (z - z.mean(2, keepdims=True)) / np.sqrt(z.var(2, keepdims=True) + eps)
    return affine(z.reshape(x.shape), by_channel(weight, x.ndim), by_channel(bias, x.ndim))


@samples("nn.functional.group_norm", ref=group_norm_ref)
def group_norm() -> Iterator[Any]:
    yield normal(2, 4, 3), 2, normal(4), normal(4)
    yield normal(2, 6), 3


def instance_norm_ref(
    x: np.ndarray, mean: Any = None, var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> np.ndarray:  # fmt: skip
    axes = tuple(range(2, x.ndim))
    z = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return affine(z, by_channel(weight, x.ndim), by_channel(bias, x.ndim))


@samples("nn.functional.instance_norm", ref=instance_norm_ref)
def instance_norm() -> Iterator[Any]:
    yield Sample(normal(2, 3, 5), weight=normal(3), bias=normal(3))
    yield Sample(normal(2, 3, 2, 4), eps=1e-2)


def rms_norm_ref(
    x: np.ndarray, shape: Any, weight: Any = None, eps: float | None = None
) -> np.ndarray:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    smallest = np.finfo(x.dtype).eps if eps is None else eps
    return affine(x / np.sqrt((x**2).mean(axes, keepdims=True) + smallest), weight, None)


@samples("nn.functional.rms_norm", ref=rms_norm_ref)
def rms_norm() -> Iterator[Any]:
    yield uniform(3, 5, low=-2.0, high=3.0), (5,), normal(5)
    yield Sample(normal(2, 3, 4), (3, 4), eps=1e-3)
    yield normal(3, 4) + 0.2j * normal(3, 4), (4,)
