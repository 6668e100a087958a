"""Wrapper: a module around another whose name is in no key of a state dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rushlight.nn import Module
from rushlight.nn.modules._state_dict import named_in_order

__all__ = ["Wrapper", "clean", "clean_items"]

_NAMES: set[str] = set()  # of the attributes in which wrappers keep what they wrap


def clean(name: str) -> str:
    """Returns the name of a parameter, buffer or module without those of wrappers."""
    return ".".join(part for part in name.split(".") if part not in _NAMES)


class Wrapper(Module):
    """Has the state and, where it has none itself, the attributes of the module that it wraps.

    Args:
        module: the one.

    Raises:
        TypeError: if it is none.
    """

    _attribute = ""  # where it is

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _NAMES.add(cls._attribute)

    def __init__(self, module: Module) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: module is {module!r}. It must be a Module.")
        setattr(self, self._attribute, module)

    @property
    def _wrapped(self) -> Module:
        return self._modules[self._attribute]

    def __getattr__(self, name: str) -> Any:
        wrapped = self.__dict__.get("_modules", {}).get(self._attribute)
        if wrapped is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(wrapped, name)

    def __getitem__(self, key: Any) -> Any:
        return self._wrapped[key]  # pyright: ignore[reportIndexIssue]

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Returns the state of the wrapped module."""
        if args:
            destination, prefix, keep_vars = named_in_order(self, args, prefix, keep_vars)
        return self._wrapped.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)

    def _load_tree(
        self,
        state: dict[str, Any],
        prefix: str,
        metadata: Mapping[str, Any],
        assign: bool,
        incompatible: Any,
        problems: list[str],
    ) -> None:
        self._wrapped._load_tree(state, prefix, metadata, assign, incompatible, problems)
        for hook in self._hooks_at("load_state_dict_post"):
            hook(self, incompatible)


def clean_items(items: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Returns pairs of names and values, with clean names."""
    return ((clean(name), value) for name, value in items)
