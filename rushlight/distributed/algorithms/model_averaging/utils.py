"""Means of parameters over processes, in one collective."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight import distributed as dist
from rushlight.distributed.groups import _rank_not_in_group
from rushlight.nn import Parameter

__all__ = [
    "average_parameters",
    "average_parameters_or_parameter_groups",
    "get_params_to_average",
]


def average_parameters(params: Iterable[Parameter], process_group: Any) -> None:
    """Replaces parameters by their means over processes, all of which call it.

    Args:
        params: the parameters, alike on all processes.
        process_group: the processes; None for all.
    """
    params = list(params)
    if not params or _rank_not_in_group(process_group):
        return
    with rl.no_grad():
        flat = rl.cat([param.reshape(-1) for param in params])
        dist.all_reduce(flat, group=process_group)
        flat /= dist.get_world_size(process_group)
        for param, mean in zip(params, flat.split([p.numel() for p in params]), strict=True):
            param.copy_(mean.view_as(param))


def get_params_to_average(
    params: Iterable[Parameter] | Iterable[dict[str, Any]],
) -> list[Parameter]:
    """Returns those parameters that have gradients.

    Args:
        params: the parameters, or the groups of an optimizer.

    Raises:
        NotImplementedError: if they are neither.
    """
    found: list[Parameter] = []
    for each in params:
        if not isinstance(each, Parameter | dict):
            raise NotImplementedError(
                f"average_parameters: Parameter input of type {type(each)} is not supported. Give "
                "parameters, or the groups of an optimizer."
            )
        group = [each] if isinstance(each, Parameter) else each["params"]
        found.extend(param for param in group if param.grad is not None)
    return found


def average_parameters_or_parameter_groups(
    params: Iterable[Parameter] | Iterable[dict[str, Any]], process_group: Any
) -> None:
    """Replaces the parameters that have gradients by their means over processes.

    Args:
        params: the parameters, or the groups of an optimizer.
        process_group: the processes; None for all.
    """
    average_parameters(get_params_to_average(params), process_group)
