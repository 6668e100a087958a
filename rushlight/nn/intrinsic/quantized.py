"""torch.nn.intrinsic.quantized: the older name of torch.ao.nn.intrinsic.quantized."""

from rushlight.ao.nn._addresses import repeat
from rushlight.ao.nn.intrinsic.quantized import *  # noqa: F403
from rushlight.ao.nn.intrinsic.quantized import __all__ as __all__

repeat("rushlight.ao.nn.intrinsic.quantized", __name__)
