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
