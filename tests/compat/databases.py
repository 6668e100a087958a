"""What calls from PyTorch's test databases need: their arguments and functions with our objects.

The databases lie in torch.testing._internal: PyTorch's own tests are made of them. Differences
between what came of a call in both libraries have the texts of differences.py.
"""

from __future__ import annotations

import importlib
import sys
import types
import unittest
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compat.libraries import described

import rushlight as torch

pytorch = pytest.importorskip("torch")
# The databases inherit from a class of this module, which is for PyTorch's developers.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase))

# They freeze the switches of PyTorch's back ends, which other tests here set.
importlib.import_module("torch.testing._internal.common_utils")
pytorch.backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True

BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}
HOMES = ["", "linalg.", "nn.functional.", "special.", "fft.", "Tensor."]


class ConversionError(Exception):
    """An argument that we have nothing like: complex32, sparse, a generator, more than 64 dims."""


def found_at(root: Any, path: str) -> Any:
    for part in path.split("."):
        root = getattr(root, part, None)
    return root


def converted_tensor(theirs: Any) -> Any:
    """Our tensor of the same elements, strides and conjugation."""
    dtype = getattr(torch, str(theirs.dtype)[6:], None)
    if theirs.layout is not pytorch.strided or dtype is None or theirs.ndim > 64:
        raise ConversionError
    if theirs.is_meta:
        return torch.empty_strided(theirs.shape, theirs.stride(), dtype=dtype, device="meta")
    plain = theirs.detach().resolve_conj().resolve_neg()
    bits = plain.contiguous().view(getattr(pytorch, BITS[plain.element_size()]))
    ours = torch.from_numpy(bits.numpy().copy()).view(dtype)
    one = tuple(slice(0, 1) if step == 0 else slice(None) for step in plain.stride())
    strided = torch.empty_strided(plain.shape, plain.stride(), dtype=dtype)
    strided[one].copy_(ours[one])
    if theirs.is_conj():
        strided = strided.conj_physical().conj()
    return strided.requires_grad_(theirs.requires_grad)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """An argument with change(x) for everything in it that is not a list, tuple or dict."""
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return change(value)


class Conversion:
    """Converts arguments; one tensor stays one. `pairs` has all tensors, ours and PyTorch's."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []

    def __call__(self, value: Any) -> Any:
        return mapped(value, self._item)

    def _item(self, value: Any) -> Any:
        if isinstance(value, pytorch.Tensor):
            return self._tensor(value)
        if isinstance(value, pytorch.device):
            return torch.device(str(value))
        if isinstance(value, (pytorch.dtype, pytorch.memory_format, pytorch.layout)):
            if not hasattr(torch, str(value)[6:]):
                raise ConversionError
            return getattr(torch, str(value)[6:])
        if isinstance(value, pytorch.Generator):
            raise ConversionError
        return our_function(value) if callable(value) else value

    def _tensor(self, theirs: Any) -> Any:
        for ours, known in self.pairs:
            if known is theirs:
                return ours
        self.pairs.append((converted_tensor(theirs), theirs))
        return self.pairs[-1][0]


def our_function(theirs: Any) -> Any:
    """Our function of the same public name; a Python one of the databases, run with our module."""
    for home in HOMES:
        path = home + getattr(theirs, "__name__", "")
        if found_at(pytorch, path) is theirs:
            return found_at(torch, path)
    home = getattr(theirs, "__module__", None) or ""
    if not home.startswith("torch"):
        return theirs
    if not isinstance(theirs, types.FunctionType) or not home.startswith("torch.testing"):
        raise ConversionError
    cells = [cell.cell_contents for cell in theirs.__closure__ or ()]
    ours = types.FunctionType(
        theirs.__code__,
        {**theirs.__globals__, "torch": torch},
        None,
        theirs.__defaults__,
        tuple(types.CellType(our_function(c) if callable(c) else c) for c in cells),
    )
    ours.__kwdefaults__ = theirs.__kwdefaults__
    return ours


def attempt(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What a call gives, or the exception that it raises."""
    try:
        return function(*args, **options)
    except Exception as error:
        return error


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return [value] if isinstance(value, (torch.Tensor, pytorch.Tensor)) else []


def waves(library: Any, like: Any) -> Any:
    """A tensor of a shape and dtype in which all elements differ."""
    count = like.numel()
    values = np.cos(np.arange(count)) + (1j * np.sin(np.arange(count)) if like.is_complex() else 0)
    return library.from_numpy(values.reshape(tuple(like.shape))).to(like.dtype)


def gradients(library: Any, result: Any, leaves: list[Any]) -> list[Any]:
    """Those of a sum that weights all elements of the results differently."""
    results = [tensor for tensor in tensors_in(result) if tensor.requires_grad]
    weights = [waves(library, tensor) for tensor in results]
    return list(library.autograd.grad(results, leaves, weights, allow_unused=True))


def tangents(library: Any, call: Callable[..., Any], args: Any, options: Any) -> list[Any]:
    """The tangents of the results when all leaves of the arguments have one."""
    forward_ad = library.autograd.forward_ad

    def dual(value: Any) -> Any:
        if not isinstance(value, library.Tensor) or not value.requires_grad:
            return value
        return forward_ad.make_dual(value.detach(), waves(library, value))

    with forward_ad.dual_level():
        results = tensors_in(call(*mapped(args, dual), **mapped(options, dual)))
        duals = [forward_ad.unpack_dual(tensor) for tensor in results]
    return [library.zeros_like(d.primal) if d.tangent is None else d.tangent for d in duals]


def strides_of(result: Any) -> list[str]:
    """The strides of results that fill their memory, where there are several elements."""
    return [
        str([step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1])
        for tensor in tensors_in(result)
        if tensor.numel() > 1 and str(tensor.layout) == "torch.strided"
    ]


def described_or_raised(value: Any) -> Any:
    return value if isinstance(value, Exception) else described(value)


def outcomes(library: Any, call: Any, args: Any, options: Any, sought: set[str]) -> dict[str, Any]:
    """What comes of a call, described: the result as "", and what is sought besides."""
    result = attempt(call, *args, **options)
    found: dict[str, Any] = {"": described_or_raised(result)}
    if isinstance(result, Exception):
        return found
    if "strides" in sought:
        found["strides"] = strides_of(result)
    if "gradient" in sought:
        found["requires_grad"] = [tensor.requires_grad for tensor in tensors_in(result)]
        if any(found["requires_grad"]):
            leaves = [t for t in tensors_in([*args, *options.values()]) if t.requires_grad]
            found["gradient"] = described_or_raised(attempt(gradients, library, result, leaves))
            if "tangent" in sought:
                found["tangent"] = described_or_raised(
                    attempt(tangents, library, call, args, options)
                )
    return found


def without_needless_zeros(ours: Any, theirs: Any) -> Any:
    """Gradients of ours, without zeros in place of which PyTorch gives none."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return ours
    return [
        "None" if expected == "None" != mine and not np.any(mine[2]) else mine
        for mine, expected in zip(ours, theirs, strict=True)
    ]
