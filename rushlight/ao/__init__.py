"""torch.ao: what makes networks smaller.

quantization has the steps to integers, nn the layers, ns measures of what they change; pruning
makes weights sparse.
"""

from __future__ import annotations

from rushlight import _later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.ao import nn, ns, pruning, quantization

__all__ = ["nn", "ns", "pruning", "quantization"]


__getattr__ = _later.imports(__name__, __all__)
