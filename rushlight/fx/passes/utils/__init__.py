"""Parts of graphs, made modules of their own."""

from __future__ import annotations

from rushlight.fx.passes.utils import fuser_utils, matcher_utils, source_matcher_utils

__all__ = ["fuser_utils", "matcher_utils", "source_matcher_utils"]
