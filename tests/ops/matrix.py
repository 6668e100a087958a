"""What the op matrix needs: rows of the op table, samples as tensors, finite differences."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from grouping import each
from samples import OpSamples, Sample, load_all

import rushlight as rl
from rushlight import _C

SAMPLES = load_all()
NOT_IN_NUMPY = (rl.bfloat16, rl.float8_e4m3fn, rl.float8_e5m2)

# Ops without samples, by the test file that covers them instead.
ELSEWHERE = {
    name: path
    for path, names in {
        "tests/ops/test_random_distributions.py": [
            "_sample_dirichlet", "_standard_gamma", "_standard_gamma_grad", "binomial", "cauchy_",
            "geometric_", "log_normal_", "poisson",
        ],
        "tests/test_root_nn.py": [
            "alpha_dropout_", "dropout_", "feature_alpha_dropout_", "feature_dropout",
            "feature_dropout_", "native_dropout",
        ],
        "tests/test_random.py": [
            "bernoulli", "bernoulli.p", "bernoulli_", "bernoulli_.tensor", "exponential_",
            "multinomial", "nn.functional.alpha_dropout", "nn.functional.dropout",
            "nn.functional.dropout1d", "nn.functional.dropout2d", "nn.functional.dropout3d",
            "nn.functional.feature_alpha_dropout", "normal.Tensor_Tensor", "normal.Tensor_float",
            "normal.float_Tensor", "normal.float_float", "normal_", "rand", "rand_like", "randint",
            "randint.low", "randint_like", "randint_like.low", "randn", "randn_like", "random_",
            "random_.from", "random_.to", "randperm", "uniform_",
        ],
        "tests/test_layout.py": [
            "as_strided_", "fill_diagonal_", "resize_", "resize_as_", "scatter_reduce",
            "scatter_reduce_", "squeeze_", "squeeze_.dim", "squeeze_.dims",
            "swapaxes_", "t_", "transpose_",
            "unsqueeze_",
        ],
        "tests/test_tensor.py": ["is_signed"],
        "tests/test_creation.py": [
            "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
            "new_empty_strided",
        ],
        "tests/sparse/test_layouts.py": [
            "_indices", "_nnz", "_values", "ccol_indices", "coalesce", "col_indices",
            "crow_indices", "dense_dim", "indices", "is_coalesced", "row_indices", "sparse_dim",
            "to_dense", "values",
        ],
        "tests/sparse/test_products.py": ["hspmm", "smm", "sparse.sampled_addmm", "sspaddmm"],
        "tests/sparse/test_operations.py": [
            "_coalesced_", "sparse_mask", "sparse_resize_", "sparse_resize_and_clear_",
        ],
    }.items()
    for name in names
}  # fmt: skip


def row_name(row: dict[str, Any]) -> str:
    """The name under which samples know a row: home, name and overload."""
    home = row["home"].split()[0]
    prefix = "" if home == "torch" else f"{home}."
    suffix = f".{row['overload']}" if row["overload"] else ""
    return f"{prefix}{row['name']}{suffix}"


# Private ops are parts of others, whose samples reach them.
_PUBLIC = {row_name(row): row for row in _C._op_table() if row["home"] not in ("private", "core")}
ROWS = {name: row for name, row in _PUBLIC.items() if not row["alias_of"]}
ALIASES = {name: row for name, row in _PUBLIC.items() if row["alias_of"]}


SAMPLED = sorted(SAMPLES.keys() & ROWS.keys())
each_sample = each("sample", lambda name: SAMPLES[name].all)


def function_of(name: str) -> Callable[..., Any]:
    """The Python function of an op."""
    row = _PUBLIC[name]
    home = row["home"].split()[0]
    if not row["function"]:
        return getattr(rl.Tensor, row["name"])
    return getattr(
        rl if home == "torch" else importlib.import_module(f"rushlight.{home}"), row["name"]
    )


def writes_input(name: str) -> bool:
    """Whether an op only exists in place."""
    return ROWS[name]["name"].endswith("_")


def tensor_of(array: np.ndarray) -> Any:
    """A tensor with its own copy of the array."""
    return rl.from_numpy(array.copy())


def seen(name: str) -> Callable[..., Any]:
    """The function of an op, or what its samples want to see of it."""
    view = SAMPLES[name].seen_as if name in SAMPLES else None
    return function_of(name) if view is None else functools.partial(view, function_of(name))


def call(name: str, sample: Sample) -> Any:
    """The result of an op on a sample whose arrays became tensors before, or become them here."""
    sample = sample.map(tensor_of)
    return seen(name)(*sample.args, **sample.kwargs)


def tensors_in(*values: Any) -> list[Any]:
    """All tensors in nested lists and tuples, in order."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, rl.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors_in(*value)
    return found


def array_of(result: Any) -> np.ndarray:
    """A result as an array: as float64 where NumPy lacks the dtype."""
    if not isinstance(result, rl.Tensor):
        return np.asarray(result)
    result = result.detach()
    return (result.double() if result.dtype in NOT_IN_NUMPY else result).numpy()


def arrays_of(result: Any) -> list[np.ndarray]:
    """Everything that an op returned, as arrays."""
    return [array_of(r) for r in (result if isinstance(result, (list, tuple)) else [result])]


def weighted_sum(tensors: list[Any], seed: int = 3) -> Any:
    """A scalar that depends on every float or complex tensor with fixed random weights."""
    generator = np.random.default_rng(seed)
    total = rl.tensor(0.0, dtype=rl.float64)
    for tensor in tensors:
        if tensor.dtype.is_complex:
            tensor = rl.view_as_real(tensor)
        if tensor.dtype.is_floating_point:
            total = total + (tensor * tensor_of(generator.normal(size=tuple(tensor.shape)))).sum()
    return total


def is_point(op: OpSamples, sample: Sample) -> Callable[[np.ndarray], bool]:
    """Tells which arrays of a sample gradients are taken for."""
    constant = [id(sample.args[i]) for i in op.constant if i < len(sample.args)]
    return lambda array: array.dtype in (np.float64, np.complex128) and id(array) not in constant


def points_of(op: OpSamples, sample: Sample) -> list[Any]:
    """The tensors of a sample that gradients are taken for."""
    return [tensor_of(a) for a in filter(is_point(op, sample), sample.arrays())]


def differentiable_samples(name: str) -> list[Sample]:
    """The samples of an op that have tensors to take gradients for."""
    op = SAMPLES[name]
    return [sample for sample in op.all if points_of(op, sample)] if op.grad else []


DIFFERENTIABLE = [name for name in SAMPLED if differentiable_samples(name)]
each_differentiable_sample = each("sample", differentiable_samples)


def results_of(name: str, op: OpSamples, sample: Sample) -> Callable[..., tuple[Any, ...]]:
    """The tensors that an op returns, as a function of the points of a sample."""
    varies = is_point(op, sample)

    def f(*points: Any) -> tuple[Any, ...]:
        left = [p.clone() for p in points] if writes_input(name) else list(points)

        filled = sample.map(lambda a: left.pop(0) if varies(a) else tensor_of(a))
        return tuple(tensors_in(seen(name)(*filled.args, **filled.kwargs)))

    return f


def scalar_of(name: str, op: OpSamples, sample: Sample) -> Callable[[list[Any]], Any]:
    """The weighted sum of what an op returns, as a function of the points of a sample."""
    results = results_of(name, op, sample)
    return lambda points: weighted_sum(list(results(*points)))


def direction_of(point: Any, generator: np.random.Generator) -> Any:
    parts = generator.normal(size=(2, *point.shape))
    return tensor_of(parts[0] + 1j * parts[1] if point.dtype.is_complex else parts[0])


def directional_check(f: Callable[[list[Any]], Any], points: list[Any], tolerance: float) -> None:
    """Compares the gradient of the scalar f with central differences along random directions."""
    leaves = [p.detach().clone().requires_grad_() for p in points]
    gradients = rl.autograd.grad(f(leaves), leaves, allow_unused=True, materialize_grads=True)
    generator = np.random.default_rng(7)
    step = 1e-5
    for _ in range(3):
        directions = [direction_of(p, generator) for p in points]
        with rl.no_grad():
            ahead = f([p + d * step for p, d in zip(points, directions, strict=True)]).item()
            behind = f([p - d * step for p, d in zip(points, directions, strict=True)]).item()
        slope = (ahead - behind) / (2 * step)
        # The gradient of a complex number is that of its real part + 1j that of its imaginary one.
        products = zip(gradients, directions, strict=True)
        analytic = sum((g.conj() * d).sum().real.item() for g, d in products)
        np.testing.assert_allclose(analytic, slope, rtol=tolerance, atol=tolerance)
