"""Processes that compute together: groups of them, and what they exchange."""

from __future__ import annotations

from rushlight.distributed.backend import *  # noqa: F403
from rushlight.distributed.collectives import *  # noqa: F403
from rushlight.distributed.distributed_c10d import *  # noqa: F403
from rushlight.distributed.errors import *  # noqa: F403
from rushlight.distributed.point_to_point import *  # noqa: F403
from rushlight.distributed.process_group import ProcessGroup, ProcessGroupGloo
from rushlight.distributed.reduce_op import ReduceOp, reduce_op
from rushlight.distributed.rendezvous import *  # noqa: F403
from rushlight.distributed.store import FileStore, HashStore, PrefixStore, Store
from rushlight.distributed.tcp_store import TCPStore
from rushlight.distributed.work import Work


def is_available() -> bool:
    """Returns True: there is always a way."""
    return True
