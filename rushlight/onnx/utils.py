"""Exporting to ONNX where older programs look for it."""

from rushlight.onnx import export, is_in_onnx_export

__all__ = ["export", "is_in_onnx_export"]
