"""What launchers and their programs record of what happens: each event a line of JSON in a logger.

Nothing listens by default; the destination "console" is the terminal.
"""

from __future__ import annotations

import logging

from rushlight.distributed.elastic.events.api import (
    Event,
    EventMetadataValue,
    EventSource,
    NodeState,
    RdzvEvent,
)

__all__ = [
    "Event",
    "EventMetadataValue",
    "EventSource",
    "NodeState",
    "RdzvEvent",
    "get_logging_handler",
    "record",
    "record_rdzv_event",
]

_handlers: dict[str, logging.Handler] = {
    "console": logging.StreamHandler(),
    "null": logging.NullHandler(),
}
_loggers: dict[str, logging.Logger] = {}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """Returns where events of a destination go.

    Args:
        destination: "null" for nowhere, or "console" for the terminal.

    Raises:
        KeyError: for another name.
    """
    return _handlers[destination]


def _logger(destination: str) -> logging.Logger:
    if destination not in _loggers:
        logger = logging.getLogger(f"rushlight-events-{destination}")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
        _loggers[destination] = logger
    return _loggers[destination]


def record(event: Event, destination: str = "null") -> None:
    """Records an event.

    Args:
        event: what happened.
        destination: see get_logging_handler.

    Example:
        >>> from rushlight.distributed.elastic import events
        >>> events.record(events.Event("started", events.EventSource.WORKER))
    """
    _logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Records how processes find each other."""
    _logger("null").info(event.serialize())
