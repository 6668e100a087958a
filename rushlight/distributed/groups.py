"""The groups of this process: the one of the whole job, and those made of some of its ranks."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight.distributed.backend import (
    Backend,
    BackendConfig,
    _DistributedBackendOptions,
    _Plugin,
)
from rushlight.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from rushlight.distributed.process_group import BuiltinGroup, ProcessGroup
from rushlight.distributed.rendezvous import rendezvous
from rushlight.distributed.store import HashStore, PrefixStore, Store, seconds_of

if TYPE_CHECKING:
    from rushlight.distributed.mesh import Mesh

__all__ = [
    "GroupMember",
    "destroy_process_group",
    "get_backend",
    "get_backend_config",
    "get_backend_impl",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_initialized",
    "is_torchelastic_launched",
    "new_group",
    "set_timeout",
]


class _State:
    """What init_process_group sets up."""

    default: ProcessGroup | None
    store: Store | None  # of this job
    place: tuple[int, int]  # this process's rank and their number
    mesh: Mesh | None

    def __init__(self) -> None:
        self.default = self.mesh = self.store = None
        self.groups: dict[str, ProcessGroup] = {}  # by name, the default one among them
        self.made: dict[tuple[int, ...], int] = {}  # how many groups of the same ranks there were


_state = _State()
_connecting = threading.Lock()  # several threads may be the first to send


class _Meta(type):
    """Gives a class the attribute WORLD, the default group of the moment."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _state.default


class group(metaclass=_Meta):
    """Holds WORLD, the group of all processes."""


class GroupMember(metaclass=_Meta):
    """Holds WORLD, the group of all processes, and what new_group returns to those outside."""

    NON_GROUP_MEMBER = -100


def is_initialized() -> bool:
    """Returns whether init_process_group was called."""
    return _state.default is not None


def is_torchelastic_launched() -> bool:
    """Returns whether python -m rushlight.distributed.run started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def default_group() -> ProcessGroup:
    """Returns the group of all processes.

    Raises:
        ValueError: before init_process_group.
    """
    if _state.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _state.default


_get_default_group = default_group  # the name that programs know it by


def _get_default_store() -> Store:
    """The store of the group of all processes."""
    default_group()
    assert _state.store is not None
    return _state.store


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: rl.device | int | None = None,
) -> None:
    """Joins this process with the others of the job, and waits for them.

    Args:
        backend: "nccl" for tensors on GPUs, "gloo" for all through the memory of the CPU, or pairs
            like "cpu:gloo,cuda:nccl", which None stands for. "nccl" also takes tensors on the CPU.
            "fake" and others: see Backend.
        init_method: where the processes find each other, see rendezvous; "env://" by default.
        timeout: how long a process waits for another, 30 minutes by default, 10 with "nccl".
        world_size: the number of processes; needed with `store`.
        rank: of this process, from 0; needed with `store`.
        store: a store that all processes share, instead of init_method.
        group_name: ignored.
        pg_options: for backends of your own, see Backend.register_backend.
        device_id: the GPU that this process uses; with it NCCL begins at once, not when a tensor
            comes.

    Raises:
        ValueError: if it was called already, or something is missing for init_method.
        RuntimeError: for a backend that is not available.
        DistNetworkError: if rank 0 cannot be reached.
        DistStoreError: if the others do not come.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_world_size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    config = BackendConfig(Backend.UNDEFINED if backend is None else backend)
    if timeout is None:
        timeout = default_pg_nccl_timeout if backend == Backend.NCCL else default_pg_timeout
    seconds_of(timeout)
    if backend == Backend.FAKE and init_method is None:
        store = HashStore()  # whatever was given, as there is nobody to share it with
    if store is None:
        url = "env://" if init_method is None else init_method
        store, rank, world_size = next(rendezvous(url, rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    elif init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if world_size <= 0:
        raise AssertionError("world_size must be positive if using store")
    if not 0 <= rank < world_size:
        raise AssertionError(f"rank must be from 0 to {world_size - 1} if using store, not {rank}")
    # A store that outlives a job may have the keys of an earlier one.
    job = store.add(f"default_pg/jobs of rank {rank}", 1)
    _state.store = PrefixStore(f"default_pg/{job}", store)
    _state.place = rank, world_size
    _state.made.clear()
    _state.default = _made(
        list(range(world_size)), rank, timeout, "default_pg", config, device_id, pg_options
    )
    _name_rank_in_tracebacks(rank)


def _made(
    ranks: list[int],
    rank: int,
    timeout: timedelta,
    desc: str | None,
    config: BackendConfig,
    device_id: rl.device | int | None,
    pg_options: Any,
) -> ProcessGroup:
    """A group that this process is in, at a position of `ranks`."""
    # Its members alone have to agree on its name, and they have been in the same groups so far.
    number = _state.made[tuple(ranks)] = _state.made.get(tuple(ranks), 0) + 1
    name = f"{','.join(map(str, ranks))} {number}"
    assert _state.store is not None
    device = rl.device("cuda", device_id) if isinstance(device_id, int) else device_id
    gpu = device.index if device is not None and device.type == "cuda" else None
    store = PrefixStore(f"group {name}", _state.store)
    if plugin := config.plugin():
        made = plugged(plugin, config, store, ranks, rank, timeout, name, desc, pg_options)
        _state.groups[name] = made
        return made
    made = BuiltinGroup(
        store,
        rank,
        len(ranks),
        timeout,
        ranks=ranks,
        group_name=name,
        group_desc=desc or "undefined",
        mesh=mesh,
        backend=config,
        device=gpu,
    )
    _state.groups[name] = made
    if gpu is not None and made.cliques is not None:
        made.cliques.whole(gpu)
    return made


def plugged(
    plugin: _Plugin,
    config: BackendConfig,
    store: Store,
    ranks: list[int],
    rank: int,
    timeout: timedelta,
    name: str,
    desc: str | None,
    pg_options: Any,
) -> ProcessGroup:
    """Returns a group of a backend that was registered."""
    if plugin.extended_api:
        told = _DistributedBackendOptions(store, rank, len(ranks), timeout, name, ranks)
        made = plugin.creator_fn(told, pg_options)
    else:
        made = plugin.creator_fn(store, rank, len(ranks), timeout)
    if not isinstance(made, ProcessGroup):
        raise TypeError(
            "init_process_group: the function of a backend must return an instance of a class that "
            f"inherits from ProcessGroup, not {made!r}."
        )
    made.group_name, made.group_desc = name, desc or "undefined"
    made.ranks, made.store, made.backend = ranks, store, config
    made.set_timeout(timeout)
    return made


def mesh() -> Mesh:
    """Returns the connections to the other processes, which are made when they are needed."""
    from rushlight.distributed.mesh import Mesh

    with _connecting:
        if _state.mesh is None:
            assert _state.store is not None
            _state.mesh = Mesh(_state.store, *_state.place)
        return _state.mesh


_hook_before = None


def _name_rank_in_tracebacks(rank: int) -> None:
    """Has each line of a traceback say whose it is: many processes write to one terminal."""
    global _hook_before
    if _hook_before is not None:
        return
    _hook_before = sys.excepthook

    def excepthook(kind: Any, value: Any, traceback: Any) -> None:
        import io

        assert _hook_before is not None
        text, sys.stderr = sys.stderr, io.StringIO()
        try:
            _hook_before(kind, value, traceback)
        finally:
            text, sys.stderr = sys.stderr, text
        name = f"[rank{rank}]: "
        sys.stderr.write("".join(name + line for line in text.getvalue().splitlines(True)))
        sys.stderr.flush()

    sys.excepthook = excepthook


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leaves a group; without an argument, all of them.

    Raises:
        AssertionError: if there is none.
        ValueError: if it is left already.
    """
    global _hook_before
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    if group is None:
        if not is_initialized():
            raise AssertionError("destroy_process_group: there is no group. It was left already.")
        group = default_group()
    if group.group_name not in _state.groups:
        raise ValueError("Invalid process group specified")
    if group is not _state.default:
        _state.groups.pop(group.group_name).shutdown()
        return
    for each in reversed(_state.groups.values()):
        each.shutdown()
    _state.groups.clear()
    if _state.mesh is not None:
        _state.mesh.close()
    _state.default = _state.mesh = _state.store = None
    if _hook_before is not None:
        sys.excepthook, _hook_before = _hook_before, None


def member(group: ProcessGroup | int | None, name: str) -> ProcessGroup | None:
    """Returns the group to work in; None, with a warning, if this process is not in it.

    Args:
        group: a group, None for the default one, or GroupMember.NON_GROUP_MEMBER.
        name: of the function that asks.
    """
    if group is None:
        return default_group()
    if isinstance(group, ProcessGroup):
        return group
    if group == GroupMember.NON_GROUP_MEMBER:
        rank = -1 if _state.default is None else _state.default.rank()
        warnings.warn(
            f"Running {name} on global rank {rank} which does not belong to the given group.",
            stacklevel=3,
        )
        return None
    raise TypeError(f"{name}: group must be a ProcessGroup or None, not {group!r}.")


def get_rank(group: ProcessGroup | None = None) -> int:
    """Returns this process's rank in a group; -1 if it is not in it."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return (default_group() if group is None else group).rank()


def _rank_not_in_group(group: ProcessGroup | int | None) -> bool:
    """Returns whether a group is what new_group gives to those outside of it."""
    return group == GroupMember.NON_GROUP_MEMBER


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Returns the number of processes of a group; -1 if this one is not in it."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return (default_group() if group is None else group).size()


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Returns the rank in a group of a rank of the job.

    Raises:
        ValueError: if it is not in the group.
    """
    if global_rank not in _registered(group).ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Returns the rank in the job of a rank of a group.

    Raises:
        ValueError: if there is no such rank.
    """
    if not 0 <= group_rank < _registered(group).size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def _registered(group: ProcessGroup) -> ProcessGroup:
    if not isinstance(group, ProcessGroup) or group.group_name not in _state.groups:
        raise ValueError(
            f"Group {group} is not registered, please create group with "
            "torch.distributed.new_group API"
        )
    return group


def named(name: str) -> ProcessGroup:
    """Returns the group with this name.

    Raises:
        ValueError: if this process is in none.
    """
    if name not in _state.groups:
        raise ValueError(f"There is no process group named {name!r} that this process is in.")
    return _state.groups[name]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Returns the ranks in the job of a group's processes."""
    return list((default_group() if group is None else group).ranks)


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """Returns the name of a group's backend.

    Raises:
        ValueError: if this process is not in the group.
    """
    return Backend(_own(group).name())


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Returns the backend of each type of device, like "cpu:gloo,cuda:nccl"."""
    return str((default_group() if group is None else group).backend)


def get_backend_impl(
    group: str | ProcessGroup | None = None, device: rl.device | None = None
) -> ProcessGroup:
    """Returns what does the work of a group: the group itself, or the object of your own class.

    Args:
        group: it or its name; the one of all ranks by default.
        device: what it shall serve; any by default.

    Raises:
        ValueError: if this process is not in the group.
        RuntimeError: if the group has no backend for the device.
    """
    found = _own(named(group) if isinstance(group, str) else group)
    return found if device is None else found.get_backend(device)


def set_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    """Sets how long this rank waits for another in what it begins from now on.

    Args:
        timeout: for how long.
        group: in which group; that of all ranks by default.

    Raises:
        ValueError: if this process is not in the group.
    """
    _own(group).set_timeout(timeout)


def _own(group: ProcessGroup | None) -> ProcessGroup:
    """A group that this process is in; the one of all ranks for None."""
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")
    return default_group() if group is None else group


def get_pg_count() -> int:
    """Returns how many groups this process is in."""
    return len(_state.groups)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Returns this process's rank on its machine, LOCAL_RANK of the environment.

    Raises:
        RuntimeError: if it is not set and there is no fallback.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context and "
        "want the code to run locally instead."
    )


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: rl.device | int | None = None,
    sort_ranks: bool = True,
) -> Any:
    """Makes a group of some ranks. They all call it, in the same order; the others may.

    Args:
        ranks: the members' ranks in the job; None for all.
        timeout: how long a rank waits for another; the job's by default.
        backend: as for init_process_group; the job's by default.
        pg_options: as for init_process_group.
        use_local_synchronization: whether those outside get None. In PyTorch they must all call it
            too without this.
        group_desc: what the group is for.
        device_id: as for init_process_group.
        sort_ranks: whether rank 0 of the group is the smallest of `ranks`, else it is the first.

    Returns:
        The group; to those outside GroupMember.NON_GROUP_MEMBER, or None.

    Raises:
        ValueError: if ranks are named twice.
        RuntimeError: if there are no such ranks.
    """
    whole = default_group()
    config = whole.backend if backend is None else BackendConfig(backend)
    timeout = whole.timeout if timeout is None else timeout
    seconds_of(timeout)
    members = list(range(whole.size())) if ranks is None else list(ranks)
    if sort_ranks:
        members.sort()
    if not members or len(members) > whole.size():
        raise ValueError(
            f"new_group: {len(members)} ranks were given. A group has from 1 to {whole.size()}, "
            "the number of ranks of the job."
        )
    if len(set(members)) < len(members):
        raise ValueError(f"new_group: {members} names a rank twice.")
    for rank in members:
        if not 0 <= rank < whole.size():
            raise ValueError(
                f"new_group: rank {rank} does not exist. Ranks go from 0 to {whole.size() - 1}."
            )
    if whole.rank() not in members:
        return None if use_local_synchronization else GroupMember.NON_GROUP_MEMBER
    rank = members.index(whole.rank())
    return _made(members, rank, timeout, group_desc, config, device_id, pg_options)
