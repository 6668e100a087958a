"""Comparing two values, or two structures of values, up to tolerances.

Owns assert_close and its messages. The numbers are compared in NumPy, in the precision of Python's
floats, so the ops under test are not their own judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import rushlight as rl
from rushlight import Tensor

Tolerances = tuple[float, float]
Place = tuple[Any, ...]

# dtype -> (rtol, atol): PyTorch's; about 16 units in the last place. Others are compared exactly.
_TOLERANCES: dict[Any, Tolerances] = {
    rl.float16: (1e-3, 1e-5),
    rl.bfloat16: (1.6e-2, 1e-5),
    rl.float32: (1.3e-6, 1e-5),
    rl.float64: (1e-7, 1e-7),
    rl.complex64: (1.3e-6, 1e-5),
    rl.complex128: (1e-7, 1e-7),
    rl.qint8: (1.3e-6, 1e-5),
    rl.quint8: (1.3e-6, 1e-5),
    rl.qint32: (1.3e-6, 1e-5),
}
_SPARSE = (rl.sparse_coo, rl.sparse_csr, rl.sparse_csc, rl.sparse_bsr, rl.sparse_bsc)
_UNKNOWN_TO_NUMPY = (rl.bfloat16, rl.float8_e4m3fn, rl.float8_e5m2)
_NUMBERS = (int, float, complex, np.number)
_BOOLS = (bool, np.bool_)


class _MismatchError(Exception):
    """Two values differ; `place` leads to them from the compared structures."""

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.place = place

    def text(self) -> str:
        where = "".join(f"[{key!r}]" for key in self.place)
        return f"{self}\n\nThe failure occurred for item {where}" if where else str(self)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Tensors, NumPy arrays, numbers, bools and None are compared, and sequences and mappings of them
    entry by entry.

    Args:
        actual: what was computed.
        expected: what it should be.
        allow_subclasses: let one value be of a subclass of the other's class.
        rtol: relative tolerance; by default it follows from the dtypes, the looser one counts.
        atol: absolute tolerance; to be given together with rtol.
        equal_nan: let NaN equal NaN.
        check_device: compare devices too.
        check_dtype: compare dtypes too, and the types of numbers.
        check_layout: compare layouts too.
        check_stride: compare strides too.
        msg: message of the error, or a function that makes it of the usual one.
    Raises:
        AssertionError: the values differ.
        TypeError: values of these types are not compared.
        ValueError: only one of the tolerances was given.

    Example:
        >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000001]))
        >>> torch.testing.assert_close({"a": 1}, {"a": 2})
        Traceback (most recent call last):
        AssertionError: Scalars are not equal!
        <BLANKLINE>
        Expected 2 but got 1.
        Absolute difference: 1
        Relative difference: 0.5
        <BLANKLINE>
        The failure occurred for item ['a']
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(
            "assert_close: Both 'rtol' and 'atol' must be either specified or omitted, "
            f"but got no {missing}."
        )
    attributes = {
        "device": check_device,
        "dtype": check_dtype,
        "layout": check_layout,
        "stride()": check_stride,
    }
    tolerances = None if rtol is None or atol is None else (float(rtol), float(atol))
    comparison = _Comparison(tolerances, equal_nan, allow_subclasses, attributes)
    try:
        comparison.compare(actual, expected, ())
    except _MismatchError as mismatch:
        message = mismatch.text()
    else:
        return
    raise AssertionError(msg(message) if callable(msg) else msg or message)


class _Comparison:
    def __init__(
        self,
        tolerances: Tolerances | None,
        equal_nan: bool,
        allow_subclasses: bool,
        attributes: dict[str, bool],
    ) -> None:
        self._tolerances = tolerances
        self._equal_nan = equal_nan
        self._allow_subclasses = allow_subclasses
        self._attributes = attributes

    def compare(self, actual: Any, expected: Any, place: Place) -> None:
        both = (actual, expected)
        if actual is None or expected is None:
            if actual is not expected:
                raise _MismatchError(f"None mismatch: {actual} is not {expected}", place)
        elif _are(both, _BOOLS):
            if bool(actual) is not bool(expected):
                raise _MismatchError(f"Booleans mismatch: {actual} is not {expected}", place)
        elif _are(both, _NUMBERS) and not _are(both[:1], _BOOLS) and not _are(both[1:], _BOOLS):
            self._compare_numbers(actual, expected, place)
        elif _are(both, Tensor) and self._are_related(actual, expected):
            self._compare_tensors(actual, expected, place)
        elif _are(both, np.ndarray) and self._are_related(actual, expected):
            self._compare_tensors(rl.as_tensor(actual), rl.as_tensor(expected), place)
        elif _are(both, Mapping):
            self._compare_mappings(actual, expected, place)
        elif _are(both, Sequence) and not _are(both[:1], str) and not _are(both[1:], str):
            self._compare_sequences(actual, expected, place)
        else:
            raise TypeError(
                "assert_close: No comparison pair was able to handle inputs of type "
                f"{type(actual)} and {type(expected)}."
            )

    def _are_related(self, actual: Any, expected: Any) -> bool:
        if not self._allow_subclasses:
            return type(actual) is type(expected)
        return isinstance(actual, type(expected)) or isinstance(expected, type(actual))

    def _compare_mappings(
        self, actual: Mapping[Any, Any], expected: Mapping[Any, Any], place: Place
    ) -> None:
        missing = [key for key in expected if key not in actual]
        additional = [key for key in actual if key not in expected]
        if missing or additional:
            raise _MismatchError(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\n"
                f"Additional keys in the actual mapping: {additional}",
                place,
            )
        for key in expected:
            self.compare(actual[key], expected[key], (*place, key))

    def _compare_sequences(
        self, actual: Sequence[Any], expected: Sequence[Any], place: Place
    ) -> None:
        if len(actual) != len(expected):
            raise _MismatchError(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place
            )
        for i, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
            self.compare(ours, theirs, (*place, i))

    def _compare_numbers(self, actual: Any, expected: Any, place: Place) -> None:
        actual, expected = (
            value.item() if isinstance(value, np.number) else value for value in (actual, expected)
        )
        if self._attributes["dtype"] and type(actual) is not type(expected):
            raise _MismatchError(
                f"The (d)types do not match: {type(actual)} != {type(expected)}.", place
            )
        are_integers = isinstance(actual, int) and isinstance(expected, int)
        rtol, atol = self._tolerances_for(rl.int64 if are_integers else rl.float64)
        ours, theirs = np.asarray(actual), np.asarray(expected)
        if _is_close(ours, theirs, rtol, atol, self._equal_nan).all():
            return
        absolute = abs(actual - expected)
        relative = absolute / abs(expected) if expected else float("inf")
        raise _MismatchError(
            f"Scalars are not {_degree(rtol, atol)}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {absolute}{_allowed(atol, rtol, atol)}\n"
            f"Relative difference: {relative}{_allowed(rtol, rtol, atol)}",
            place,
        )

    def _compare_tensors(self, actual: Tensor, expected: Tensor, place: Place) -> None:
        _check_attribute("shape", actual.shape, expected.shape, place)
        for name, is_checked in self._attributes.items():
            if is_checked:
                ours, theirs = (_attribute(tensor, name) for tensor in (actual, expected))
                _check_attribute(name, ours, theirs, place)
        _check_entries(actual, expected, place)
        if actual.is_meta or expected.is_meta:
            return
        rtol, atol = self._tolerances_for(actual.dtype, expected.dtype)
        ours, theirs = _array(actual), _array(expected)
        close = _is_close(ours, theirs, rtol, atol, self._equal_nan)
        if close.all():
            return
        message = f"Tensor-likes are not {_degree(rtol, atol)}!\n\n"
        if not ours.ndim:
            message = f"Scalars are not {_degree(rtol, atol)}!\n\n"
            message += f"Expected {theirs.item()} but got {ours.item()}.\n"
        raise _MismatchError(message + _differences(ours, theirs, close, rtol, atol), place)

    def _tolerances_for(self, *dtypes: rl.dtype) -> Tolerances:
        if self._tolerances is not None:
            return self._tolerances
        rtols, atols = zip(*(_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes), strict=True)
        return max(rtols), max(atols)


def _are(values: tuple[Any, ...], kind: Any) -> bool:
    return all(isinstance(value, kind) for value in values)


def _attribute(tensor: Tensor, name: str) -> Any:
    return tensor.stride() if name == "stride()" else getattr(tensor, name)


def _check_attribute(name: str, actual: Any, expected: Any, place: Place) -> None:
    if actual != expected:
        raise _MismatchError(
            f"The values for attribute '{name}' do not match: {actual} != {expected}.", place
        )


def _check_entries(actual: Tensor, expected: Tensor, place: Place) -> None:
    """Tells what is not seen in the elements: how many entries there are, how they are coded."""
    _check_attribute("is_quantized", actual.is_quantized, expected.is_quantized, place)
    if actual.is_quantized:
        _check_attribute("qscheme()", actual.qscheme(), expected.qscheme(), place)
    if actual.layout is expected.layout and actual.layout in _SPARSE:
        if actual.is_sparse:
            _check_attribute("sparse_dim()", actual.sparse_dim(), expected.sparse_dim(), place)
        _check_attribute("_nnz()", actual._nnz(), expected._nnz(), place)


def _array(tensor: Tensor) -> np.ndarray:
    tensor = tensor.detach().dequantize() if tensor.is_quantized else tensor.detach().to_dense()
    tensor = tensor.cpu()
    return (tensor.float() if tensor.dtype in _UNKNOWN_TO_NUMPY else tensor).numpy()


def _is_close(
    actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float, equal_nan: bool
) -> np.ndarray:
    close = actual == expected  # also where both are the same infinity
    if rtol or atol:
        # NumPy would compute in half precision, and unsigned differences would wrap around.
        kind = complex if np.iscomplexobj(actual) or np.iscomplexobj(expected) else float
        ours, theirs = actual.astype(kind), expected.astype(kind)
        with np.errstate(invalid="ignore", over="ignore"):
            bound = atol + rtol * np.abs(theirs)
            close |= (np.abs(ours - theirs) <= bound) & np.isfinite(theirs)
    if equal_nan:
        close |= (actual != actual) & (expected != expected)
    return np.asarray(close)


def _differences(
    actual: np.ndarray, expected: np.ndarray, close: np.ndarray, rtol: float, atol: float
) -> str:
    """Tells how far apart the values are, of those that are too far apart."""
    kind: type = float
    if np.iscomplexobj(actual) or np.iscomplexobj(expected):
        kind = complex
    elif actual.dtype.kind in "bui" and expected.dtype.kind in "bui":
        kind = object  # Python's integers do not overflow
    ours, theirs = actual.astype(kind), expected.astype(kind)
    with np.errstate(all="ignore"):
        absolute = np.where(close, 0, np.abs(ours - theirs))
        scale = np.asarray(np.abs(theirs)).astype(float)
        relative = np.where(close, 0.0, absolute.astype(float) / scale)
    if not actual.ndim:
        return (
            f"Absolute difference: {absolute.item()}{_allowed(atol, rtol, atol)}\n"
            f"Relative difference: {relative.item()}{_allowed(rtol, rtol, atol)}"
        )
    lines = [
        f"Mismatched elements: {(~close).sum()} / {close.size} ({(~close).mean():.1%})",
        f"Greatest absolute difference: {_greatest(absolute)}{_allowed(atol, rtol, atol)}",
        f"Greatest relative difference: {_greatest(relative)}{_allowed(rtol, rtol, atol)}",
    ]
    return "\n".join(lines)


def _greatest(differences: np.ndarray) -> str:
    place = np.unravel_index(np.argmax(differences), differences.shape)
    value = differences[place]
    number = value.item() if isinstance(value, np.generic) else value
    return f"{number} at index {tuple(int(i) for i in place)}"


def _degree(rtol: float, atol: float) -> str:
    return "close" if rtol or atol else "equal"


def _allowed(tolerance: float, rtol: float, atol: float) -> str:
    return f" (up to {tolerance} allowed)" if rtol or atol else ""
