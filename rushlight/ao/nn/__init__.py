"""torch.ao.nn: layers that are quantized, or on the way there.

quantized computes with 8-bit integers, quantized.dynamic takes and gives floats, intrinsic has
layers fused with what follows them, qat trains with fake quantization.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from rushlight.ao.nn import intrinsic, qat, quantized

__all__ = ["intrinsic", "qat", "quantized"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"rushlight.ao.nn.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
