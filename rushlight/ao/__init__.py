"""torch.ao: what makes networks smaller. quantization has the steps, nn the layers."""

from __future__ import annotations

from rushlight import _later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.ao import nn, quantization

__all__ = ["nn", "quantization"]


__getattr__ = _later.imports(__name__, __all__)
