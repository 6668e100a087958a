"""What save and load ask for its state, and give it back."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """An object with a state dict: a module, an optimizer, a program's own."""

    def state_dict(self) -> dict[str, Any]:
        """Returns its state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Takes its state back."""
        ...


def states_of(state_dict: Any, function: str) -> dict[str, Any]:
    """Returns a state dict with the states of objects in the place of the objects.

    Args:
        state_dict: the dict.
        function: who asks, for errors.

    Raises:
        TypeError: if it is no dict.
    """
    if not isinstance(state_dict, dict):
        raise TypeError(
            f"{function}: state_dict is a {type(state_dict).__name__}. Give a dict of tensors, "
            'values and objects that have a state, such as {"model": model}.'
        )
    return {
        key: value.state_dict()
        if isinstance(value, Stateful) and not isinstance(value, dict)
        else value
        for key, value in state_dict.items()
    }
