"""The hooks of one module, or of all modules, as data.

Owns how hooks are kept and seen; who calls them and when is in _hooks.py. Invariant: an entry's
key is the id of the handle that removes it, and entries are in calling order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from rushlight.nn.modules._member_dicts import own_dict
from rushlight.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from rushlight.nn.modules._hooks import Hooked


class Hook:
    """A hook function and how it wants to be called."""

    __slots__ = ("always_call", "function", "takes_kwargs")

    def __init__(
        self, function: Callable[..., Any], takes_kwargs: bool = False, always_call: bool = False
    ) -> None:
        self.function = function
        self.takes_kwargs = takes_kwargs
        self.always_call = always_call

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


class HookWithoutModule(Hook):
    """A hook that is called without the module, its first argument."""

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        return self.function(*args[1:])


class HookTable:
    """The hooks of one module, or of all modules, by the moment they run at."""

    __slots__ = (
        "backward",
        "backward_node",
        "backward_pre",
        "forward",
        "forward_pre",
        "load_state_dict_post",
        "load_state_dict_pre",
        "state_dict_post",
        "state_dict_pre",
    )

    def __init__(self) -> None:
        for moment in self.__slots__:
            setattr(self, moment, OrderedDict())

    def __bool__(self) -> bool:
        return any(getattr(self, moment) for moment in self.__slots__)

    def add(self, moment: str, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Adds a hook as the last or the first that runs at a moment."""
        hooks = getattr(self, moment)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle


class HookView(MutableMapping[int, "Callable[..., Any]"]):
    """A live mapping of a module's hook functions for one moment, by the id of their handle.

    Programs look for hooks of theirs in it, and delete them.
    """

    def __init__(self, module: Hooked, moment: str) -> None:
        self._module = module
        self._moment = moment

    def _table(self) -> OrderedDict[int, Hook]:
        table = own_dict(self._module).get("_hooks")
        return OrderedDict() if table is None else getattr(table, self._moment)

    def __getitem__(self, id: int) -> Callable[..., Any]:
        return self._table()[id].function

    def __setitem__(self, id: int, function: Callable[..., Any]) -> None:
        hooks = getattr(self._module._own_hooks(), self._moment)
        if id in hooks:
            hooks[id] = Hook(function, hooks[id].takes_kwargs, hooks[id].always_call)
        else:
            hooks[id] = Hook(function)

    def __delitem__(self, id: int) -> None:
        del self._table()[id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._table())

    def __len__(self) -> int:
        return len(self._table())

    def __repr__(self) -> str:
        return repr(self.copy())

    def copy(self) -> OrderedDict[int, Callable[..., Any]]:
        """Returns what is in it now."""
        return OrderedDict(self)

    def move_to_end(self, id: int, last: bool = True) -> None:
        """Makes a hook the last one that runs, or the first one."""
        self._table().move_to_end(id, last)

    def replace(self, functions: Mapping[int, Callable[..., Any]]) -> None:
        """Takes these hooks in place of those there are."""
        functions = OrderedDict(functions)
        for id in set(self) - set(functions):
            del self[id]
        for id, function in functions.items():
            self[id] = function
            self.move_to_end(id)


class FlagView(MutableMapping[int, bool]):
    """A live mapping of the ids of those hooks of a module for which a flag is True, to True."""

    def __init__(self, module: Hooked, moment: str, flag: str) -> None:
        self._hooks = HookView(module, moment)
        self._flag = flag

    def __getitem__(self, id: int) -> bool:
        if getattr(self._hooks._table()[id], self._flag):
            return True
        raise KeyError(id)

    def __setitem__(self, id: int, value: bool) -> None:
        setattr(self._hooks._table()[id], self._flag, value)

    def __delitem__(self, id: int) -> None:
        self[id]  # raises KeyError
        self[id] = False

    def __iter__(self) -> Iterator[int]:
        return (id for id in self._hooks if id in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(OrderedDict(self))


class HooksOf:
    """An attribute of modules: a view of their hooks for a moment, which replaces them when set."""

    def __init__(self, moment: str) -> None:
        self._moment = moment

    def __get__(self, module: Hooked | None, owner: object = None) -> Any:
        return self if module is None else HookView(module, self._moment)

    def __set__(self, module: Hooked, hooks: Mapping[int, Callable[..., Any]]) -> None:
        HookView(module, self._moment).replace(hooks)
