"""torch.nn.quantizable: the older name of torch.ao.nn.quantizable."""

from rushlight.ao.nn._addresses import repeat
from rushlight.ao.nn.quantizable import *  # noqa: F403
from rushlight.ao.nn.quantizable import __all__ as __all__

repeat("rushlight.ao.nn.quantizable", __name__)
