"""What torch.compile returns in PyTorch, where programs ask for it."""

from __future__ import annotations

from rushlight.nn import Module


class OptimizedModule(Module):
    """What no module is, for torch.compile returns the module itself; programs ask isinstance."""


def is_dynamo_supported() -> bool:
    """Returns False: there is no compiler."""
    return False
