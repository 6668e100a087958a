"""What of PyTorch's native module libraries reach into, where it means something here.

rushlight.as_torch makes these names of torch._C. Each is a thin call of what is public here.
"""

from __future__ import annotations

from types import SimpleNamespace

import rushlight as rl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What Tensor.to is asked for: (device, dtype, non_blocking, memory_format)."""
    from rushlight.nn.modules.module import _parse_to

    device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
    return None if device is None else rl.device(device), dtype, non_blocking, memory_format


_nn = SimpleNamespace(_parse_to=_parse_to)


def _are_functorch_transforms_active() -> bool:
    """Whether vmap, or a derivative of torch.func, is running."""
    return rl._C._levels()[2]


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _log_api_usage_once(event: str) -> None:
    """Nothing is reported to anyone."""
