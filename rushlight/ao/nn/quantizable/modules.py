"""The layers of torch.ao.nn.quantizable under their other address."""

from rushlight.ao.nn.quantizable import *  # noqa: F403
from rushlight.ao.nn.quantizable import __all__ as __all__
