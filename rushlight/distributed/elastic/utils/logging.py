"""Loggers whose level LOGLEVEL of the environment sets."""

from __future__ import annotations

import logging
import os
import sys

from rushlight.distributed.elastic.utils.log_level import get_log_level

__all__ = ["get_logger"]


def get_logger(name: str | None = None) -> logging.Logger:
    """Returns a logger.

    Args:
        name: by default that of the module that asks.

    Example:
        >>> from rushlight.distributed.elastic.utils import get_logger
        >>> get_logger("mine").name
        'mine'
    """
    caller = sys._getframe(1).f_globals.get("__name__", "")
    logger = logging.getLogger(caller if name is None else name)
    logger.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return logger
