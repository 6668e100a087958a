"""torch.ao.nn.qat.dynamic: layers that train for inputs rounded by their own range."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn._addresses import lead

__all__ = ["Linear"]


class Linear(nnqat.Linear):
    """nn.Linear whose weight is rounded, for inputs that are rounded by their own range.

    Example:
        >>> qconfig = torch.ao.quantization.default_dynamic_qat_qconfig
        >>> layer = torch.ao.nn.qat.dynamic.Linear(2, 3, qconfig=qconfig)
        >>> layer(torch.ones(1, 2)).shape
        torch.Size([1, 3])
    """

    def _wants_rounding(self, qconfig: Any) -> None:
        super()._wants_rounding(qconfig)
        activation = qconfig.activation()
        observer = getattr(activation, "activation_post_process", activation)
        if getattr(observer, "averaging_constant", None) != 1:
            raise ValueError(
                "Dynamic QAT requires a memoryless observer. This means a MovingAverage observer "
                "with averaging constant equal to 1, such as default_dynamic_qat_qconfig has."
            )


lead("modules modules.linear", __name__)
