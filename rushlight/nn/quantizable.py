"""torch.nn.quantizable: the older name of torch.ao.nn.quantizable."""

from rushlight.ao.nn.quantizable import *  # noqa: F403
from rushlight.ao.nn.quantizable import __all__ as __all__
