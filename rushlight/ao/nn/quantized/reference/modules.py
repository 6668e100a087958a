"""The layers of torch.ao.nn.quantized.reference under their other address."""

from rushlight.ao.nn._addresses import lead
from rushlight.ao.nn.quantized import reference
from rushlight.ao.nn.quantized.reference import *  # noqa: F403
from rushlight.ao.nn.quantized.reference import __all__ as __all__

lead("conv linear rnn sparse", __name__, reference)
