"""Random indices read, write and accumulate as in PyTorch, with the same views and gradients."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

CASES_OF_A_SEED = 400
DTYPES = ["float32", "int64", "bool", "complex64", "uint8"]


class Index:
    """An index tensor in one of the forms that users write."""

    def __init__(self, array: np.ndarray, form: str) -> None:
        self.array, self.form = array, form

    def made(self, library: Any) -> Any:
        if self.form == "tensor":
            return library.tensor(self.array)
        return self.array if self.form == "array" else self.array.tolist()

    def __repr__(self) -> str:
        return f"{self.form} {self.array.dtype} {self.array.tolist()}"


def integers(rng: random.Random, size: int) -> Index:
    shape = rng.choice([(), (1,), (3,), (2, 1), (2, 3)]) if size else (0,)
    values = [rng.randint(-size, size - 1) for _ in range(int(np.prod(shape)))]
    form = rng.choice(["tensor", "tensor", "array", "list" if shape else "tensor"])
    return Index(np.array(values, rng.choice([np.int64, np.int32])).reshape(shape), form)


def item(rng: random.Random, shape: tuple[int, ...], dim: int) -> tuple[Any, int]:
    """One item of an index for the dims from `dim` on, and how many of them it takes."""
    size = shape[dim]
    match rng.choice(["int", "slice", "slice", "none", "integers", "mask", "bool"]):
        case "int":
            return rng.randint(-size - 1, size), 1
        case "slice":
            ends = [rng.choice([None, rng.randint(-size - 1, size + 1)]) for _ in range(2)]
            return slice(*ends, rng.choice([None, 1, 2, 3])), 1
        case "none":
            return None, 0
        case "integers":
            return integers(rng, size), 1
        case "mask":
            dims = min(rng.choice([1, 1, 2]), len(shape) - dim)
            mask = [rng.random() < 0.5 for _ in range(int(np.prod(shape[dim : dim + dims])))]
            array = np.array(mask, bool).reshape(shape[dim : dim + dims])
            return Index(array, rng.choice(["tensor", "array"])), dims
    return rng.choice([True, False]), 0


def random_index(rng: random.Random) -> tuple[tuple[int, ...], list[Any]]:
    shape = tuple(rng.choice([0, 1, 2, 3, 3, 4]) for _ in range(rng.choice([1, 2, 2, 3, 4])))
    items: list[Any] = []
    dim, skips = 0, rng.random() < 0.3
    for _ in range(rng.randint(1, 4)):
        if skips and rng.random() < 0.5:
            items.append(...)
            dim, skips = dim + rng.randint(0, len(shape) - dim), False
        elif dim < len(shape):
            chosen, taken = item(rng, shape, dim)
            items.append(chosen)
            dim += taken
    return shape, items or [...]


def array_of(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, size=shape) - (0 if dtype == "uint8" else 2)
    return np.asarray(values + 1j if dtype == "complex64" else values).astype(dtype)


def laid_out(library: Any, array: np.ndarray, layout: str) -> Any:
    if layout == "turned":
        return library.tensor(np.ascontiguousarray(array.T)).permute(*range(array.ndim)[::-1])
    if layout == "stepped":
        return library.tensor(np.repeat(array, 2, -1))[..., ::2]
    return library.tensor(array)


def apply(library: Any, what: str, tensor: Any, index: Any, value: Any) -> list[Any]:
    if what == "get":
        result = tensor[index]
        strides = [s for s, n in zip(result.stride(), result.shape, strict=True) if n > 1]
        shares = result.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
        return [result, shares and result.numel() > 0, strides if shares else None]
    if what == "set":
        tensor[index] = library.tensor(value) if isinstance(value, np.ndarray) else value
        return [tensor]
    if what == "multiply":
        tensor[index] *= 2
        return [tensor]
    leaf = tensor.double().requires_grad_()
    source = library.tensor(np.real(value).astype(np.float64), requires_grad=True)
    written = leaf * 1
    written[index] = source
    (written * written * library.tensor(np.arange(leaf.numel())).view(leaf.shape)).sum().backward()
    (leaf[index] * 3).sum().backward()
    unread = source.grad is None  # where nothing was written
    return [leaf.grad, library.zeros_like(source) if unread else source.grad]


def comparable(results: Any) -> Any:
    """Tensors as (shape, dtype, values) among what an index gave; an error by its class."""
    if isinstance(results, Exception):
        return type(results).__name__.lstrip("_")
    return [
        (tuple(r.shape), str(r.dtype), r.tolist()) if hasattr(r, "detach") else r for r in results
    ]


def outcome(library: Any, case: dict[str, Any]) -> Any:
    items = tuple(i.made(library) if isinstance(i, Index) else i for i in case["items"])
    tensor = laid_out(library, case["array"], case["layout"])
    try:
        index = items[0] if len(items) == 1 else items
        return apply(library, case["what"], tensor, index, case["value"])
    except Exception as error:
        return error


def case_of(rng: random.Random) -> dict[str, Any]:
    shape, items = random_index(rng)
    dtype, seed = rng.choice(DTYPES), rng.randint(0, 1000)
    array = array_of(shape, dtype, seed)
    value: Any = rng.choice([1, 0])
    try:
        index = tuple(i.made(pytorch) if isinstance(i, Index) else i for i in items)
        target = tuple(pytorch.tensor(array)[index].shape)
    except Exception:
        target = ()
    if rng.random() < 0.6:
        sizes = [rng.choice([1, size]) if rng.random() < 0.3 else size for size in target]
        value = array_of(tuple([1] * rng.choice([0, 0, 1, 2]) + sizes), dtype, seed + 1)
    what = rng.choice(["get", "get", "set", "multiply", "gradients"])
    layout = rng.choice(["as it is", "turned", "stepped"])
    return {"items": items, "array": array, "value": value, "what": what, "layout": layout}


def checks_less(case: dict[str, Any], theirs: Any) -> bool:
    """Where nothing is picked, PyTorch does not look at the indices, and we not at the mask."""
    if isinstance(theirs, Exception):
        unread = "shape of the mask" in str(theirs) and not case["array"].size
        return unread or "dtypes match" in str(theirs)
    return any(0 in t.shape for t in theirs[:1])


@pytest.mark.parametrize("seed", range(10))
def test_random_indices(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(CASES_OF_A_SEED):
        case = case_of(rng)
        ours, theirs = outcome(torch, case), outcome(pytorch, case)
        if comparable(ours) != comparable(theirs) and not checks_less(case, theirs):
            case["array"] = (case["array"].dtype, case["array"].shape)
            raise AssertionError(f"{case}\nours: {ours}\nPyTorch's: {theirs}")
