"""Calls of functions in other processes: the functions that programs use."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rushlight.distributed.rpc._agent import (
    Agent,
    WorkerInfo,
    _is_current_rpc_agent_set,
    agent,
    set_agent,
)
from rushlight.distributed.rpc._rref import RRef, create_remote, forget_values
from rushlight.distributed.rpc._tape import forget_contexts
from rushlight.distributed.rpc.options import BackendType, TensorPipeRpcBackendOptions
from rushlight.futures import Future

__all__ = [
    "get_rpc_timeout",
    "get_worker_info",
    "init_rpc",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

UNSET_RPC_TIMEOUT = -1.0  # stands for that of init_rpc

_jobs = itertools.count()  # all processes count alike


def _require_initialized(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that raises before init_rpc and after shutdown; libraries decorate theirs."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        agent()
        return func(*args, **kwargs)

    return wrapped


def init_rpc(
    name: str,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: TensorPipeRpcBackendOptions | None = None,
) -> None:
    """Lets this process call functions in the others, and they in it. All processes call this.

    Args:
        name: of this process, different from those of the others.
        backend: accepted for PyTorch's sake.
        rank: the number of this process; from the environment by default.
        world_size: how many there are; from the environment by default.
        rpc_backend_options: settings.

    Raises:
        RuntimeError: if it was called before, or two processes have the same name.
        TypeError: for other settings or backends.

    Example:
        >>> from rushlight.distributed import rpc
        >>> import tempfile
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mktemp()}")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> rpc.rpc_sync("alone", torch.add, args=(torch.ones(2), 3))
        tensor([4., 4.])
        >>> rpc.shutdown()
    """
    if backend is not None and not isinstance(backend, BackendType):
        raise TypeError("Argument backend must be a member of BackendType")
    options = rpc_backend_options
    if options is None:
        options = TensorPipeRpcBackendOptions()
    if not isinstance(options, TensorPipeRpcBackendOptions):
        raise TypeError(
            f"init_rpc: rpc_backend_options is {options!r}, not TensorPipeRpcBackendOptions."
        )
    if not isinstance(name, str) or not name:
        raise TypeError(f"init_rpc: name is {name!r}. It is a text.")
    if _is_current_rpc_agent_set():
        raise RuntimeError("RPC is already initialized. Call shutdown() before.")
    from rushlight.distributed.rendezvous import rendezvous
    from rushlight.distributed.store import PrefixStore

    size = -1 if world_size is None else world_size
    timeout = timedelta(seconds=options.rpc_timeout) if options.rpc_timeout else None
    store, rank, size = next(rendezvous(options.init_method, rank, size))
    if timeout is not None:
        store.set_timeout(timeout)
    job = PrefixStore(f"rpc/{next(_jobs)}", store)
    new = Agent(job, name, rank, size, options.num_worker_threads, options.rpc_timeout)
    set_agent(new)
    new.start()


def shutdown(graceful: bool = True, timeout: float = 0) -> None:
    """Ends the calls of this process.

    Args:
        graceful: whether to wait until all processes call this and no call runs any more.
        timeout: seconds to wait at most, 0 for no limit.

    Raises:
        DistNetworkError: if another process has ended without it.
        RuntimeError: if it takes too long, or init_rpc was not called.
    """
    current = agent()
    try:
        if graceful:
            current.wait_for_all(timeout)
            current.leave()
    finally:
        set_agent(None)
        forget_values()
        forget_contexts()
        current.close()


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """Returns a process by its name; this one by default."""
    return agent().me if worker_name is None else agent().worker(worker_name)


def get_rpc_timeout() -> float:
    """Returns the seconds that a call may take by default."""
    return agent().timeout


def rpc_sync(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Any:
    """Returns func(*args, **kwargs), computed in another process.

    Function, arguments and result go as pickles: a function by the name under which the other
    process imports it, tensors as copies.

    Args:
        to: the process: its name, its number or its WorkerInfo.
        func: a function that pickle can name.
        args: its arguments.
        kwargs: its keyword arguments.
        timeout: seconds that it may take, 0 for no limit; that of init_rpc by default.

    Raises:
        Exception: what the function raised, of the same class, with the traceback there as text.
        RuntimeError: if it takes too long, or there is no such process.
        DistNetworkError: if the process has ended.
    """
    return rpc_async(to, func, args, kwargs, timeout).wait()


def rpc_async(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Future:
    """Begins func(*args, **kwargs) in another process, and returns its future; see rpc_sync."""
    current = agent()
    return current.call(current.worker(to), func, args, kwargs, timeout)


def remote(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef:
    """Begins func(*args, **kwargs) in a process, and returns a reference to the result there.

    See rpc_sync for the arguments. What the function raises, RRef.to_here raises.
    """
    return create_remote(agent().worker(to), func, args, kwargs, timeout)
