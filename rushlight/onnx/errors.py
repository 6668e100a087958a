"""What torch.onnx raises."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "UnsupportedOperatorError"]


class OnnxExporterError(RuntimeError):
    """A model that has no ONNX form."""


class UnsupportedOperatorError(OnnxExporterError):
    """An op that has none.

    Args:
        name: the op.
        site: the line that calls it.
        reason: which of its arguments are the problem; empty for any.
    """

    def __init__(self, name: str, site: str, reason: str = "") -> None:
        self.name = name
        self.site = site
        what = reason or "it has no ONNX form"
        super().__init__(f"onnx.export: {name} at {site}: {what}. Write that line with other ops.")
