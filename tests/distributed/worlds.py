"""Starts a few processes that run one function as the ranks of a job."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import rushlight as torch
import rushlight.distributed as dist
import rushlight.multiprocessing as mp

TRANSPORTS = ["shared_memory", "tcp"]


def run_world(
    size: int,
    function: Callable[..., Any],
    *args: Any,
    transport: str = "shared_memory",
    timeout: float = 30,
    join: bool = True,
) -> Any:
    """Runs function(rank, *args) in `size` ranks; raises what the first one that fails raised."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    every = (size, store.port, transport, timeout, function, args)
    started = mp.start_processes(_join, every, size, join=join, start_method="fork")
    return started, store  # which the processes need as long as they run


def _join(
    rank: int,
    size: int,
    port: int,
    transport: str,
    timeout: float,
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    os.environ["RUSHLIGHT_TRANSPORT"] = transport
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=timeout))
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=timeout)
    )
    function(rank, *args)
    dist.destroy_process_group()
