"""The layers of torch.ao.nn.quantizable under their other address."""

from rushlight.ao.nn import quantizable
from rushlight.ao.nn._addresses import lead
from rushlight.ao.nn.quantizable import *  # noqa: F403
from rushlight.ao.nn.quantizable import __all__ as __all__

lead("activation rnn", __name__, quantizable)
