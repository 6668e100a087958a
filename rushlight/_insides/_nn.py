"""torch._C._nn."""

from __future__ import annotations

import rushlight as rl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What Tensor.to is asked for: (device, dtype, non_blocking, memory_format)."""
    from rushlight.nn.modules.module import _parse_to

    device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
    return None if device is None else rl.device(device), dtype, non_blocking, memory_format
