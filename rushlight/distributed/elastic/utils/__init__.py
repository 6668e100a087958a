"""Small helpers of launchers."""

from rushlight.distributed.elastic.utils.api import (
    get_env_variable_or_raise,
    get_socket_with_port,
    macros,
)
from rushlight.distributed.elastic.utils.logging import get_logger

__all__ = ["get_env_variable_or_raise", "get_logger", "get_socket_with_port", "macros"]
