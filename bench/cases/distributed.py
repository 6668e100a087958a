"""Two processes that reduce a tensor: the one that is timed, and peer.py, which waits for it."""

from __future__ import annotations

import importlib
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from cases.case import MILLIONS_4, Call, case

PEER = Path(__file__).parents[1] / "peer.py"
joined: list[tuple[Any, subprocess.Popen[bytes]]] = []  # the last case's framework and peer


def join(torch: Any, port: int, rank: int) -> Any:
    """Joins the two, which share the cores: each has one thread."""
    torch.set_num_threads(1)
    dist = importlib.import_module(f"{torch.__name__}.distributed")
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    return dist


def leave() -> None:
    """Ends the other process of the last case."""
    while joined:
        dist, peer = joined.pop()
        dist.destroy_process_group()
        peer.wait()


def all_reduce(torch: Any, count: int) -> Call:
    leave()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(PEER), torch.__name__, str(port), str(count)]
    peer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    threads = torch.get_num_threads()
    dist = join(torch, port, 0)
    torch.set_num_threads(threads)
    joined.append((dist, peer))
    x = torch.zeros(count)

    def call() -> None:
        torch.set_num_threads(1)
        dist.all_reduce(x)
        torch.set_num_threads(threads)

    return call if count > 1000 else lambda: dist.all_reduce(x)


@case("all_reduce of 2 processes, 8 floats", "distributed", 0.5)
def small(torch: Any) -> Call:
    return all_reduce(torch, 8)


@case("all_reduce of 2 processes, 4M floats", "distributed", 0.5)
def large(torch: Any) -> Call:
    return all_reduce(torch, MILLIONS_4)
