"""What torch.compile makes of a module."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sized
from typing import Any

from rushlight.compiler import compile, compiled_call
from rushlight.nn import Module


class OptimizedModule(Module):
    """A module that runs another compiled.

    It has the attributes of the other one, and sets them there; in state_dict, names begin with
    "_orig_mod.", as in PyTorch.
    """

    _orig_mod: Module
    _OWN = ("_orig_mod", "_settings", "_run", "training")

    def __init__(
        self, mod: Module, backend: str | Callable[..., Any] | None = None, fullgraph: bool = False
    ) -> None:
        super().__init__()
        self._orig_mod = mod
        self._settings = (backend, fullgraph)
        self._run = compiled_call(mod, *self._settings)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module, with its hooks."""
        return self._run(*args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module is training."""
        return self._orig_mod.training

    @training.setter
    def training(self, value: bool) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self._has_module():
            self._orig_mod.training = value

    def _has_module(self) -> bool:
        return "_orig_mod" in self.__dict__.get("_modules", ())

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod" or not self._has_module():
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._OWN or not self._has_module():
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._OWN:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self) -> int:
        if isinstance(self._orig_mod, Sized):
            return len(self._orig_mod)
        raise TypeError(f"object of type '{type(self._orig_mod).__name__}' has no len()")

    def __bool__(self) -> bool:
        return bool(self._orig_mod)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_run"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._run = compiled_call(self._orig_mod, *self._settings)


class CompiledForward:
    """The forward of a module after Module.compile; a copy of the module has its own."""

    def __init__(self, module: Module, *args: Any, **options: Any) -> None:
        self.__setstate__((module, args, options))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)

    def __getstate__(self) -> tuple[Module, tuple[Any, ...], dict[str, Any]]:
        return self._state

    def __setstate__(self, state: tuple[Module, tuple[Any, ...], dict[str, Any]]) -> None:
        module, args, options = self._state = state
        self.__wrapped__ = functools.partial(type(module).forward, module)
        self._run = compile(self.__wrapped__, *args, **options)


def is_dynamo_supported() -> bool:
    """Returns False: programs run as they are, nothing looks into their frames."""
    return False
