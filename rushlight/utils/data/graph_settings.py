"""Settings of all steps of a data pipe at once: its shuffles, seeds and shards."""

from __future__ import annotations

import inspect
import random
import warnings
from typing import Any

import rushlight as rl
from rushlight.utils.data.graph import traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: dict[int, tuple[Any, Any]]) -> list[Any]:
    """Returns the pipes of what traverse_dps returned, each once."""
    pipes: dict[int, Any] = {}
    for pipe, sources in graph.values():
        pipes[id(pipe)] = pipe
        pipes.update((id(source), source) for source in get_all_graph_pipes(sources))
    return list(pipes.values())


def _pipes_with(datapipe: Any, method: str) -> list[Any]:
    pipes = get_all_graph_pipes(traverse_dps(datapipe))
    return [pipe for pipe in pipes if callable(getattr(pipe, method, None))]


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: int = 1
) -> Any:
    """Tells the sharding filters of a pipe which part they let through.

    Args:
        datapipe: the pipe.
        num_of_instances: how many parts there are.
        instance_id: the number of the part.
        sharding_group: who divides, one of SHARDING_PRIORITIES or another number.

    Returns:
        The pipe.

    Raises:
        RuntimeError: if one filter reads what another one lets through.
    """
    part = num_of_instances, instance_id
    _apply_sharding(traverse_dps(datapipe), part, sharding_group, False)
    return datapipe


def _apply_sharding(
    graph: dict[int, tuple[Any, Any]], part: tuple[int, int], group: int, is_read_by_filter: bool
) -> None:
    for pipe, sources in graph.values():
        apply = getattr(pipe, "apply_sharding", None)
        if callable(apply):
            if is_read_by_filter:
                raise RuntimeError(
                    "Sharding twice on a single pipeline is likely unintended and will cause data "
                    f"loss. {pipe!r} is read by another filter. Remove one."
                )
            takes_group = len(inspect.signature(apply).parameters) > 2
            apply(*part, *([group] if takes_group else []))
        _apply_sharding(sources, part, group, is_read_by_filter or callable(apply))


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turns the shuffles of a pipe on or off.

    Args:
        datapipe: the pipe.
        shuffle: whether it is shuffled; None leaves it as it is.

    Returns:
        The pipe, with a shuffle at its end if it had none and is to be shuffled.
    """
    if shuffle is None:
        return datapipe
    shufflers = _pipes_with(datapipe, "set_shuffle")
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at "
            "the end. Be aware that the default buffer size might not be sufficient for your task.",
            stacklevel=3,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Gives the steps of a pipe that draw random numbers seeds from a generator; returns it."""
    for pipe in _pipes_with(datapipe, "set_seed"):
        pipe.set_seed(int(rl.empty((), dtype=rl.int64).random_(generator=rng)))
    return datapipe


apply_shuffle_seed = apply_random_seed


def seed_pipes(datapipe: Any, seed: int) -> None:
    """Gives the steps of a pipe that draw random numbers seeds that follow from one."""
    seeds = random.Random(seed)
    for pipe in _pipes_with(datapipe, "set_seed"):
        pipe.set_seed(seeds.getrandbits(63))
