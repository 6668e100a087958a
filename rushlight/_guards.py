"""Which mode of fake tensors is on, for libraries that ask; none ever is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> None:
    """Returns None: no mode of fake tensors is on."""


def detect_fake_mode(inputs: Any = None) -> None:
    """Returns None: no tensor is fake."""
