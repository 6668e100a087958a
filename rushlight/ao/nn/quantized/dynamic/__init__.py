"""torch.ao.nn.quantized.dynamic: layers with 8-bit weights that take and give floats.

Each call brings its input into 8 bits by the input's own range, so that nothing is to calibrate.
"""

from __future__ import annotations

from rushlight.ao.nn._addresses import lead
from rushlight.ao.nn.quantized.dynamic.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from rushlight.ao.nn.quantized.dynamic.linear import Linear
from rushlight.ao.nn.quantized.dynamic.rnn import GRU, LSTM, GRUCell, LSTMCell, RNNCell

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "GRU",
    "GRUCell",
    "LSTM",
    "LSTMCell",
    "Linear",
    "RNNCell",
]

lead("modules modules.conv modules.linear modules.rnn", __name__)
