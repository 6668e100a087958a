"""Names that PyTorch may still change."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight.distributed.tensor._implicit import implicit_replication
from rushlight.distributed.tensor._local_map import local_map

__all__ = ["implicit_replication", "local_map", "register_sharding"]


def register_sharding(op: Any) -> NoReturn:
    """Refuses to take a rule of how an op treats parts of tensors.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "register_sharding: rules of other ops are not taken. Call the op inside local_map, which "
        "says how its arguments and results lie."
    )
