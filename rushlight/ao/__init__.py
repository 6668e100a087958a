"""torch.ao: what makes networks smaller. quantization has the steps, nn the layers."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from rushlight.ao import nn, quantization

__all__ = ["nn", "quantization"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"rushlight.ao.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
