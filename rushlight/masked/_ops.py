"""The functions of torch.masked under their other address."""

from rushlight.masked._reductions import *  # noqa: F403
from rushlight.masked._reductions import __all__ as __all__
