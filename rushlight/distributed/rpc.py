"""Remote procedure calls between processes, which are not there; libraries ask whether they are."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["init_rpc", "is_available"]


def is_available() -> bool:
    """Returns False."""
    return False


def _is_current_rpc_agent_set() -> bool:
    return False


def init_rpc(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError(
        "init_rpc: there are no remote procedure calls. Use the collectives of torch.distributed."
    )
