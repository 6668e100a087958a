"""Passes over graphs of any functions."""

from __future__ import annotations

from rushlight.fx.passes.dialect.common import cse_pass

__all__ = ["cse_pass"]
