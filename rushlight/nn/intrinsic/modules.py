"""The layers of torch.nn.intrinsic under their other address."""

from rushlight.ao.nn._addresses import repeat
from rushlight.nn.intrinsic import *  # noqa: F403
from rushlight.nn.intrinsic import __all__ as __all__

repeat("rushlight.ao.nn.intrinsic.modules", __name__)
