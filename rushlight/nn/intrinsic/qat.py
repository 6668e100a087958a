"""torch.nn.intrinsic.qat: the older name of torch.ao.nn.intrinsic.qat."""

from rushlight.ao.nn._addresses import repeat
from rushlight.ao.nn.intrinsic.qat import *  # noqa: F403
from rushlight.ao.nn.intrinsic.qat import __all__ as __all__

repeat("rushlight.ao.nn.intrinsic.qat", __name__)
