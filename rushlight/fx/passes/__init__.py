"""Passes over graphs: noting shapes, drawing, splitting, fusing parts, and running several."""

from __future__ import annotations

from rushlight.fx.passes import (
    dialect,
    fake_tensor_prop,
    graph_drawer,
    infra,
    operator_support,
    shape_prop,
    split_module,
    tools_common,
    utils,
)

__all__ = [
    "dialect",
    "fake_tensor_prop",
    "graph_drawer",
    "infra",
    "operator_support",
    "shape_prop",
    "split_module",
    "tools_common",
    "utils",
]
