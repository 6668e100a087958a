"""torch.nn.quantized.dynamic: the older name of torch.ao.nn.quantized.dynamic."""

from rushlight.ao.nn.quantized.dynamic import *  # noqa: F403
from rushlight.ao.nn.quantized.dynamic import __all__ as __all__
