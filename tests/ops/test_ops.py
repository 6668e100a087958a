"""The op matrix: every op of the table against NumPy, finite differences and itself."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grouping import each
from ops.matrix import (
    ALIASES,
    DIFFERENTIABLE,
    ELSEWHERE,
    ROWS,
    SAMPLED,
    SAMPLES,
    array_of,
    arrays_of,
    call,
    directional_check,
    each_differentiable_sample,
    each_sample,
    function_of,
    points_of,
    results_of,
    scalar_of,
    tensor_of,
    tensors_in,
    writes_input,
)
from samples import Sample

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck

ROOT = Path(__file__).parents[2]
TOLERANCE = {rl.float16: 2e-2, rl.bfloat16: 1e-1, rl.float32: 1e-4, rl.complex64: 1e-4}
FLOAT8 = [rl.float8_e4m3fn, rl.float8_e5m2]  # which move, and are computed in float32 at most
ALL_DTYPES = [dtype for dtype in ROWS["clone"]["dtypes"] if dtype not in FLOAT8]


def close(actual: Any, expected: Any, tolerance: float) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def all_close(actual: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> None:
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        assert mine.shape == theirs.shape
        close(mine, theirs, tolerance)


def references(op: Any, sample: Sample) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        expected = op.ref(*sample.args, **sample.kwargs)
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    return [np.asarray(e) for e in expected]


# Completeness


@each("name", sorted(ROWS), ids=str)
def test_every_op_has_samples(name: str) -> None:
    family = ROWS[name]["file"].rpartition("/")[2].removesuffix(".cpp")
    assert name in ELSEWHERE or name in SAMPLES, (
        f"op '{name}' has no samples: add one to tests/samples/{family}.py"
    )


def test_samples_belong_to_an_op() -> None:
    assert SAMPLES.keys() - ROWS.keys() == set()


@each("name", sorted(ELSEWHERE), ids=str)
def test_ops_without_samples_are_tested_elsewhere(name: str) -> None:
    assert name in ROWS
    assert name not in SAMPLES
    assert re.search(rf"\b{ROWS[name]['name']}\b", (ROOT / ELSEWHERE[name]).read_text())


@pytest.mark.parametrize("name", sorted(n for n in ALIASES if not n.endswith("_")))
def test_an_alias_is_the_op_that_it_stands_for(name: str) -> None:
    row = ALIASES[name]
    original = next(
        n for n, r in ROWS.items() if (r["file"], r["line"]) == (row["file"], row["line"])
    )
    for sample in SAMPLES[original].all:
        all_close(arrays_of(call(name, sample)), arrays_of(call(original, sample)), 0)


# Values


@each_sample
@pytest.mark.parametrize("name", [n for n in SAMPLED if SAMPLES[n].ref is not None])
def test_value_equals_the_numpy_reference(name: str, sample: Sample) -> None:
    op = SAMPLES[name]
    all_close(arrays_of(call(name, sample)), references(op, sample), op.tolerance)


@each_sample
@pytest.mark.parametrize("name", [n for n in SAMPLED if not writes_input(n)])
def test_inputs_are_not_changed(name: str, sample: Sample) -> None:
    tensors = sample.map(tensor_of)
    function_of(name)(*tensors.args, **tensors.kwargs)
    for tensor, array in zip(
        tensors_in(*tensors.args, *tensors.kwargs.values()), sample.arrays(), strict=True
    ):
        np.testing.assert_array_equal(tensor.numpy(), array)


def transposed(array: np.ndarray) -> Any:
    """The same values in column-major order."""
    return tensor_of(array.T).mT if array.ndim == 2 else every_second(array)


def every_second(array: np.ndarray) -> Any:
    """The same values in a window with gaps and an offset."""
    if array.ndim == 0:
        return tensor_of(np.stack([array, array]))[1]
    return tensor_of(np.repeat(array, 2, axis=-1))[..., 1::2]


READS_STORAGE = {
    "as_strided",
    "as_strided_scatter",
    "view.dtype",
    "view_as_complex",
}  # so that layout is part of what it is asked


@each_sample
@each("layout", [transposed, every_second], ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("name", [n for n in SAMPLED if n not in READS_STORAGE])
def test_layout_does_not_matter(
    name: str, sample: Sample, layout: Callable[[np.ndarray], Any]
) -> None:
    all_close(arrays_of(call(name, sample.map(layout))), arrays_of(call(name, sample)), 1e-12)


@pytest.mark.parametrize(
    "name", [n for n in SAMPLED if not writes_input(n) and n not in READS_STORAGE]
)
def test_expanded_inputs_equal_contiguous_ones(name: str) -> None:
    def repeated(array: np.ndarray) -> np.ndarray:
        is_data = array.dtype == np.float64 and array.ndim
        return np.broadcast_to(array[:1], array.shape) if is_data else array

    def expanded(array: np.ndarray) -> Any:
        is_data = array.dtype == np.float64 and array.ndim
        return tensor_of(array[:1]).expand(array.shape) if is_data else tensor_of(array)

    sample = SAMPLES[name].all[0]
    all_close(
        arrays_of(call(name, sample.map(expanded))),
        arrays_of(call(name, sample.map(repeated))),
        1e-12,
    )


@each("shape", [(0,), (2, 0, 3), ()], ids=str)
@pytest.mark.parametrize("name", [n for n in SAMPLED if ROWS[n]["formula"]])
def test_formula_works_on_empty_and_single_elements(name: str, shape: tuple[int, ...]) -> None:
    sample = SAMPLES[name].all[0].map(lambda a: np.full(shape, a.flat[0], a.dtype))
    result = call(name, sample)
    assert tuple(result.shape) == shape


# Gradients


@pytest.mark.parametrize("name", SAMPLED)
def test_results_require_grad_when_the_op_has_gradients(name: str) -> None:
    op = SAMPLES[name]
    sample = next((s for s in op.all if points_of(op, s)), op.all[0])
    points = [p.requires_grad_() for p in points_of(op, sample)]
    result = scalar_of(name, op, sample)(points)
    assert result.requires_grad == (op.grad and bool(points))
    with rl.no_grad():
        assert not scalar_of(name, op, sample)(points).requires_grad


@each_sample
@pytest.mark.parametrize("name", [n for n in SAMPLED if not writes_input(n)])
def test_arguments_do_not_begin_to_require_grad(name: str, sample: Sample) -> None:
    filled = sample.map(tensor_of)
    first, *others = [
        t for t in tensors_in(*filled.args, *filled.kwargs.values()) if t.is_floating_point()
    ] or [None]
    if first is not None:
        first.requires_grad_()
        function_of(name)(*filled.args, **filled.kwargs)
        assert not any(t.requires_grad for t in others)


@each_differentiable_sample
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_equals_finite_differences(name: str, sample: Sample) -> None:
    op = SAMPLES[name]
    directional_check(scalar_of(name, op, sample), points_of(op, sample), 1e-5)


# Differences of rounded values: the slope along the first argument, and of sums that hardly change.
COARSE_IN_HALVES = {"igamma", "igammac", "logcumsumexp"}


@each("dtype", [rl.float16, rl.bfloat16], ids=str)
@each_differentiable_sample
@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n not in COARSE_IN_HALVES])
def test_gradient_in_half_types_is_near_that_in_float64(
    name: str, sample: Sample, dtype: Any
) -> None:
    op = SAMPLES[name]
    if dtype not in ROWS[name]["dtypes"] or any(a.dtype.kind == "c" for a in sample.arrays()):
        pytest.skip("the op takes no half types")

    def gradients(points: list[Any]) -> Any:
        leaves = [p.detach().requires_grad_() for p in points]
        rl.manual_seed(0)
        try:
            return rl.autograd.grad(scalar_of(name, op, sample)(leaves), leaves, allow_unused=True)
        except NotImplementedError as error:
            pytest.skip(str(error))

    rounded = [p.to(dtype) for p in points_of(op, sample)]
    for mine, exact in zip(
        gradients(rounded), gradients([p.double() for p in rounded]), strict=True
    ):
        assert (mine is None) == (exact is None)
        if mine is not None and exact.numel():
            wide = exact.numpy()
            counts = np.isfinite(wide) & (abs(wide) < rl.finfo(rl.float16).max)
            scale = max(1.0, abs(wide[counts]).max(initial=0))
            close(mine.double().numpy()[counts] / scale, wide[counts] / scale, TOLERANCE[dtype])


def leaves_of(name: str, sample: Sample) -> list[Any]:
    return [p.requires_grad_() for p in points_of(SAMPLES[name], sample)]


def varies(results: tuple[Any, ...]) -> bool:
    return any(result.requires_grad for result in results)


@each_differentiable_sample
@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if SAMPLES[n].second])
def test_second_gradient_equals_finite_differences(name: str, sample: Sample) -> None:
    if any(np.isnan(a).any() for a in sample.arrays()):
        pytest.skip("NaN has no slope")
    f, leaves = results_of(name, SAMPLES[name], sample), leaves_of(name, sample)
    if varies(f(*leaves)):
        assert gradgradcheck(f, leaves, fast_mode=True)


def turned(array: np.ndarray) -> np.ndarray:
    """Complex numbers with the float64 ones as real parts."""
    if array.dtype != np.float64:
        return array
    return np.asarray(array + 0.4j * np.random.default_rng(array.size).normal(size=array.shape))


@each_differentiable_sample
@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if rl.complex128 in ROWS[n]["dtypes"]])
def test_complex_gradients_equal_finite_differences(name: str, sample: Sample) -> None:
    if any(array.dtype == np.complex128 for array in sample.arrays()):
        pytest.skip("is complex where it can be")
    op, sample = SAMPLES[name], sample.map(turned)
    f, leaves = results_of(name, op, sample), leaves_of(name, sample)
    try:
        results = f(*leaves)
    except (NotImplementedError, RuntimeError) as error:
        if not re.search(
            "not implemented for complex128|floating.point dtype|no order", str(error)
        ):
            raise
        pytest.skip("takes real numbers here")
    if varies(results):
        assert gradcheck(f, leaves, fast_mode=True)
        assert gradgradcheck(f, leaves, fast_mode=True)


# In-place and out=


@pytest.mark.parametrize("name", [n for n in SAMPLED if ROWS[n]["inplace"]])
def test_in_place_form_equals_the_plain_one(name: str) -> None:
    compared = 0
    for sample in SAMPLES[name].all:
        plain = call(name, sample)
        tensors = sample.map(tensor_of)
        first, *rest = tensors.args
        if plain.shape != first.shape or plain.dtype != first.dtype:
            continue
        version = first._version
        written = getattr(first, ROWS[name]["name"] + "_")(*rest, **tensors.kwargs)
        assert written is first
        assert first._version == version + 1
        close(first.numpy(), plain.numpy(), 1e-12)
        compared += 1
    assert compared or SAMPLES[name].all[0].arrays()[0].dtype != plain.numpy().dtype


@each_sample
@pytest.mark.parametrize("name", [n for n in SAMPLED if writes_input(n)])
def test_op_in_place_returns_its_input_with_a_new_version(name: str, sample: Sample) -> None:
    tensors = sample.map(tensor_of)
    first = tensors.args[0]
    version = first._version
    assert function_of(name)(*tensors.args, **tensors.kwargs) is first
    assert first._version > version


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in SAMPLED
        if ROWS[n]["function"] and ROWS[n]["home"].split()[0] in ("torch", "special")
    ],
)
def test_out_argument_gets_the_result(name: str) -> None:
    sample = SAMPLES[name].all[0].map(tensor_of)
    plain = function_of(name)(*sample.args, **sample.kwargs)
    if not isinstance(plain, rl.Tensor) or writes_input(name):
        pytest.skip("does not return a new tensor")
    out = rl.empty(0, dtype=plain.dtype)
    assert function_of(name)(*sample.args, **sample.kwargs, out=out) is out
    close(array_of(out), array_of(plain), 1e-12)


# Dtypes


def whole(array: np.ndarray, count: int) -> np.ndarray:
    """Small positive numbers that every dtype holds, from float64 ones; for bool also zero."""
    if array.dtype != np.float64:
        return array
    finite = np.where(np.isfinite(array), array, 0)
    return np.asarray((count == 3) + np.round(np.abs(finite) * 2) % count)


BESIDE_FLOATS = {"dist", "nn.functional.mse_loss", "nn.functional.smooth_l1_loss"}


def may_refuse(name: str) -> bool:
    """Whether an op has reasons of its own against dtypes of its set.

    It only works with dtype=, or takes integers beside floats alone.
    """
    return name in BESIDE_FLOATS or any(a["name"] == "dtype" for a in ROWS[name]["args"])


@each("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize(
    "name", [n for n in SAMPLED if SAMPLES[n].all[0].arrays() and n not in READS_STORAGE]
)
def test_dtypes_of_the_op_work_and_others_raise(name: str, dtype: Any) -> None:
    op = SAMPLES[name]
    sample = op.all[0]
    if sample.arrays()[0].dtype != np.float64:
        pytest.skip("the first tensor has a dtype of its own")
    floating = dtype.is_floating_point or dtype.is_complex
    data = sample if floating else sample.map(lambda a: whole(a, 2 if dtype is rl.bool else 3))

    def cast(array: np.ndarray) -> Any:
        return tensor_of(array).to(dtype) if array.dtype == np.float64 else tensor_of(array)

    message = (
        f"not implemented for {str(dtype).removeprefix('torch.')}|could not infer output dtype"
    )
    if dtype not in ROWS[name]["dtypes"]:
        with pytest.raises(NotImplementedError, match=message):
            call(name, data.map(cast))
        return
    try:
        actual = arrays_of(call(name, data.map(cast)))
    except RuntimeError as error:
        by_zero = dtype is rl.bool and "ZeroDivisionError" in str(error)
        if by_zero or (may_refuse(name) and re.search(message, str(error))):
            return
        raise
    if floating or op.ref is None:
        expected = arrays_of(call(name, data))
    else:
        expected = references(op, data.map(lambda a: a.astype(int) if a.dtype == np.float64 else a))
    for mine, theirs in zip(actual, expected, strict=True):
        wraps = theirs.dtype.kind in "iu" or mine.dtype == np.bool_
        close(mine, theirs.astype(mine.dtype) if wraps else theirs, TOLERANCE.get(dtype, 1e-4))


@each("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize(
    "name", [n for n in SAMPLED if SAMPLES[n].all[0].arrays() and n not in READS_STORAGE]
)
def test_8_bit_floats_give_the_numbers_or_are_refused(name: str, dtype: Any) -> None:
    sample = SAMPLES[name].all[0]
    if sample.arrays()[0].dtype != np.float64:
        pytest.skip("the first tensor has a dtype of its own")

    def cast(array: np.ndarray, as_stored: bool) -> Any:
        tensor = tensor_of(array)
        if array.dtype != np.float64:
            return tensor
        return tensor.to(dtype) if as_stored else tensor.to(dtype).double()

    try:
        actual = arrays_of(call(name, sample.map(lambda a: cast(a, True))))
    except RuntimeError as error:
        if not re.search(f"not implemented for {dtype._name}|Promotion for Float8", str(error)):
            raise
        return
    expected = arrays_of(call(name, sample.map(lambda a: cast(a, False))))
    for mine, theirs in zip(actual, expected, strict=True):
        close(mine, theirs, 0.5)


# Wrong arguments

ODD_SHAPES = [(0,), (), (7, 5, 3), (1, 1, 1, 1, 1, 1)]
EXTREMES = [-(2**63), 2**63 - 1, 2**62, -1]


@contextlib.contextmanager
def standard_message() -> Any:
    """Any error must be of a class that PyTorch raises and name an op, usually the innermost."""
    try:
        yield
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        if not re.match(r"\w+(: |\(\))", str(error)):
            raise


@pytest.mark.parametrize("name", SAMPLED)
def test_odd_shapes_work_or_raise_the_standard_message(name: str) -> None:
    sample = SAMPLES[name].all[0]
    for position in range(len(sample.arrays())):
        for shape in ODD_SHAPES:
            left = iter(range(len(sample.arrays())))

            def odd(array: np.ndarray) -> Any:
                fill = array.flat[0] if array.size else 0
                return np.full(shape, fill, array.dtype) if next(left) == position else array  # noqa: B023

            with standard_message():
                call(name, sample.map(odd))


def with_an_extreme(value: Any) -> Iterator[Any]:
    """The value again and again, each time with an extreme in place of one of its integers."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield from EXTREMES
    elif isinstance(value, tuple | list):
        for i, item in enumerate(value):
            for changed in with_an_extreme(item):
                yield type(value)([*value[:i], changed, *value[i + 1 :]])
    elif isinstance(value, dict):
        for key, item in value.items():
            for changed in with_an_extreme(item):
                yield value | {key: changed}


@each_sample
@pytest.mark.parametrize("name", SAMPLED)
def test_extreme_integers_work_or_raise_the_standard_message(name: str, sample: Sample) -> None:
    for args, kwargs in with_an_extreme((sample.args, sample.kwargs)):
        with standard_message():
            call(name, Sample(*args, **kwargs))


@pytest.mark.parametrize("name", SAMPLED)
def test_indices_out_of_range_work_or_raise_the_standard_message(name: str) -> None:
    for extreme in [*EXTREMES, 1000]:
        sample = (
            SAMPLES[name]
            .all[0]
            .map(
                lambda a: np.full_like(a, extreme) if a.dtype == np.int64 else a  # noqa: B023
            )
        )
        with standard_message():
            call(name, sample)


@each_sample
@pytest.mark.parametrize(
    "name",
    [n for n in SAMPLED if any(a["name"] == "dim" and a["type"] == "int" for a in ROWS[n]["args"])],
)
def test_dims_out_of_range_raise_index_errors(name: str, sample: Sample) -> None:
    position = [a["name"] for a in ROWS[name]["args"]].index("dim")
    for dim in (100, -100):
        if len(sample.args) > position:
            args = (*sample.args[:position], dim, *sample.args[position + 1 :])
            wrong = Sample(*args, **sample.kwargs)
        else:
            wrong = Sample(*sample.args, **(sample.kwargs | {"dim": dim}))
        with pytest.raises(IndexError, match="Dimension out of range"):
            call(name, wrong)
