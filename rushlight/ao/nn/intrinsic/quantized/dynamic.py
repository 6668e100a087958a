"""torch.ao.nn.intrinsic.quantized.dynamic: dynamically quantized layers that end in a relu."""

from __future__ import annotations

from rushlight.ao.nn._addresses import lead
from rushlight.ao.nn.quantized import dynamic as nnqd

__all__ = ["LinearReLU"]


class LinearReLU(nnqd.Linear):
    """relu of a dynamically quantized linear layer."""

    _relu = True


lead("modules modules.linear_relu", __name__)
