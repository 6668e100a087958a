"""What the op matrix needs: the ops as rows of the table, samples as tensors, finite differences."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from samples import OpSamples, Sample, load_all

import rushlight as rl
from rushlight import _C

SAMPLES = load_all()

def row_name(row: dict[str, Any]) -> str:
    """The name under which samples know a row: home, name and overload."""
    home = row["home"].split()[0]
    prefix = "" if home == "torch" else f"{home}."
    suffix = f".{row['overload']}" if row["overload"] else ""
    return f"{prefix}{row['name']}{suffix}"


# Private ops are parts of others, whose samples reach them; aliases are the same op again.
ROWS = {
    row_name(row): row
    for row in _C._op_table()
    if row["home"] != "private" and not row["alias_of"]
}

# Ops without samples, by the test file that covers them instead.
ELSEWHERE: dict[str, str] = {
    name: file
    for file, names in {
        "tests/ops/test_random_ops.py": """
            bernoulli bernoulli.p bernoulli_ bernoulli_.tensor exponential_ multinomial normal_
            normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor normal.float_float rand
            rand_like randint randint.low randint_like randint_like.low randn randn_like random_
            random_.from random_.to randperm uniform_ nn.functional.alpha_dropout
            nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d
            nn.functional.dropout3d nn.functional.feature_alpha_dropout""",
        "tests/ops/test_creation.py": "empty empty_like empty_strided new_empty",
    }.items()
    for name in names.split()
}


def samples_of(row: dict[str, Any]) -> OpSamples | None:
    """The samples of a row; an overload falls back to those of its op."""
    name = row_name(row)
    found = SAMPLES.get(name)
    return found or SAMPLES.get(name.removesuffix("." + row["overload"]) if row["overload"] else name)


def function_of(name: str) -> Callable[..., Any]:
    """The Python function of a row name."""
    row = ROWS[name]
    home = row["home"].split()[0]
    module = rl if home == "torch" else importlib.import_module(f"rushlight.{home}")
    if not row["function"]:
        return getattr(rl.Tensor, row["name"])
    return getattr(module, row["name"])


def to_tensor(value: Any, dtype: Any = None, requires_grad: bool = False) -> Any:
    """Arrays become tensors, also inside lists and tuples of arrays."""
    if isinstance(value, np.ndarray):
        tensor = rl.from_numpy(value.copy())
        if value.dtype == np.float64 and dtype is not None:
            tensor = tensor.to(dtype)
        if requires_grad and tensor.dtype.is_floating_point:
            tensor.requires_grad_()
        return tensor
    if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
        return type(value)(to_tensor(v, dtype, requires_grad) for v in value)
    return value


def call(name: str, sample: Sample, **how: Any) -> tuple[Any, list[Any]]:
    """Calls an op on a sample; returns the result and the tensors among the arguments."""
    args = [to_tensor(a, **how) for a in sample.args]
    kwargs = {k: to_tensor(v, **how) for k, v in sample.kwargs.items()}
    return function_of(name)(*args, **kwargs), tensors_in([*args, *kwargs.values()])


def tensors_in(values: Any) -> list[Any]:
    """All tensors in nested lists and tuples, in order."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, rl.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors_in(value)
    return found


def results_of(result: Any) -> list[Any]:
    """The tensors that an op returned."""
    return tensors_in([result])


def weighted_sum(result: Any, seed: int = 3) -> Any:
    """A scalar that depends on every floating-point result with fixed random weights."""
    generator = np.random.default_rng(seed)
    total = rl.tensor(0.0, dtype=rl.float64)
    for tensor in results_of(result):
        if tensor.dtype.is_floating_point:
            weights = rl.from_numpy(np.asarray(generator.normal(size=tuple(tensor.shape))))
            total = total + (tensor.to(rl.float64) * weights).sum()
    return total


def directional_check(f: Callable[[list[Any]], Any], points: list[Any], tolerance: float) -> None:
    """Compares the gradient of the scalar f with central differences along random directions."""
    leaves = [p.detach().clone().requires_grad_() for p in points]
    value = f(leaves)
    if not value.requires_grad:
        raise AssertionError("the result does not require grad")
    gradients = rl.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    generator = np.random.default_rng(7)
    step = 1e-5
    for _ in range(3):
        directions = [rl.from_numpy(np.asarray(generator.normal(size=tuple(p.shape)))) for p in points]
        with rl.no_grad():
            ahead = f([p.detach() + d * step for p, d in zip(points, directions, strict=True)]).item()
            behind = f([p.detach() - d * step for p, d in zip(points, directions, strict=True)]).item()
        slope = (ahead - behind) / (2 * step)
        analytic = sum((g * d).sum().item() for g, d in zip(gradients, directions, strict=True))
        np.testing.assert_allclose(analytic, slope, rtol=tolerance, atol=tolerance)
