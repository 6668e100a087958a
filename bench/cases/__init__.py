"""The benchmark cases: each is a function that takes the framework and returns the call to time.

A case uses only the API that Rushlight and PyTorch share, so that both run the same code. It owns
its inputs; making them is not timed. Goals are ratios to PyTorch's time: at most this. The table
has them in the order of the imports here.
"""

from cases import ops, layers, losses, vision, tensors  # isort: skip
from cases import autograd, models, optim, networks, gpu  # isort: skip
from cases.case import CASES, Call

__all__ = [
    "CASES",
    "Call",
    "autograd",
    "gpu",
    "layers",
    "losses",
    "models",
    "networks",
    "ops",
    "optim",
    "tensors",
    "vision",
]
