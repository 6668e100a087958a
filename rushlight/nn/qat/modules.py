"""The layers of torch.nn.qat under their other address."""

from rushlight.ao.nn._addresses import repeat
from rushlight.nn.qat import *  # noqa: F403
from rushlight.nn.qat import __all__ as __all__

repeat("rushlight.ao.nn.qat.modules", __name__)
