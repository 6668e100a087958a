"""Modules whose attributes are switches: assigning one checks the value.

Owns what the modules of this package have in common. Invariant: a switch holds what it was set to,
and flags() sets them back.
"""

from __future__ import annotations

import contextlib
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

PRECISIONS = ("none", "ieee", "tf32", "bf16")

_are_frozen = False


def freeze() -> None:
    """Refuses assignments from now on; flags() goes on working."""
    global _are_frozen
    _are_frozen = True


def are_frozen() -> bool:
    """Returns whether assignments are refused."""
    return _are_frozen


class Switch:
    """An attribute that holds a value of one kind.

    Args:
        default: its value at first.
        kind: the type that values must have.
        setter: PyTorch's name of the function that sets it, which errors name.
        tell: called after each change, to bring it to those whom it concerns.
    """

    def __init__(
        self,
        default: Any,
        kind: type = bool,
        setter: str = "",
        tell: Callable[[], None] | None = None,
    ) -> None:
        self._value = default
        self._kind = kind
        self._setter = setter
        self._tell = tell

    def __set_name__(self, owner: type, name: str) -> None:
        self._setter = self._setter or f"set_{name}"

    def __get__(self, module: Any, owner: type) -> Any:
        return self.get()

    def get(self) -> Any:
        """Returns the value."""
        return self._value

    def __set__(self, module: Any, value: Any) -> None:
        refuse_if_frozen(module)
        self.set(value)

    def set(self, value: Any) -> None:
        """Sets a value, checked."""
        if type(value) is not self._kind:
            article = "an" if self._kind is int else "a"
            raise RuntimeError(
                f"{self._setter} expects {article} {self._kind.__name__}, but got "
                f"{type(value).__name__}"
            )
        self._value = value
        if self._tell:
            self._tell()


class Precision(Switch):
    """How float32 is computed with: "ieee", "tf32", "bf16", or "none" to leave it open."""

    def __init__(self, tell: Callable[[], None] | None = None) -> None:
        super().__init__("none", str, "set_fp32_precision", tell)

    def set(self, value: Any) -> None:
        """Sets a value, checked."""
        check_precision(value)
        super().set(value)


def check_precision(value: Any) -> None:
    """Refuses what is not the name of a precision."""
    if value not in PRECISIONS:
        raise RuntimeError(f"Unknown precision: {value}")


def refuse_if_frozen(module: Any) -> None:
    """Refuses an assignment after disable_global_flags."""
    if _are_frozen:
        name = getattr(module, "__name__", "torch.backends").replace("rushlight", "torch")
        raise RuntimeError(
            f"not allowed to set {name} flags after disable_global_flags; please use flags() "
            "context manager instead"
        )


class PrecisionOf:
    """Holds the precision of one kind of op."""

    def __init__(self) -> None:
        self._value = "none"

    @property
    def fp32_precision(self) -> str:
        """How float32 is computed with."""
        return self._value

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        check_precision(value)
        self._value = value


class SwitchModule(ModuleType):
    """The class of a module with switches; a subclass says which."""


def change(kind: type[SwitchModule], **values: Any) -> tuple[Any, ...]:
    """Sets those switches of a module for which a value is given; returns all from before."""
    switches = {name: vars(kind)[name] for name in values}
    before = tuple(switch.get() for switch in switches.values())
    for name, value in values.items():
        if value is not None:
            switches[name].set(value)
    return before


@contextlib.contextmanager
def changed(kind: type[SwitchModule], **values: Any) -> Iterator[None]:
    """Sets switches of a module for a block."""
    before = change(kind, **dict.fromkeys(values))
    try:
        change(kind, **values)
        yield
    finally:
        for name, value in zip(values, before, strict=True):
            vars(kind)[name].set(value)
