"""Parameters cut over the processes, which is not there yet; libraries ask isinstance."""

from __future__ import annotations

from rushlight import nn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["FSDPModule", "FullyShardedDataParallel", "fully_shard"]


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name}: parameters cannot be cut over processes yet. Every process keeps a whole model. "
        "Use nn.parallel.DistributedDataParallel, or distributed.tensor.parallel."
    )


class FullyShardedDataParallel(nn.Module):
    """What no module is; making one raises NotImplementedError."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        _refuse("FullyShardedDataParallel")


class FSDPModule:
    """What no module is; programs ask isinstance."""


def fully_shard(module: nn.Module, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    _refuse("fully_shard")
