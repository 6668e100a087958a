"""torch.nn.qat.dynamic: the older name of torch.ao.nn.qat.dynamic."""

from rushlight.ao.nn._addresses import repeat
from rushlight.ao.nn.qat.dynamic import *  # noqa: F403
from rushlight.ao.nn.qat.dynamic import __all__ as __all__

repeat("rushlight.ao.nn.qat.dynamic", __name__)
