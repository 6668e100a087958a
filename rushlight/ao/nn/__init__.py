"""torch.ao.nn: layers that are quantized, or on the way there.

quantized computes with 8-bit integers, quantized.dynamic takes and gives floats, intrinsic has
layers fused with what follows them, qat trains with fake quantization, quantizable has layers of
parts that are quantized one by one.
"""

from __future__ import annotations

from rushlight import _later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.ao.nn import intrinsic, qat, quantizable, quantized

__all__ = ["intrinsic", "qat", "quantizable", "quantized"]


__getattr__ = _later.imports(__name__, __all__)
