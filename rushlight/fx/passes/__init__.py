"""Passes over graphs: noting shapes, drawing, splitting."""

from __future__ import annotations

from rushlight.fx.passes import graph_drawer, shape_prop, split_module

__all__ = ["graph_drawer", "shape_prop", "split_module"]
