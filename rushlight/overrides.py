"""torch.overrides: how classes take over functions, by the protocol __torch_function__.

The ops call the core's dispatch (bindings/override.cpp); functions written in Python that want to
be taken over as a whole ask has_torch_function and call handle_torch_function.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from importlib import import_module
from types import FunctionType
from typing import Any, Self

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._overridable import asks
from rushlight._tensor_override import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    nowrap_functions,
)
from rushlight._told import told_of

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


class TorchFunctionMode:
    """Takes over all ops that this thread calls in a with block.

    A subclass says in __torch_function__ what becomes of them. While that runs the mode is not in
    force; modes may be nested, and the innermost is asked first.

    Example:
        >>> class Counts(torch.overrides.TorchFunctionMode):
        ...     calls = 0
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         self.calls += 1
        ...         return func(*args, **(kwargs or {}))
        >>> with Counts() as counts:
        ...     x = torch.ones(2) + torch.ones(2)
        >>> counts.calls
        3
    """

    # Whether it is told of attributes, and of methods that are no ops. Modes of ours are not.
    _hears_attributes = True

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Returns what becomes of a call; NotImplemented leaves it to the arguments' classes."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if isinstance(vars(type(self)).get("__torch_function__"), classmethod):
            raise RuntimeError(
                f"{type(self).__name__}: __torch_function__ is a classmethod. That of a mode is a "
                "plain method."
            )
        _C._push_function_mode(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C._pop_function_mode()


def _get_current_function_mode_stack() -> list[Any]:
    """The modes of this thread, the innermost last."""
    return _C._function_modes()


def _get_current_function_mode() -> Any:
    """The innermost mode, None if there is none."""
    modes = _get_current_function_mode_stack()
    return modes[-1] if modes else None


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that runs what it is told of; a subclass may look at it first."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Returns what func returns."""
        return func(*args, **(kwargs or {}))


class _Hop(threading.local):
    """Whether the next function in Python that asks on this thread is told that none takes over."""

    skips = False


_hop = _Hop()


def _is_skipped() -> bool:
    skips, _hop.skips = _hop.skips, False
    return skips


def redispatch_function(
    func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> Any:
    """Runs a function without asking for it; what it is made of asks as ever.

    Args:
        func, types, args, kwargs: what __torch_function__ was told.

    Returns:
        What func returns: a plain tensor where it is one op.

    Example:
        >>> class Seen(torch.Tensor):
        ...     names = []
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args, kwargs=None):
        ...         cls.names.append(func.__name__)
        ...         return torch.overrides.redispatch_function(func, types, args, kwargs)
        >>> type(torch.nn.functional.glu(torch.ones(2).as_subclass(Seen))) is torch.Tensor
        True
        >>> Seen.names[0]
        'glu'
    """
    kwargs = kwargs or {}
    body = getattr(func, "__wrapped__", None)
    if body is not None and asks(func):
        return body(*args, **kwargs)
    if isinstance(func, FunctionType) and func not in told_of():
        _hop.skips = True
        try:
            return func(*args, **kwargs)
        finally:
            _hop.skips = False
    with DisableTorchFunction():
        return func(*args, **kwargs)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Returns whether the class of one of the arguments takes over functions.

    Example:
        >>> class Logged(torch.Tensor):
        ...     pass
        >>> torch.overrides.has_torch_function((torch.ones(1), torch.ones(1).as_subclass(Logged)))
        True
    """
    return not _is_skipped() and _C._has_torch_function(tuple(relevant_args))


def has_torch_function_unary(obj: Any) -> bool:
    """Returns whether the class of an object takes over functions."""
    return not _is_skipped() and _C._has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Returns whether the class of one of the arguments takes over functions."""
    return not _is_skipped() and _C._has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Returns what the first class among the arguments that takes over makes of a function.

    Args:
        public_api: the function, which the class is given.
        relevant_args: the arguments whose classes are asked, subclasses before their bases.
        args: the function's arguments.
        kwargs: the function's keyword arguments.

    Raises:
        TypeError: if all of them return NotImplemented.
    """
    return _C._handle_torch_function(public_api, tuple(relevant_args), args, kwargs)


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that lets classes take over a function.

    Args:
        dispatcher: gets the arguments of a call and returns the relevant ones.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Returns whether an object is a tensor or has __torch_function__."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Returns what the default leaves as it comes: the attributes that hold another tensor."""
    return set(nowrap_functions)


_HOMES = ("", ".nn.functional", ".linalg", ".fft", ".special")
_NOT_TAKEN_OVER = {"__buffer__", "__delitem__", "__hash__", "__pos__", "__release_buffer__"}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Returns the functions that classes can take over, by the module or class that has them.

    The methods of Tensor are listed too, with its operators, and __get__ of its attributes;
    __torch_function__ is given the method for some operators, Tensor.add for +.

    Example:
        >>> functions = torch.overrides.get_overridable_functions()
        >>> torch.add in functions[torch], torch.Tensor.add in functions[torch.Tensor]
        (True, True)
        >>> torch.manual_seed in functions[torch]
        False
    """
    found: dict[Any, list[Any]] = {}
    for name in _HOMES:
        home = import_module(f"rushlight{name}")
        public = (getattr(home, key) for key in dir(home) if not key.startswith("_"))
        functions = filter(callable, public)
        found[home] = [each for each in functions if isinstance(each, type(rl.add)) or asks(each)]
    method, operator = type(Tensor.add), type(Tensor.__add__)
    listed = found[Tensor] = list(told_of())
    for key in dir(Tensor):
        value = getattr(Tensor, key)
        if isinstance(value, operator):
            is_listed = value.__objclass__ is not object and key not in _NOT_TAKEN_OVER
        else:
            is_listed = isinstance(value, method) and not key.startswith("_")
        if is_listed:
            listed.append(value)
    return found


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Returns a function with the same arguments for each that classes can take over; it gives -1.

    Example:
        >>> torch.overrides.get_testing_overrides()[torch.add](torch.ones(1), 2)
        -1
    """
    functions = get_overridable_functions().values()
    return {each: _stand_in(each) for group in functions for each in group}


def _stand_in(function: Callable[..., Any]) -> Callable[..., Any]:
    import inspect

    def stand_in(*args: Any, **kwargs: Any) -> int:
        return -1

    with suppress(ValueError):  # some that are written in C tell no arguments
        vars(stand_in)["__signature__"] = inspect.signature(function)
    return stand_in


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Returns the functions that classes cannot take over: all others of the same modules.

    Example:
        >>> torch.manual_seed in torch.overrides.get_ignored_functions()
        True
        >>> torch.add in torch.overrides.get_ignored_functions()
        False
    """
    import inspect

    functions: set[Any] = set()
    for home, overridable in get_overridable_functions().items():
        public = (getattr(home, key) for key in dir(home) if not key.startswith("_"))
        functions.update(each for each in public if inspect.isroutine(each))
        functions.difference_update(overridable)
    return functions


_ACCESS = ("__get__", "__set__")


def resolve_name(f: Callable[..., Any]) -> str | None:
    """Returns the name of a function of torch, None for others.

    Example:
        >>> torch.overrides.resolve_name(torch.add), torch.overrides.resolve_name(torch.Tensor.add)
        ('torch.add', 'torch.Tensor.add')
    """
    if is_tensor_method_or_property(f):
        owner: Any = getattr(f, "__self__", None)
        if f.__name__ not in _ACCESS:
            return f"torch.Tensor.{f.__name__}"
        return f"torch.Tensor.{getattr(owner, 'fget', owner).__name__}.{f.__name__}"
    module = getattr(f, "__module__", None)
    if not isinstance(module, str) or module.split(".")[0] != "rushlight":
        return None
    return f"torch{module.removeprefix('rushlight')}.{getattr(f, '__name__', '')}"


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Returns whether a function is a method of Tensor, or reads or sets one of its attributes."""
    name = getattr(func, "__name__", "")
    if name in _ACCESS:
        return getattr(getattr(func, "__self__", None), "__get__", None) in told_of()
    return getattr(Tensor, name, None) is func
