"""The op matrix: every op of the table against NumPy, finite differences and itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.matrix import (
    ELSEWHERE,
    ROWS,
    call,
    directional_check,
    function_of,
    results_of,
    samples_of,
    tensors_in,
    to_tensor,
    weighted_sum,
)
from samples import Sample

import rushlight as rl

SAMPLED = sorted(name for name, row in ROWS.items() if samples_of(row) and name not in ELSEWHERE)
CASES = [
    pytest.param(name, sample, id=f"{name}-{i}")
    for name in SAMPLED
    for i, sample in enumerate(samples_of(ROWS[name]).all())  # pyright: ignore[reportOptionalMemberAccess]
]
FLOATS = [rl.float32, rl.float64, rl.float16, rl.bfloat16]
LOOSE = {rl.float32: 1e-4, rl.float16: 2e-2, rl.bfloat16: 1e-1}


def as_arrays(result: Any) -> list[np.ndarray]:
    return [t.detach().to(rl.float64 if t.dtype is rl.bfloat16 else t.dtype).numpy() for t in results_of(result)]


def close(actual: Any, expected: Any, tolerance: float) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_op_has_samples(name: str) -> None:
    row = ROWS[name]
    family = row["file"].rpartition("/")[2].removesuffix(".cpp")
    assert name in ELSEWHERE or samples_of(row), f"op '{name}' has no samples: add one to tests/samples/{family}.py"


@pytest.mark.parametrize(("name", "sample"), CASES)
def test_value_equals_the_numpy_reference(name: str, sample: Sample) -> None:
    op = samples_of(ROWS[name])
    assert op
    if op.ref is None:
        pytest.skip("no reference")
    result, _ = call(name, sample)
    expected = op.ref(*sample.args, **sample.kwargs)
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    actual = as_arrays(result) if results_of(result) else [result]
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        assert np.shape(mine) == np.shape(theirs)
        close(mine, theirs, op.tolerance)


@pytest.mark.parametrize(("name", "sample"), CASES)
def test_inputs_are_not_changed_and_layout_does_not_matter(name: str, sample: Sample) -> None:
    if name.endswith("_") or name.split(".")[0].endswith("_"):
        pytest.skip("writes its input")
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    before = [a.copy() for a in arrays]
    plain, inputs = call(name, sample)
    for tensor, array in zip([t for t in inputs], before, strict=False):
        if tuple(tensor.shape) == array.shape:
            np.testing.assert_array_equal(tensor.numpy(), array)
    strided, _ = call(name, Sample(tuple(transposed(a) for a in sample.args), sample.kwargs))
    for a, b in zip(as_arrays(plain), as_arrays(strided), strict=True):
        close(b, a, 1e-12)


def transposed(value: Any) -> Any:
    """The same values with the strides of a transposed array."""
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return np.asfortranarray(value)
    return value


def gradient_cases(second: bool) -> list[Any]:
    wanted = []
    for name in SAMPLED:
        op = samples_of(ROWS[name])
        assert op
        if not (op.second if second else op.grad) or name.endswith("_") or not gives_gradients(name):
            continue
        wanted += [pytest.param(name, s, id=f"{name}-{i}") for i, s in enumerate(op.all())]
    return wanted


def gives_gradients(name: str) -> bool:
    op = samples_of(ROWS[name])
    assert op
    result, _ = call(name, op.all()[0], requires_grad=True)
    return any(t.requires_grad for t in results_of(result))


def rebuild(sample: Sample, leaves: list[Any]) -> Any:
    """The arguments of a sample with its floating-point tensors replaced by leaves."""
    left = list(leaves)

    def replace(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            tensor = to_tensor(value)
            return left.pop(0) if tensor.dtype.is_floating_point else tensor
        if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
            return type(value)(replace(v) for v in value)
        return value

    return [replace(a) for a in sample.args], {k: replace(v) for k, v in sample.kwargs.items()}


def points_of(sample: Sample) -> list[Any]:
    args = [to_tensor(a) for a in sample.args] + [to_tensor(v) for v in sample.kwargs.values()]
    return [t for t in tensors_in(args) if t.dtype.is_floating_point]


def scalar_of(name: str, sample: Sample) -> Any:
    def f(leaves: list[Any]) -> Any:
        args, kwargs = rebuild(sample, leaves)
        return weighted_sum(function_of(name)(*args, **kwargs))

    return f


@pytest.mark.parametrize(("name", "sample"), gradient_cases(second=False))
def test_gradient_equals_finite_differences(name: str, sample: Sample) -> None:
    directional_check(scalar_of(name, sample), points_of(sample), 1e-5)


@pytest.mark.parametrize(("name", "sample"), gradient_cases(second=True))
def test_second_gradient_equals_finite_differences(name: str, sample: Sample) -> None:
    first = scalar_of(name, sample)

    def slope(leaves: list[Any]) -> Any:
        with rl.enable_grad():
            inputs = [p if p.requires_grad else p.detach().requires_grad_() for p in leaves]
            gradients = rl.autograd.grad(
                first(inputs), inputs, create_graph=True, allow_unused=True, materialize_grads=True
            )
            return weighted_sum(list(gradients), seed=5)

    probe = slope([p.detach().clone().requires_grad_() for p in points_of(sample)])
    if not probe.requires_grad:
        pytest.skip("linear: the gradient does not depend on the input")
    directional_check(slope, points_of(sample), 1e-4)


@pytest.mark.parametrize(
    "name", [n for n in SAMPLED if ROWS[n]["inplace"] or ROWS[n]["name"].endswith("_")]
)
def test_in_place_form_equals_the_plain_one(name: str) -> None:
    row = ROWS[name]
    if not row["inplace"]:
        pytest.skip("has no plain form")
    op = samples_of(row)
    assert op
    for sample in op.all():
        plain, _ = call(name, sample)
        first = to_tensor(sample.args[0])
        if not isinstance(plain, rl.Tensor) or plain.shape != first.shape or plain.dtype != first.dtype:
            continue
        rest = [to_tensor(a) for a in sample.args[1:]]
        kwargs = {k: to_tensor(v) for k, v in sample.kwargs.items()}
        written = getattr(first, row["name"] + "_")(*rest, **kwargs)
        assert written is first
        close(first.numpy(), plain.numpy(), 1e-12)


@pytest.mark.parametrize("name", [n for n in SAMPLED if ROWS[n]["function"] and ROWS[n]["home"] == "torch"])
def test_out_argument_gets_the_result(name: str) -> None:
    op = samples_of(ROWS[name])
    assert op
    sample = op.all()[0]
    plain, _ = call(name, sample)
    if not isinstance(plain, rl.Tensor):
        pytest.skip("does not return one tensor")
    out = rl.empty(0, dtype=plain.dtype)
    args = [to_tensor(a) for a in sample.args]
    returned = function_of(name)(*args, **{k: to_tensor(v) for k, v in sample.kwargs.items()}, out=out)
    assert returned is out
    close(out.numpy(), plain.numpy(), 1e-12)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d._name)
@pytest.mark.parametrize("name", [n for n in SAMPLED if ROWS[n]["differentiable"]])
def test_floating_dtypes_agree_with_float64(name: str, dtype: Any) -> None:
    op = samples_of(ROWS[name])
    assert op
    sample = op.all()[0]
    if dtype not in ROWS[name]["dtypes"]:
        with pytest.raises((RuntimeError, NotImplementedError), match="not implemented for"):
            call(name, sample, dtype=dtype)
        return
    expected, _ = call(name, sample)
    actual, _ = call(name, sample, dtype=dtype)
    for mine, theirs in zip(results_of(actual), results_of(expected), strict=True):
        if theirs.dtype is rl.float64:
            assert mine.dtype is dtype
            close(mine.detach().to(rl.float64).numpy(), theirs.numpy(), LOOSE.get(dtype, 1e-9))


@pytest.mark.parametrize("name", [n for n in SAMPLED if ROWS[n]["formula"]])
def test_formula_works_on_empty_and_single_elements(name: str) -> None:
    op = samples_of(ROWS[name])
    assert op
    sample = op.all()[0]
    for shape in [(0,), (2, 0, 3), ()]:
        args = [np.full(shape, a.flat[0]) if isinstance(a, np.ndarray) else a for a in sample.args]
        result, _ = call(name, Sample(tuple(args), sample.kwargs))
        assert tuple(result.shape) == shape
