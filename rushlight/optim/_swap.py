"""A temporary exchange of what an optimizer works on.

Owns the exchange and its checks; it copies nothing.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from rushlight import Tensor
from rushlight.optim.optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """Lets an optimizer work on other parameters and another state inside a `with` block.

    Args:
        optimizer: one that has taken a step.
        swapin_parameters: tensors in the order of the optimizer's groups.
        swapin_optim_state: a state_dict of the same groups. Its tensors are used as they are.
    Raises:
        RuntimeError: the groups, their options or the number of parameters differ.
    Example:
        >>> weight, other = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.zeros(1))
        >>> optimizer = torch.optim.SGD([weight], lr=1.0, momentum=0.9)
        >>> weight.grad = other.grad = torch.ones(1)
        >>> optimizer.step()
        >>> saved = optimizer.state_dict()
        >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, saved):
        ...     optimizer.step()
        >>> weight.item(), round(other.item(), 4)
        (0.0, -1.9)
    """
    groups = _checked_groups(optimizer, swapin_optim_state)
    params = iter(swapin_parameters.values())
    count = sum(len(group["params"]) for group in groups)
    if len(swapin_parameters) < count:
        raise RuntimeError(
            f"{_NAME}: got {len(swapin_parameters)} parameters, but the optimizer's groups have "
            f"{count}. There must be one for each, in the same order."
        )
    state: defaultdict[Any, Any] = defaultdict(dict)
    swapped = []
    for group in groups:
        chosen = [next(params) for _ in group["params"]]
        for param, position in zip(chosen, group["params"], strict=True):
            state[param] = dict(swapin_optim_state["state"].get(position, {}))
        swapped.append({**group, "params": chosen})
    old_state, old_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        for group, new in zip(optimizer.param_groups, swapped, strict=True):
            group.update(new)
        optimizer.__setstate__({"state": state})
        yield
    finally:
        for group, old in zip(optimizer.param_groups, old_groups, strict=True):
            group.clear()
            group.update(old)
        optimizer.state = old_state


def _checked_groups(optimizer: Optimizer, state_dict: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the groups of a state_dict, which must be like those of the optimizer."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME}: the optimizer has no state. Take a step first.")
    groups, state = state_dict.get("param_groups"), state_dict.get("state")
    if not isinstance(groups, list) or not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME}: the state has no dict 'state' or no list 'param_groups'. "
            "Pass what state_dict returned."
        )
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError(
            f"{_NAME}: the state has {len(groups)} parameter groups, but the optimizer has "
            f"{len(optimizer.param_groups)}. There must be as many."
        )
    for i, (group, own) in enumerate(zip(groups, optimizer.param_groups, strict=True)):
        if set(group) != set(own):
            raise RuntimeError(
                f"{_NAME}: group {i} of the state has the options {sorted(group)}, but the "
                f"optimizer's has {sorted(own)}. They must be the same."
            )
        if len(group["params"]) != len(own["params"]):
            raise RuntimeError(
                f"{_NAME}: group {i} of the state has {len(group['params'])} parameters, but the "
                f"optimizer's has {len(own['params'])}. There must be as many."
            )
    positions = {position for group in groups for position in group["params"]}
    others = [key for key in state if key not in positions]
    if others:
        raise RuntimeError(
            f"{_NAME}: the state has entries of {others}, which are not positions of parameters. "
            "Pass what state_dict returned."
        )
    return groups
