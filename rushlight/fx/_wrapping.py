"""Functions that a trace records as one step: what wrap marks, and how calls of it are met.

While a trace runs, the names by which a program calls such functions lead to others that look for
Proxies among their arguments. All names lead back at the end.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

from rushlight.fx.proxy import Proxy

__all__ = ["Patches", "patch_marked", "recorded", "wrap"]

# The global under which a module lists the functions that wrap marked. A module that would import
# fx for nothing else may assign it: __fx_wrapped__ = {"name"}.
_MARKED = "__fx_wrapped__"
# The globals of modules that called wrap, which need not be in sys.modules. Generated code calls it
# as well, but is not listed: it is found as what is recorded.
_marking_modules: dict[str, dict[str, Any]] = {}


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Marks a function so that calls of it with Proxies are recorded and it is not run.

    Call it at the top level of the module that calls the function.

    Args:
        fn_or_name: a function of that module, which is returned so that wrap serves as a decorator;
            or the name of one that is known there, such as "len".

    Raises:
        RuntimeError: if it is neither.
        NotImplementedError: if it is called inside a function.

    Example:
        >>> torch.fx.wrap("len")
        'len'
        >>> print(torch.fx.symbolic_trace(lambda x: len(x)).graph.find_nodes(op="call_function"))
        [len_1]
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    if not name.isidentifier():
        raise RuntimeError(f"wrap: calls of {name} cannot be found by its name. Use def.")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    names = frame.f_globals
    names.setdefault(_MARKED, set()).add(name)
    if "__name__" in names:
        _marking_modules[names["__name__"]] = names
    return fn_or_name


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but calls with Proxies are recorded."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    marked: Any = wrapped
    marked._fx_records = True
    return marked


def _find_proxy(*values: Any) -> Proxy | None:
    for value in values:
        if isinstance(value, Proxy):
            return value
        inside = value.values() if isinstance(value, dict) else value
        if isinstance(value, (tuple, list, dict)):
            found = _find_proxy(*inside)
            if found is not None:
                return found
    return None


class Patches:
    """Replaced values of dicts and attributes, which come back at the end."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def set_item(self, names: dict[str, Any], name: str, value: Any) -> None:
        if name in names:
            self._stack.callback(names.__setitem__, name, names[name])
        else:
            self._stack.callback(names.pop, name, None)
        names[name] = value

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        if name in vars(owner):
            self._stack.callback(setattr, owner, name, vars(owner)[name])
        else:
            self._stack.callback(delattr, owner, name)
        setattr(owner, name, value)


def patch_marked(patches: Patches, names: dict[str, Any]) -> None:
    """Lets the calls of functions that wrap marked be recorded.

    Args:
        patches: keeps what they were.
        names: the globals of what is recorded.
    """
    marking = {
        name: vars(module)
        for name, module in list(sys.modules.items())
        if _MARKED in getattr(module, "__dict__", ())
    } | _marking_modules
    own = {} if names.get("__name__") in marking else {"": names}
    for found in (own | marking).values():
        for name in found.get(_MARKED, ()):
            function = found.get(name, getattr(builtins, name, None))
            if function is None:
                raise NameError(f"wrap: {name!r} is not defined where it was marked.")
            if not hasattr(function, "_fx_records"):
                patches.set_item(found, name, recorded(function))
