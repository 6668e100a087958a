"""Events, which are written as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import ClassVar, Self

__all__ = ["Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue = str | int | float | bool | None


class EventSource(StrEnum):
    """Who records an event."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(StrEnum):
    """How a machine is doing."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _Written:
    """What is written as JSON."""

    _enums: ClassVar[dict[str, type[StrEnum]]]  # of the fields that are no plain values

    @classmethod
    def deserialize(cls, data: str | Self) -> Self:
        """Returns the event of a text of JSON."""
        if isinstance(data, cls):
            return data
        facts = json.loads(str(data))
        facts |= {name: enum(facts[name]) for name, enum in cls._enums.items()}
        return cls(**facts)

    def serialize(self) -> str:
        """Returns it as JSON."""
        return json.dumps(asdict(self))  # pyright: ignore[reportArgumentType]

    def __str__(self) -> str:
        return self.serialize()


@dataclass
class Event(_Written):
    """Something that happened.

    Args:
        name: what.
        source: who records it.
        timestamp: when, in milliseconds since 1970.
        metadata: what else is known.

    Example:
        >>> from rushlight.distributed.elastic.events import Event, EventSource
        >>> event = Event("started", EventSource.WORKER, metadata={"rank": 0})
        >>> Event.deserialize(event.serialize()) == event
        True
    """

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)

    _enums: ClassVar = {"source": EventSource}


@dataclass
class RdzvEvent(_Written):
    """Something that happened while processes found each other.

    Args:
        name: what.
        run_id: the job's name.
        message: in words.
        hostname, pid: of the process.
        node_state: how its machine is doing.
        master_endpoint: where the store is.
        rank: of the machine.
        local_id: of the process on it.
        error_trace: a traceback.
    """

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    _enums: ClassVar = {"node_state": NodeState}
