"""torch.nn.intrinsic.quantized: the older name of torch.ao.nn.intrinsic.quantized."""

from rushlight.ao.nn.intrinsic.quantized import *  # noqa: F403
from rushlight.ao.nn.intrinsic.quantized import __all__ as __all__
