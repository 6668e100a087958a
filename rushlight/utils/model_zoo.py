"""The old name of torch.hub's download of weights."""

from __future__ import annotations

from rushlight.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
