"""Variables of the environment, free ports, and places in the arguments of programs."""

from __future__ import annotations

import os
import socket
from string import Template

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "local_rank_environment", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """Returns a variable of the environment.

    Raises:
        ValueError: if it is not set.
    """
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port() -> socket.socket:
    """Returns a socket that listens at a free port of this machine.

    Raises:
        OSError: if there is none.

    Example:
        >>> from rushlight.distributed.elastic.utils import get_socket_with_port
        >>> with get_socket_with_port() as listener:
        ...     listener.getsockname()[1] > 0
        True
    """
    return socket.create_server(("localhost", 0), backlog=1)


def local_rank_environment(local_rank: int, sees_own_gpu_alone: bool) -> dict[str, str]:
    """Returns what a process of that rank finds in its environment: LOCAL_RANK.

    Args:
        local_rank: of the process.
        sees_own_gpu_alone: whether it is 0 for all, and CUDA_VISIBLE_DEVICES has one GPU for each.
    """
    if not sees_own_gpu_alone:
        return {"LOCAL_RANK": str(local_rank)}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    gpu = visible[local_rank].strip() if local_rank < len(visible) else ""
    return {"LOCAL_RANK": "0", "CUDA_VISIBLE_DEVICES": gpu or str(local_rank)}


class macros:
    """What stands in the arguments of a program for what is known when it is started."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[object], local_rank: str) -> list[object]:
        """Returns arguments with the rank in its places.

        Example:
            >>> from rushlight.distributed.elastic.utils import macros
            >>> macros.substitute(["--gpu", macros.local_rank], "3")
            ['--gpu', '3']
        """
        return [
            Template(arg).safe_substitute(local_rank=local_rank) if isinstance(arg, str) else arg
            for arg in args
        ]
