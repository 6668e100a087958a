"""The layers of torch.ao.nn.quantized under their other address."""

from rushlight.ao.nn.quantized import *  # noqa: F403
from rushlight.ao.nn.quantized import __all__ as __all__
