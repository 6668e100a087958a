"""torch.nn.quantized.functional: the older name of torch.ao.nn.quantized.functional."""

from rushlight.ao.nn.quantized.functional import *  # noqa: F403
from rushlight.ao.nn.quantized.functional import __all__ as __all__
