"""Processes that compute together: groups of them, and what they exchange.

init_process_group joins this process with the others of its job. Between processes of one machine
tensors go through shared memory, between machines over TCP; docs/distributed.md tells how. Most
modules are imported when a name of theirs is first used.
"""

from __future__ import annotations

from rushlight.distributed.rendezvous import register_rendezvous_handler as _register
from rushlight.distributed.rendezvous import rendezvous as _rendezvous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.distributed.backend import *  # noqa: F403
    from rushlight.distributed.coalescing import *  # noqa: F403
    from rushlight.distributed.collectives import *  # noqa: F403
    from rushlight.distributed.constants import default_pg_timeout as default_pg_timeout
    from rushlight.distributed.debug_level import *  # noqa: F403
    from rushlight.distributed.device_mesh import *  # noqa: F403
    from rushlight.distributed.errors import *  # noqa: F403
    from rushlight.distributed.file_store import *  # noqa: F403
    from rushlight.distributed.gathering import *  # noqa: F403
    from rushlight.distributed.grad_bucket import GradBucket as GradBucket
    from rushlight.distributed.group_calls import *  # noqa: F403
    from rushlight.distributed.groups import *  # noqa: F403
    from rushlight.distributed.groups import _rank_not_in_group as _rank_not_in_group
    from rushlight.distributed.objects import *  # noqa: F403
    from rushlight.distributed.own_groups import ProcessGroupGloo as ProcessGroupGloo
    from rushlight.distributed.point_to_point import *  # noqa: F403
    from rushlight.distributed.process_group import *  # noqa: F403
    from rushlight.distributed.reduction import ReduceOp as ReduceOp
    from rushlight.distributed.reduction import reduce_op as reduce_op
    from rushlight.distributed.store import *  # noqa: F403
    from rushlight.distributed.subgroups import *  # noqa: F403
    from rushlight.distributed.tcp_store import *  # noqa: F403
    from rushlight.distributed.work import Work as Work

# The function and not the module of the same name, which is imported above already.
rendezvous = _rendezvous
register_rendezvous_handler = _register

# Where names are looked for, in this order.
_HOMES = (
    "groups",
    "own_groups",
    "reduction",
    "backend",
    "errors",
    "constants",
    "store",
    "file_store",
    "tcp_store",
    "work",
    "process_group",
    "collectives",
    "gathering",
    "point_to_point",
    "coalescing",
    "objects",
    "subgroups",
    "device_mesh",
    "grad_bucket",
    "debug_level",
    "group_calls",
)


def __getattr__(name: str) -> Any:
    import importlib.util

    if importlib.util.find_spec(f"rushlight.distributed.{name}") is not None:
        return importlib.import_module(f"rushlight.distributed.{name}")
    if name == "__all__":  # for import *
        return sorted({*_OWN, *(n for home in _homes() for n in home.__all__)})
    if not name.startswith("__"):
        for home in _homes():
            if hasattr(home, name) and (name in home.__all__ or name in _OLD):
                value = globals()[name] = getattr(home, name)
                return value
    raise AttributeError(f"module 'rushlight.distributed' has no attribute '{name}'")


def _homes() -> Any:
    import importlib

    return (importlib.import_module(f"rushlight.distributed.{home}") for home in _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})


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


is_mpi_available = is_ucc_available = is_xccl_available = _is_not_available

_OWN = (
    "is_available",
    "is_gloo_available",
    "is_mpi_available",
    "is_ucc_available",
    "is_xccl_available",
    "register_rendezvous_handler",
    "rendezvous",
)
_OLD = (
    "_all_gather_base",
    "_coalescing_manager",
    "_get_default_group",
    "_rank_not_in_group",
    "_reduce_scatter_base",
    "_Work",
)  # used by programs
