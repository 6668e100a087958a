"""Where a module keeps its parameters, buffers and children, and what vars() shows of it.

Owns the three dictionaries of members and the copies of their values that make reading fast; not
what may be registered, which is in _members.py. See Note [Members].
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import _C

# Note [Members]
#
# As in PyTorch, a module has the dictionaries _parameters, _buffers and _modules, which a program
# may change, replace and share between modules, and vars(module) has them and not what they hold.
# PyTorch looks into them when Python finds no attribute, which costs more than a small op. Here the
# values are also entries of the instance's own dictionary, where Python finds them by itself. Three
# things keep these copies right:
#
# - A MemberDict knows the modules that it belongs to, and writes what it gets into them.
# - vars(module) is an Attributes, the own dictionary without the copies, which notices when another
#   dictionary of members is put there. An entry is a copy if it is the very object in a dictionary
#   of members; a program may hide a member behind an attribute of its own.
# - Where Python could not find a member so, the class gets the slower reads of PyTorch: if it has a
#   __getattr__ of its own, which PyTorch asks for members (then there are no copies, and
#   vars(module) is the own dictionary); if a property has the name of a member; and if a dictionary
#   of members is not a MemberDict, but some other that the program made and may change unnoticed.

PARAMETERS = "_parameters"
BUFFERS = "_buffers"
MODULES = "_modules"
KINDS = (PARAMETERS, BUFFERS, MODULES)  # in the order in which attributes are looked up
ABSENT: Any = object()


class Instance:
    """What has a dictionary of its own; a base, so that Module can show another as __dict__."""


own_dict: Callable[[Any], dict[str, Any]] = vars(Instance)["__dict__"].__get__
_set_own_dict: Callable[[Any, dict[str, Any]], None] = vars(Instance)["__dict__"].__set__


class _WatchedDict(dict[str, "Any"]):
    """A dictionary all of whose changes go through __setitem__ and __delitem__ of a subclass."""

    __slots__ = ()
    _node_type = dict  # which _pytree takes it for

    def pop(self, name: str, default: Any = ABSENT) -> Any:
        if name not in self:
            if default is ABSENT:
                raise KeyError(name)
            return default
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        for name in reversed(self):
            return name, self.pop(name)
        raise KeyError("popitem(): dictionary is empty")

    def clear(self) -> None:
        for name in list(self):
            del self[name]

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __reduce__(self) -> Any:
        return dict, (), None, None, iter(self.items())


class MemberDict(_WatchedDict):
    """Parameters, buffers or children by name, also written into the modules that they are of."""

    __slots__ = ("_owners",)

    _owners: tuple[weakref.ref[Any], ...]

    def __new__(cls, *args: Any, **kwargs: Any) -> MemberDict:
        self = super().__new__(cls)
        self._owners = ()
        return self

    def __setitem__(self, name: str, value: Any) -> None:
        before = self.get(name, ABSENT)
        super().__setitem__(name, value)
        for owner in self._owners:
            module = owner()
            if module is None:
                continue
            if before is ABSENT:
                _show(module, name, value)
            else:
                own = own_dict(module)
                if own.get(name, ABSENT) is before:
                    own[name] = value

    def __delitem__(self, name: str) -> None:
        before = self[name]
        super().__delitem__(name)
        for owner in self._owners:
            module = owner()
            if module is not None:
                _hide(module, name, before)

    def copy(self) -> MemberDict:
        return MemberDict(self)

    __copy__ = copy


def _show(module: Any, name: str, value: Any) -> None:
    """Lets an attribute give a member that is new, unless the program or the class has another."""
    cls = type(module)
    found = getattr(cls, name, ABSENT)
    if found is ABSENT or all(name not in vars(base) for base in cls.__mro__):  # or a metaclass has
        own_dict(module).setdefault(name, value)
    elif hasattr(found, "__set__"):
        _C._ask_getattr(cls)


def _hide(module: Any, name: str, value: Any) -> None:
    """Takes back what _show did, for the value that it showed."""
    own = own_dict(module)
    if own.get(name, ABSENT) is value:
        del own[name]
        _show_again(module, name)


def _show_again(module: Any, name: str) -> None:
    """Lets an attribute that was deleted give the member of its name, if there is one."""
    own = own_dict(module)
    for kind in KINDS:
        members = own.get(kind, ())
        if type(members) is MemberDict and name in members:
            _show(module, name, members[name])
            return


def set_members(module: Any, kind: str, members: Any) -> None:
    """Gives a module another dictionary of members; with ABSENT, none."""
    own = own_dict(module)
    before = own.get(kind)
    if members is ABSENT:
        own.pop(kind, None)
    else:
        own[kind] = members
    if not module._has_copies:
        return
    if type(before) is MemberDict:
        before._owners = tuple(
            owner for owner in before._owners if owner() is not None and owner() is not module
        )
        for name, value in before.items():
            _hide(module, name, value)
    if type(members) is MemberDict:
        members._owners += (weakref.ref(module),)
        for name, value in members.items():
            _show(module, name, value)
    elif members is not ABSENT:
        _C._ask_getattr(type(module))


def make_members(module: Any) -> None:
    """Gives a module that begins its empty dictionaries."""
    own = own_dict(module)
    if own:  # attributes, or members, that were set before
        for kind in KINDS:
            set_members(module, kind, MemberDict())
        return
    owners = (weakref.ref(module),) if module._has_copies else ()
    for kind in KINDS:
        own[kind] = members = MemberDict()
        members._owners = owners


class Attributes(_WatchedDict):
    """A live vars(module), without the copies of members.

    What it holds as a dictionary is how things were when it was last asked, for C code that looks
    at that only.
    """

    __slots__ = ("_module",)

    def __init__(self, module: Any) -> None:
        self._module = module
        self._renew()

    def _renew(self) -> Attributes:
        own = own_dict(self._module)
        dict.clear(self)
        dict.update(self, own)
        for kind in KINDS:
            for name, value in own.get(kind, _EMPTY).items():
                if dict.get(self, name, ABSENT) is value:
                    dict.__delitem__(self, name)
        return self

    def __getitem__(self, name: str) -> Any:
        own = own_dict(self._module)
        value = own[name]
        for kind in KINDS:
            if own.get(kind, _EMPTY).get(name, ABSENT) is value:
                raise KeyError(name)
        return value

    def __contains__(self, name: Any) -> bool:
        return self.get(name, ABSENT) is not ABSENT

    def __setitem__(self, name: str, value: Any) -> None:
        if name in KINDS:
            set_members(self._module, name, value)
        else:
            own_dict(self._module)[name] = value
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        self[name]  # raises KeyError
        if name in KINDS:
            set_members(self._module, name, ABSENT)
        else:
            del own_dict(self._module)[name]
            _show_again(self._module, name)
        dict.pop(self, name, None)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Takes over attributes, such as those that another module had.

        A plain dictionary of members among them is copied: it comes from a file or a deep copy.
        """
        for name, value in dict(*args, **kwargs).items():
            is_plain = name in KINDS and type(value) in (dict, OrderedDict)
            self[name] = MemberDict(value) if is_plain else value

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __or__(self, other: Any) -> dict[str, Any]:
        return self.copy() | other

    def __ror__(self, other: Any) -> dict[str, Any]:
        return other | self.copy()

    def __iter__(self) -> Iterator[str]:
        self._renew()
        return super().__iter__()

    def __reversed__(self) -> Iterator[str]:
        self._renew()
        return super().__reversed__()

    def __len__(self) -> int:
        self._renew()
        return super().__len__()

    def keys(self) -> Any:
        self._renew()
        return super().keys()

    def values(self) -> Any:
        self._renew()
        return super().values()

    def items(self) -> Any:
        self._renew()
        return super().items()

    def copy(self) -> dict[str, Any]:
        self._renew()
        return super().copy()

    __copy__ = copy

    def __eq__(self, other: object) -> bool:
        return self.copy() == other

    def __ne__(self, other: object) -> bool:
        return self.copy() != other

    def __repr__(self) -> str:
        return repr(self.copy())


_EMPTY: dict[str, Any] = {}


def attributes_of(module: Any) -> dict[str, Any]:
    """What vars(module) gives."""
    return Attributes(module) if module._has_copies else own_dict(module)


def set_attributes_of(module: Any, attributes: dict[str, Any]) -> None:
    """What module.__dict__ = attributes does."""
    if not isinstance(attributes, dict):
        raise TypeError(
            f"{type(module).__name__}: __dict__ must be set to a dictionary, not a "
            f"'{type(attributes).__name__}'"
        )
    if not module._has_copies:
        _set_own_dict(module, attributes)
        return
    attributes = dict(attributes)  # which may be that of the module
    for kind in KINDS:
        set_members(module, kind, ABSENT)
    own_dict(module).clear()
    Attributes(module).update(attributes)


def set_class(module: Any, cls: Any) -> None:
    """Changes the class of a module, and keeps copies of its members if that has them."""
    members = {kind: own_dict(module)[kind] for kind in KINDS if kind in own_dict(module)}
    for kind in members:
        set_members(module, kind, ABSENT)
    try:
        object.__setattr__(module, "__class__", cls)
    finally:
        for kind, value in members.items():
            set_members(module, kind, value)
