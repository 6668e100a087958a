"""The layers of torch.nn.quantized under their other address."""

from rushlight.ao.nn._addresses import repeat
from rushlight.nn.quantized import *  # noqa: F403
from rushlight.nn.quantized import __all__ as __all__

repeat("rushlight.ao.nn.quantized.modules", __name__)
