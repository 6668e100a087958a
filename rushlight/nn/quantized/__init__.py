"""torch.nn.quantized: the older name of torch.ao.nn.quantized."""

from rushlight.ao.nn.quantized import *  # noqa: F403
from rushlight.ao.nn.quantized import __all__ as __all__
from rushlight.nn.quantized import dynamic as dynamic
from rushlight.nn.quantized import functional as functional
