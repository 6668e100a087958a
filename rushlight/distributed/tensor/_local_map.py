"""Functions of ranks' own parts, called with DTensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rushlight import Tensor
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor._api import DTensor
from rushlight.distributed.tensor.placement_types import Placement
from rushlight.utils import _pytree

Placements = Sequence[Placement] | None  # of one tensor; None for what is no tensor

__all__ = ["local_map"]


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Placements | tuple[Placements, ...] = None,
    in_placements: tuple[Placements, ...] | None = None,
    in_grad_placements: tuple[Placements, ...] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable[..., Any]:
    """Makes a function of this rank's parts one of DTensors.

    Without DTensors among its arguments it is called as it is.

    Args:
        func: takes and returns plain tensors, among other things; without it a decorator is made.
        out_placements: how a result lies; a tuple of these if there are several.
        in_placements: how each argument must lie, None for what is no DTensor.
        in_grad_placements: how the gradient of each argument will lie; see DTensor.to_local.
        device_mesh: of the results; that of the first DTensor by default.
        redistribute_inputs: whether arguments that lie otherwise are moved.

    Raises:
        ValueError: when it is called, if arguments or results are not as many as their placements,
            or an argument lies otherwise.
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )

    @functools.wraps(func)
    def on_parts(*args: Any, **kwargs: Any) -> Any:
        given, structure = _pytree.tree_flatten(args)
        places = _one_for_each("in_placements", in_placements, given)
        grads = _one_for_each("in_grad_placements", in_grad_placements, given)
        parts = []
        mesh = device_mesh
        is_distributed = False
        for value, place, grad in zip(given, places, grads, strict=True):
            if isinstance(value, DTensor):
                is_distributed = True
                mesh = mesh or value.device_mesh
                value = _moved(value, place, redistribute_inputs)
                value = value.to_local(grad_placements=grad)
            parts.append(value)
        made = func(*_pytree.tree_unflatten(parts, structure), **kwargs)
        if not is_distributed:
            return made
        results, structure = _pytree.tree_flatten(made)
        each = out_placements if isinstance(out_placements, tuple) else (out_placements,)
        return _pytree.tree_unflatten(
            [
                DTensor.from_local(result, mesh, place) if isinstance(result, Tensor) else result
                for result, place in zip(
                    results, _one_for_each("out_placements", each, results), strict=True
                )
            ],
            structure,
        )

    return on_parts


def _one_for_each(name: str, placements: Sequence[Any] | None, values: list[Any]) -> Sequence[Any]:
    if placements is None:
        return [None] * len(values)
    if len(placements) != len(values):
        raise ValueError(
            f"local_map: {name} are {len(placements)}, but there are {len(values)} values. Give "
            "one for each, None for what is no tensor."
        )
    return placements


def _moved(value: DTensor, place: Placements, may_move: bool) -> DTensor:
    if place is None or tuple(place) == tuple(value.placements):
        return value
    if not may_move:
        raise ValueError(
            f"local_map: an argument lies in {tuple(value.placements)}, but in_placements say "
            f"{tuple(place)}. Redistribute it, or pass redistribute_inputs=True."
        )
    return value.redistribute(placements=place)
