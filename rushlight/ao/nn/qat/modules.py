"""The layers of torch.ao.nn.qat under their other address."""

from rushlight.ao.nn import qat
from rushlight.ao.nn._addresses import lead
from rushlight.ao.nn.qat import *  # noqa: F403
from rushlight.ao.nn.qat import __all__ as __all__

lead("conv embedding_ops linear", __name__, qat)
