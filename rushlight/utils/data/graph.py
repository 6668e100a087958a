"""What a data pipe is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def traverse_dps(datapipe: Any) -> dict[int, tuple[Any, Any]]:
    """Returns {id: (pipe, the same of the pipes that it reads)}.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper([1]).map(str)
        >>> ((_, sources),) = torch.utils.data.graph.traverse_dps(pipe).values()
        >>> [source for source, _ in sources.values()]
        [IterableWrapperIterDataPipe]
    """
    return _traverse(datapipe, set())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, tuple[Any, Any]]:
    """Returns what traverse_dps does."""
    return traverse_dps(datapipe)


def _traverse(datapipe: Any, seen: set[int]) -> dict[int, tuple[Any, Any]]:
    if id(datapipe) in seen:
        return {}
    seen.add(id(datapipe))
    sources: dict[int, tuple[Any, Any]] = {}
    for source in _pipes_in(vars(datapipe)):
        sources.update(_traverse(source, seen))
    seen.discard(id(datapipe))
    return {id(datapipe): (datapipe, sources)}


def _pipes_in(value: Any) -> Iterator[Any]:
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        yield value
    elif isinstance(value, (list, tuple, set, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _pipes_in(item)
