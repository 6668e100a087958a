"""Cutting graphs by marks on their steps, which split_module does by a function."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["split_by_tags"]


def split_by_tags(gm: Any, tags: list[str], *args: Any, **kwargs: Any) -> NoReturn:
    """Refuses to cut a graph.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "split_by_tags: graphs are not cut by the tags of nodes. Use fx.passes.split_module with a "
        "function that returns the part of a node."
    )
