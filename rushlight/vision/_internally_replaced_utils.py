"""Where torchvision's own models find what downloads weights."""

from __future__ import annotations

from rushlight.hub import load_state_dict_from_url

__all__ = ["load_state_dict_from_url"]
