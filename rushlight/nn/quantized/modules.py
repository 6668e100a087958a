"""The layers of torch.nn.quantized under their other address."""

from rushlight.nn.quantized import *  # noqa: F403
from rushlight.nn.quantized import __all__ as __all__
