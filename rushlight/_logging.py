"""Which logs PyTorch's compiler writes, as programs set it: none are written here."""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping
    from typing import Any

__all__ = ["getArtifactLogger", "set_logs", "warning_once"]


def set_logs(
    *, all: int | None = None, modules: Mapping[str, Any] | None = None, **logs: int | bool | None
) -> None:
    """Changes nothing.

    Args:
        all: the level of all logs.
        modules: levels by the names of modules.
        logs: levels of parts of PyTorch's compiler, and whether it shows what it makes:
            graph_breaks=True, for one.
    """


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """Returns the logger of what a module makes."""
    import logging

    return logging.getLogger(f"{module_qname}.__{artifact_name}")


@functools.cache
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """Logs a warning the first time that it is called with its arguments."""
    logger_obj.warning(*args, **kwargs)
