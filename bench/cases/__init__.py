"""The benchmark cases: each is a function that takes the framework and returns the call to time.

A case uses only the API that Rushlight and PyTorch share, so that both run the same code. It owns
its inputs; making them is not timed. Goals are ratios to PyTorch's time: at most this. The table
has them in the order of the imports here.
"""

from cases import ops, layers, losses, vision, tensors, patterns  # isort: skip
from cases import autograd, models, optim, networks, vision_models, quantized  # isort: skip
from cases import data, distributed, gpu, convolutions, compiled, sweeps  # isort: skip
from cases.case import CASES, Call

# The cases that are also run for the memory that they take, under the name with this in front.
MEMORY = "peak memory: "
MEMORY_CASES = (
    "784-512-512-10 MLP training step, batch 128, Adam",
    "MNIST CNN training step, batch 64",
    "ResNet-18 (CIFAR) training step, batch 16",
    "char-LSTM of 256 training step, 16x32",
    "char-GPT training step, 12x64, AdamW",
)

# The cases that stand in the README.
HEADLINES = {
    "a + b, 8 floats",
    "((a*b).tanh()+b).sum().backward(), 8 floats",
    "add, 4M floats",
    "softmax, 4096x1000",
    "layer_norm, 4096x1000",
    "causal attention forward + backward, 4x8x256x64",
    "matmul 1024x1024, float32",
    "conv 3x3, 64 channels, 8x64x56x56, training step",
    "cross_entropy, forward + backward, 4096x1000",
    "sort, 1M floats",
    "randn, 4M floats",
    "compiled: GELU by hand, 4M floats",
    "compiled: SwiGLU, 1M floats, forward + backward",
    "fft2, 512x512",
    "gradients per sample of an MLP 64-128-10, 256 samples",
    "Adam step, 20 layers of 64",
    "Adam step, one parameter of (10000000,)",
    "10-32-3 MLP training step, batch 16",
    "policy gradient step, 4-128-2 MLP, one state",
    "784-512-512-10 MLP training step, batch 128, Adam",
    "MNIST CNN training step, batch 64",
    "MNIST CNN inference, batch 1",
    "ResNet-18 (CIFAR) training step, batch 16",
    "ResNet-18 (CIFAR) training step, batch 16, bfloat16 autocast",
    "ResNet-18 (CIFAR) inference, batch 1",
    "char-LSTM of 128 training step, 16x32",
    "char-GPT training step, 4 layers of 128, 16x64",
    "char-GPT training step, 12x64, AdamW",
    "char-GPT training step, 12x64, AdamW, bfloat16 autocast",
    "char-GPT inference, batch 1",
    "epoch of 256 images 3x224x224, batches of 32, 2 workers kept",
    "import",
    MEMORY + "ResNet-18 (CIFAR) training step, batch 16",
    MEMORY + "char-GPT training step, 12x64, AdamW",
}

__all__ = [
    "CASES",
    "HEADLINES",
    "MEMORY",
    "MEMORY_CASES",
    "Call",
    "autograd",
    "compiled",
    "convolutions",
    "data",
    "distributed",
    "gpu",
    "layers",
    "losses",
    "models",
    "networks",
    "ops",
    "optim",
    "patterns",
    "quantized",
    "sweeps",
    "tensors",
    "vision",
    "vision_models",
]
