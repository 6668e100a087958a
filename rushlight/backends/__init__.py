"""Switches of back ends that programs set; none of them changes what the CPU computes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Backend:
    """Settings that may be read and written freely."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)

    def is_available(self) -> bool:
        """Returns whether the back end can be used: not yet."""
        return False


cudnn = _Backend(enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
cuda = _Backend(matmul=_Backend(allow_tf32=False))
mps = _Backend()
