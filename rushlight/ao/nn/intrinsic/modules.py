"""The layers of torch.ao.nn.intrinsic under their other address."""

from rushlight.ao.nn import intrinsic
from rushlight.ao.nn._addresses import lead
from rushlight.ao.nn.intrinsic import *  # noqa: F403
from rushlight.ao.nn.intrinsic import __all__ as __all__

lead("fused", __name__, intrinsic)
