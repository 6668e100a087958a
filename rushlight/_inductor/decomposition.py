"""Forms of ops for PyTorch's compiler, see _decomp."""

from rushlight._decomp import register_decomposition as register_decomposition
