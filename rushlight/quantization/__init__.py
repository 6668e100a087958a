"""torch.quantization: the older name of torch.ao.quantization."""

from rushlight.ao.quantization import *  # noqa: F403
from rushlight.ao.quantization import __all__ as __all__
