"""What passes over graphs have in common, and what runs several of them."""

from __future__ import annotations

from rushlight.fx.passes.infra import partitioner, pass_base, pass_manager

__all__ = ["partitioner", "pass_base", "pass_manager"]
