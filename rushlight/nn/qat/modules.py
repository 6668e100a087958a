"""The layers of torch.nn.qat under their other address."""

from rushlight.nn.qat import *  # noqa: F403
from rushlight.nn.qat import __all__ as __all__
