"""Processes that compute together: groups of them, and what they exchange.

init_process_group joins this process with the others of its job. Between processes of one machine
tensors go through shared memory, between machines over TCP; docs/distributed.md tells how.
"""

from __future__ import annotations

from rushlight.distributed.backend import *  # noqa: F403
from rushlight.distributed.collectives import *  # noqa: F403
from rushlight.distributed.collectives import _all_gather_base as _all_gather_base
from rushlight.distributed.collectives import _reduce_scatter_base as _reduce_scatter_base
from rushlight.distributed.errors import *  # noqa: F403
from rushlight.distributed.groups import *  # noqa: F403
from rushlight.distributed.objects import *  # noqa: F403
from rushlight.distributed.point_to_point import *  # noqa: F403
from rushlight.distributed.process_group import ProcessGroup as ProcessGroup
from rushlight.distributed.process_group import ProcessGroupGloo as ProcessGroupGloo
from rushlight.distributed.reduce_op import ReduceOp as ReduceOp
from rushlight.distributed.reduce_op import reduce_op as reduce_op
from rushlight.distributed.rendezvous import *  # noqa: F403
from rushlight.distributed.store import FileStore as FileStore
from rushlight.distributed.store import HashStore as HashStore
from rushlight.distributed.store import PrefixStore as PrefixStore
from rushlight.distributed.store import Store as Store
from rushlight.distributed.tcp_store import TCPStore as TCPStore
from rushlight.distributed.work import Work as Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Submodules, and names in them, that are imported when first used.
_SUBMODULES = ("constants", "device_mesh", "distributed_c10d", "elastic", "launch", "nn", "run")
_LAZY = {"DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh"}


def __getattr__(name: str) -> Any:
    import importlib

    if name in _SUBMODULES:
        return importlib.import_module(f"rushlight.distributed.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(f"rushlight.distributed.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'rushlight.distributed' has no attribute '{name}'")


def is_available() -> bool:
    """Returns True: there is a way between processes everywhere.

    Example:
        >>> torch.distributed.is_available()
        True
    """
    return True


def is_gloo_available() -> bool:
    """Returns True: "gloo" is the name of what is here."""
    return True


def _is_not_available() -> bool:
    """Returns False: this backend is not here; see is_backend_available."""
    return False


is_nccl_available = is_mpi_available = is_ucc_available = is_xccl_available = _is_not_available
