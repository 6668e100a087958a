"""What the transforms share that are done with a probability."""

from __future__ import annotations

from typing import Any

from rushlight.nn import Module
from rushlight.vision.transforms._draws import chance


class WithProbability(Module):
    """Base class: a subclass says in _changed what it does to an image.

    Args:
        p: the probability of doing it.
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return self._changed(img) if chance(self.p) else img

    def _changed(self, img: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"
