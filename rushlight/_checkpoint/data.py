"""Data of NumPy and of the standard library in a checkpoint, for load with weights_only=False.

Owns which of their classes a file may name then, and the functions that make their objects, which
check every argument, as those of rebuild.py do. Arrays of objects are not among them.
Invariant: nothing here runs code that the file chose, or reads beyond the bytes of the file.
"""

from __future__ import annotations

import argparse
import datetime
import math
import pathlib
import re
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from rushlight._checkpoint.rebuild import check, check_key, set_attributes
from rushlight.torch_version import TorchVersion

_FACTORIES = (list, dict, set, tuple, int, float, str, bool, OrderedDict, defaultdict, deque)
_PATHS = ("PurePosixPath", "PosixPath", "PureWindowsPath", "WindowsPath")
_ARRAY_DTYPE = re.compile(r"[biufcSU][0-9]{1,9}")
_MAX_DIMS = 64


class Kinds:
    """What the machine of unpickling.py needs to know of them.

    Args:
        with_arrays: whether NumPy's are among them.
    """

    def __init__(self, with_arrays: bool) -> None:
        self.names: dict[str, Any] = {
            **{f"builtins.{kind.__name__}": kind for kind in (*_FACTORIES[:8], *_BUILTINS)},
            "argparse.Namespace": argparse.Namespace,
            "types.SimpleNamespace": types.SimpleNamespace,
            "torch.torch_version.TorchVersion": TorchVersion,
            "rushlight.torch_version.TorchVersion": TorchVersion,
            "collections.defaultdict": defaultdict,
            "collections.deque": deque,
            **{f"datetime.{kind.__name__}": kind for kind in _TIMES},
        }
        self.calls: dict[int, Callable[..., Any]] = {
            id(argparse.Namespace): lambda: argparse.Namespace(),
            id(types.SimpleNamespace): lambda: types.SimpleNamespace(),
            id(TorchVersion): _make_version,
            id(defaultdict): _make_defaultdict,
            id(deque): _make_deque,
            **{id(kind): make for kind, make in _BUILTINS.items()},
            **{id(kind): make for kind, make in _TIMES.items()},
        }
        self.states: dict[type, Callable[[Any, Any], None]] = {
            argparse.Namespace: set_attributes,
            types.SimpleNamespace: set_attributes,
        }
        for name in _PATHS:
            kind = _path_class(name)
            for module in ("pathlib", "pathlib._local"):  # the latter in Python 3.13
                self.names[f"{module}.{name}"] = kind
            self.calls[id(kind)] = _path_maker(kind)
        if with_arrays:
            self._add_arrays()

    def _add_arrays(self) -> None:
        import numpy as np

        self.names["numpy.ndarray"] = np.ndarray
        self.names["numpy.dtype"] = np.dtype
        for core in ("numpy.core", "numpy._core"):  # before version 2, and since
            self.names[f"{core}.multiarray._reconstruct"] = _make_array
            self.names[f"{core}.multiarray.scalar"] = _make_scalar
            self.names[f"{core}.numeric._frombuffer"] = _make_array_of_buffer
        for function in (_make_array, _make_scalar, _make_array_of_buffer):
            self.calls[id(function)] = function
        self.calls[id(np.dtype)] = _make_dtype
        self.states[np.ndarray] = _fill_array
        for text in (
            "b1",
            *(f"{kind}{n}" for kind in "iu" for n in (1, 2, 4, 8)),
            "f2",
            "f4",
            "f8",
        ):
            self.states[type(np.dtype(text))] = _set_byte_order
        for text in ("c8", "c16", "S1", "U1"):
            self.states[type(np.dtype(text))] = _set_byte_order


# The standard library


def _make_defaultdict(factory: Any = None) -> defaultdict[Any, Any]:
    is_known = factory is None or any(factory is known for known in _FACTORIES)
    check(is_known, "a defaultdict makes what is not a plain container or number")
    return defaultdict(factory)


def _make_version(version: Any) -> TorchVersion:
    check(type(version) is str, "a version is not a text")
    return TorchVersion(version)


def _make_deque(items: Any = (), maxlen: Any = None) -> deque[Any]:
    check(type(items) in (tuple, list), "a deque is made of a tuple or a list")
    check(maxlen is None or type(maxlen) is int, "the length of a deque is not a number")
    return deque(items, maxlen)


def _make_slice(*bounds: Any) -> slice:
    are_plain = all(bound is None or type(bound) in (int, float) for bound in bounds)
    check(len(bounds) == 3 and are_plain, "a slice is made of three numbers")
    return slice(*bounds)


def _make_range(*bounds: Any) -> range:
    check(all(type(bound) is int for bound in bounds), "a range is made of integers")
    return range(*bounds)


def _make_frozenset(items: Any) -> frozenset[Any]:
    check(type(items) is list, "a frozenset is made of a list")
    return frozenset(check_key(item) for item in items)


_BUILTINS: dict[Any, Callable[..., Any]] = {
    slice: _make_slice,
    range: _make_range,
    frozenset: _make_frozenset,
}


def _time_maker(kind: Any) -> Callable[..., Any]:
    def make(*arguments: Any) -> Any:
        are_plain = all(type(argument) in (int, bytes) for argument in arguments)
        check(are_plain, f"a {kind.__name__} is made of numbers")
        return kind(*arguments)

    return make


_TIMES: dict[Any, Callable[..., Any]] = {
    kind: _time_maker(kind)
    for kind in (datetime.date, datetime.time, datetime.datetime, datetime.timedelta)
}


def _path_class(name: str) -> Any:
    """The class of that name, or the one that does the same without files of this system."""
    is_foreign = name == ("PosixPath" if sys.platform == "win32" else "WindowsPath")
    return getattr(pathlib, f"Pure{name}" if is_foreign else name)


def _path_maker(kind: Any) -> Callable[..., Any]:
    def make(*parts: Any) -> Any:
        check(all(type(part) is str for part in parts), "a path is made of texts")
        return kind(*parts)

    return make


# NumPy


def _make_dtype(text: Any, align: Any = False, copy: Any = True) -> Any:
    import numpy as np

    is_known = type(text) is str and _ARRAY_DTYPE.fullmatch(text) is not None
    check(is_known, "an array of NumPy has a dtype that is not of numbers or texts")
    return np.dtype(text, copy=True)  # type: ignore[call-overload]


def _set_byte_order(dtype: Any, state: Any) -> None:
    """Sets what a dtype of _make_dtype lacks: the order of bytes, the second part of its state."""
    is_plain = type(state) is tuple and len(state) == 8 and state[2:5] == (None, None, None)
    check(is_plain and state[1] in ("<", ">", "|", "="), "a dtype of NumPy is damaged")
    dtype.__setstate__(dtype.newbyteorder(state[1]).__reduce__()[2])


def _check_dtype(dtype: Any) -> None:
    import numpy as np

    is_plain = isinstance(dtype, np.dtype) and dtype.kind in "biufcSU"
    check(is_plain, "an array of NumPy has no dtype of numbers or texts")


def _check_shape(shape: Any, dtype: Any, nbytes: int) -> None:
    check(type(shape) is tuple and len(shape) <= _MAX_DIMS, "the shape of an array is not a tuple")
    are_sizes = all(type(size) is int and size >= 0 for size in shape)
    check(are_sizes, "the shape of an array is not made of sizes")
    check(math.prod(shape) * dtype.itemsize == nbytes, "an array has another size than its bytes")


def _make_array(kind: Any, shape: Any, code: Any) -> Any:
    """Stands for _reconstruct: an empty array, which _fill_array gives its elements."""
    import numpy as np

    check(kind is np.ndarray, "an array of NumPy has an unknown class")
    return np.ndarray((0,), np.int8)


def _fill_array(array: Any, state: Any) -> None:
    check(type(state) is tuple and len(state) == 5, "an array of NumPy is damaged")
    parts: Any = state
    _, shape, dtype, is_fortran, data = parts
    _check_dtype(dtype)
    check(type(data) is bytes and type(is_fortran) is bool, "an array of NumPy holds no bytes")
    _check_shape(shape, dtype, len(data))
    array.__setstate__((1, shape, dtype, is_fortran, data))


def _make_array_of_buffer(data: Any, dtype: Any, shape: Any, order: Any) -> Any:
    """Stands for _frombuffer, which protocol 5 names."""
    import numpy as np

    _check_dtype(dtype)
    check(type(data) in (bytes, bytearray) and order in ("C", "F"), "an array holds no bytes")
    _check_shape(shape, dtype, len(data))
    return np.frombuffer(bytearray(data), dtype).reshape(shape, order=order)


def _make_scalar(dtype: Any, data: Any) -> Any:
    import numpy as np

    _check_dtype(dtype)
    is_one = type(data) is bytes and len(data) == dtype.itemsize
    check(is_one, "a number of NumPy has another size than its dtype")
    return np.frombuffer(data, dtype)[0]
