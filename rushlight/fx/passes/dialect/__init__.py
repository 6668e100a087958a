"""Passes by what graphs are made of."""

from __future__ import annotations

from rushlight.fx.passes.dialect import common

__all__ = ["common"]
