"""torch._C._nn."""

from __future__ import annotations

from rushlight._target import read_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What Tensor.to is asked for: (device, dtype, non_blocking, memory_format)."""
    device, dtype, non_blocking, _, memory_format = read_target(args, kwargs)
    return device, dtype, non_blocking, memory_format
