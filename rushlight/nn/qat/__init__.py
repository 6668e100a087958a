"""torch.nn.qat: the older name of torch.ao.nn.qat."""

from rushlight.ao.nn.qat import *  # noqa: F403
from rushlight.ao.nn.qat import __all__ as __all__
