"""Two processes that reduce a tensor: the one that is timed, and another that always waits for it.

Run as a program it is the other one: distributed.py FRAMEWORK PORT COUNT.
"""

from __future__ import annotations

import importlib
import socket
import subprocess
import sys
from typing import Any

if __name__ != "__main__":
    from cases.case import MILLIONS_4, Call, case


def join(torch: Any, port: int, rank: int) -> Any:
    """Joins the two, with the cores shared out between them."""
    torch.set_num_threads(1)
    dist = importlib.import_module(f"{torch.__name__}.distributed")
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    return dist


def wait_for_ever(framework: str, port: int, count: int) -> None:
    torch = importlib.import_module(framework)
    dist = join(torch, port, 1)
    x = torch.zeros(count)
    while True:
        try:
            dist.all_reduce(x)
        except RuntimeError:
            return  # the other has ended


def all_reduce(torch: Any, count: int) -> Call:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = [sys.executable, __file__, torch.__name__, str(port), str(count)]
    subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    threads = torch.get_num_threads()
    dist = join(torch, port, 0)
    torch.set_num_threads(threads)
    x = torch.zeros(count)

    def call() -> None:
        torch.set_num_threads(1)
        dist.all_reduce(x)
        torch.set_num_threads(threads)

    return call if count > 1000 else lambda: dist.all_reduce(x)


if __name__ == "__main__":
    wait_for_ever(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
else:

    @case("all_reduce of 2 processes, 8 floats", "distributed", 0.5)
    def small(torch: Any) -> Call:
        return all_reduce(torch, 8)

    @case("all_reduce of 2 processes, 4M floats", "distributed", 0.5)
    def large(torch: Any) -> Call:
        return all_reduce(torch, MILLIONS_4)
