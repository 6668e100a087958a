"""The layers of torch.ao.nn.quantized under their other address."""

from rushlight.ao.nn import quantized
from rushlight.ao.nn._addresses import lead
from rushlight.ao.nn.quantized import *  # noqa: F403
from rushlight.ao.nn.quantized import __all__ as __all__
from rushlight.ao.nn.quantized import embedding, functional_modules, linear

lead("activation batchnorm conv dropout normalization rnn", __name__, quantized)
lead("embedding_ops", __name__, embedding)
lead("functional_modules", __name__, functional_modules)
lead("linear", __name__, linear)
