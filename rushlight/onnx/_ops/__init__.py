"""Converters of ops to ONNX nodes, one file for each family."""

from __future__ import annotations

from rushlight.onnx._ops import (  # noqa: F401 - each fills the table
    _activation,
    _conv,
    _create,
    _index,
    _loss,
    _matmul,
    _norm,
    _pointwise,
    _recurrent,
    _reduce,
    _resample,
    _shape,
)
from rushlight.onnx._ops._table import TABLE

__all__ = ["TABLE"]
