"""torch._C._nn: the native functions of torch.nn.functional, under PyTorch's inner name."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._target import read_target


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What Tensor.to is asked for: (device, dtype, non_blocking, memory_format)."""
    device, dtype, non_blocking, _, memory_format = read_target(args, kwargs)
    return device, dtype, non_blocking, memory_format


def __getattr__(name: str) -> Any:
    found = getattr(rl.nn.functional, name, None)
    if name.startswith("_") or isinstance(found, type) or not callable(found):
        raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
    return found
