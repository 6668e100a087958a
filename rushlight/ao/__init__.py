"""torch.ao: what makes networks smaller. quantization has the steps, nn the layers, ns measures."""

from __future__ import annotations

from rushlight import _later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.ao import nn, ns, quantization

__all__ = ["nn", "ns", "quantization"]


__getattr__ = _later.imports(__name__, __all__)
