"""torch.ao.nn.quantizable: layers made of parts that can be observed and quantized one by one.

prepare() puts them where nn.LSTM and nn.MultiheadAttention were, convert() makes them those of
torch.ao.nn.quantized.
"""

from rushlight.ao.nn.quantizable.activation import MultiheadAttention
from rushlight.ao.nn.quantizable.rnn import LSTM, LSTMCell

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
