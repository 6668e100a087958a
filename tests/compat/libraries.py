"""What comparing with PyTorch needs: one op in both libraries, what a call of either gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")


# Whether this PyTorch is 2.14 or newer.
IS_LATER = hasattr(pytorch.linalg, "polar")
REMOVED = {"cholesky", "qr"} if IS_LATER else set()  # of the root: they only raise


def function_of(library: Any, row: dict[str, Any]) -> Any:
    """The function of an op in a library, its method, or None."""
    if library is pytorch and row["name"] in REMOVED and row["home"] != "linalg":
        return None
    for home in row["home"].split() if row["function"] else []:
        module = library
        for part in home.split(".") if home != "torch" else []:
            module = getattr(module, part, None)
        if hasattr(module, row["name"]):
            return getattr(module, row["name"])
    return getattr(library.Tensor, row["name"], None)


# Dtypes that NumPy has not, as methods that give one that it has.
WIDER = {"torch.bfloat16": "float", "torch.complex32": "cfloat"}


def described(result: Any) -> Any:
    """A result as what can be compared: tensors as (shape, dtype, values)."""
    if isinstance(result, (list, tuple)):
        return [described(item) for item in result]
    if isinstance(result, (torch.Tensor, pytorch.Tensor)):
        values = None
        if not result.is_meta:
            dense = result if str(result.layout) == "torch.strided" else result.to_dense()
            dense = dense.detach().resolve_conj().resolve_neg()
            wider = WIDER.get(str(dense.dtype))
            dense = getattr(dense, wider)() if wider else dense
            values = dense.numpy(force=True)
        return tuple(result.shape), str(result.dtype), values
    return result if isinstance(result, (bool, int, float, complex, str)) else str(result)


COARSE = {
    "torch.float16": 2e-3,
    "torch.bfloat16": 2e-2,
    "torch.float32": 1e-4,
    "torch.complex64": 1e-4,
}


def same(ours: Any, theirs: Any, tolerance: float) -> bool:
    """Whether two described results agree, numbers within a tolerance for float64."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, list):
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(same(a, b, tolerance) for a, b in pairs)
    if not isinstance(ours, tuple):
        return ours == theirs or ours != ours
    if ours[:2] != theirs[:2] or (ours[2] is None) != (theirs[2] is None):
        return False
    if ours[2] is None:
        return True
    tolerance = COARSE.get(ours[1], tolerance)
    finite = theirs[2][np.isfinite(theirs[2])]
    scale = np.abs(finite).astype(float).max(initial=1.0)
    return np.allclose(ours[2], theirs[2], rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def difference(ours: Any, theirs: Any, tolerance: float) -> str:
    """What differs in two described results, of each item of a list that does.

    Example: "shape (2,), not (1,)", "float64, not float32", "0: values of int64".
    """
    if type(ours) is not type(theirs) or not isinstance(ours, (list, tuple)):
        return f"{ours}, not {theirs}"
    if isinstance(ours, list):
        pairs = list(zip(ours, theirs, strict=False))
        found = [
            f"{k}: {difference(a, b, tolerance)}"
            for k, (a, b) in enumerate(pairs)
            if not same(a, b, tolerance)
        ]
        return ", ".join(found) or f"{len(ours)} items, not {len(theirs)}"
    if ours[0] != theirs[0]:
        return f"shape {ours[0]}, not {theirs[0]}"
    names = [dtype.removeprefix("torch.") for dtype in (ours[1], theirs[1])]
    return f"values of {names[0]}" if names[0] == names[1] else f"{names[0]}, not {names[1]}"


def texts_of(ours, theirs, tolerance):
    """What came of a call in both libraries; of two results, what differs in PyTorch's."""
    results = [result for result in (ours, theirs) if not isinstance(result, Exception)]
    how = " " + difference(ours, theirs, tolerance) if len(results) == 2 else ""
    return tuple(
        f"{type(result).__name__}: {result}" if isinstance(result, Exception) else "gives" + end
        for result, end in [(ours, ""), (theirs, how)]
    )


def is_same(ours, theirs, tolerance):
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return type(ours).__name__ == type(theirs).__name__.lstrip("_")
    return same(ours, theirs, tolerance)
