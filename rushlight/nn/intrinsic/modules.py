"""The layers of torch.nn.intrinsic under their other address."""

from rushlight.nn.intrinsic import *  # noqa: F403
from rushlight.nn.intrinsic import __all__ as __all__
