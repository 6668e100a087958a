"""Switches of back ends that programs set; none of them changes what the CPU computes."""

from __future__ import annotations

from rushlight import _settings

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


class _Matmul:
    """Settings of matrix products on CUDA."""

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may round their factors to TF32."""
        return _settings.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allow: bool) -> None:
        _settings.set_float32_matmul_precision("high" if allow else "highest")


cudnn = _Backend(enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
cuda = _Backend(matmul=_Matmul())
mps = _Backend()
