"""torch.ao.nn.quantized: layers that compute with 8-bit integers, on the CPU.

convert() puts them where float layers were; from_float makes one of a layer that was observed.
Layers with products (linear.py, conv.py) run in integers; the others (layers.py) take the way
through floats and round once.
"""

from __future__ import annotations

from rushlight import _later
from rushlight.ao.nn.quantized.conv import Conv1d, Conv2d, Conv3d
from rushlight.ao.nn.quantized.conv_transpose import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from rushlight.ao.nn.quantized.embedding import Embedding, EmbeddingBag
from rushlight.ao.nn.quantized.functional_modules import (
    FloatFunctional,
    FXFloatFunctional,
    QFunctional,
)
from rushlight.ao.nn.quantized.layers import (
    ELU,
    BatchNorm2d,
    BatchNorm3d,
    DeQuantize,
    Dropout,
    GroupNorm,
    Hardswish,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LeakyReLU,
    PReLU,
    Quantize,
    ReLU6,
    Sigmoid,
    Softmax,
)
from rushlight.ao.nn.quantized.linear import Linear

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.ao.nn.quantized._composed import LSTM, MultiheadAttention

__all__ = [
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "ELU",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LSTM",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MultiheadAttention",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]


__getattr__ = _later.imports(
    __name__,
    ("dynamic", "functional", "reference"),
    {"_composed": "LSTM MultiheadAttention"},
)
