"""torch.nn.intrinsic: the older name of torch.ao.nn.intrinsic."""

from rushlight.ao.nn.intrinsic import *  # noqa: F403
from rushlight.ao.nn.intrinsic import __all__ as __all__
from rushlight.nn.intrinsic import qat as qat
from rushlight.nn.intrinsic import quantized as quantized
