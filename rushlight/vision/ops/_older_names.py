"""Modules some of whose layers had other names when their published weights were saved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight import nn


class OlderNames(nn.Module):
    """Loads state_dicts of version 1 under the names that layers have since."""

    _version = 2

    def _older_names(self) -> Iterable[tuple[str, str]]:
        """Pairs: what a layer with a weight and a bias was called, and what it is called now."""
        raise NotImplementedError

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if local_metadata.get("version", 1) < 2:
            for old, new in self._older_names():
                for name in ("weight", "bias"):
                    if f"{prefix}{old}.{name}" in state_dict:
                        value = state_dict.pop(f"{prefix}{old}.{name}")
                        state_dict[f"{prefix}{new}.{name}"] = value
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)
