"""Calls of modules by the name of PyTorch's module; torch.func has them."""

from rushlight.func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
