"""Transforms by the name of PyTorch's module; torch.func has all of them."""

from rushlight.func import grad, grad_and_value, vmap

__all__ = ["grad", "grad_and_value", "vmap"]
