"""torch.nn.quantized.dynamic: the older name of torch.ao.nn.quantized.dynamic."""

from rushlight.ao.nn._addresses import repeat
from rushlight.ao.nn.quantized.dynamic import *  # noqa: F403
from rushlight.ao.nn.quantized.dynamic import __all__ as __all__

repeat("rushlight.ao.nn.quantized.dynamic", __name__)
