"""Passes over graphs: noting shapes, drawing, splitting, and running several."""

from __future__ import annotations

from rushlight.fx.passes import graph_drawer, infra, shape_prop, split_module

__all__ = ["graph_drawer", "infra", "shape_prop", "split_module"]
