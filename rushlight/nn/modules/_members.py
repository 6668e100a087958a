"""What a module holds: parameters, buffers and child modules.

Owns the registry and every way to walk it; not hooks, state dicts or conversions, nor how members
become attributes, which is in _member_dicts.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from rushlight import _C, Tensor
from rushlight.nn.modules import _registration_hooks
from rushlight.nn.modules._member_dicts import (
    ABSENT,
    BUFFERS,
    KINDS,
    MODULES,
    PARAMETERS,
    Instance,
    attributes_of,
    make_members,
    own_dict,
    set_attributes_of,
    set_class,
    set_members,
)
from rushlight.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

_HOOKS = {
    PARAMETERS: _registration_hooks.parameter_hooks,
    BUFFERS: _registration_hooks.buffer_hooks,
    MODULES: _registration_hooks.module_hooks,
}


def _dictionary(kind: str) -> Any:
    """The attribute of a module that is its dictionary of one kind of members."""

    def set_(self: Members, members: dict[str, Any]) -> None:
        set_members(self, kind, members)

    def delete(self: Members) -> None:
        set_members(self, kind, ABSENT)

    return property(_C._entry_reader(kind), set_, delete)


def _renamed(function: Any, name: str) -> Any:
    """A copy of a function under the name that Python says where arguments are missing."""
    parts = (function.__code__, function.__globals__, function.__name__, function.__defaults__)
    copy = FunctionType(*parts, function.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__doc__, copy.__module__, copy.__qualname__ = function.__doc__, function.__module__, name
    return copy


class Members(Instance):
    """The part of nn.Module that registers members and walks them."""

    _has_copies = True  # whether what is a member is an entry of the own dictionary, too
    _non_persistent_buffers_set: set[str]

    if TYPE_CHECKING:
        _parameters: dict[str, Any]
        _buffers: dict[str, Any]
        _modules: dict[str, Any]
    else:
        _parameters = _dictionary(PARAMETERS)
        _buffers = _dictionary(BUFFERS)
        _modules = _dictionary(MODULES)

    def __init__(self) -> None:
        make_members(self)
        own_dict(self)["_non_persistent_buffers_set"] = set()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        shown = next(base for base in cls.__mro__ if "__dict__" in vars(base))
        if not issubclass(shown, Members):  # a class before Module, whose __dict__ Python takes
            _C._show_as_dict(cls, attributes_of, set_attributes_of)
        if cls.__getattribute__ is not object.__getattribute__:
            cls._has_copies = False
        elif cls.__getattr__ is not Members.__getattr__:
            cls._has_copies = False
            _C._ask_getattr(cls)
        else:
            cls._has_copies = True
            _C._read_attributes_directly(cls)
        init = cls.__init__
        is_private = init.__qualname__.startswith("_") and not cls.__name__.startswith("_")
        if is_private and cls.__module__.startswith("rushlight.nn.modules."):
            cls.__init__ = _renamed(init, f"{cls.__name__}.__init__")

    # Not asked where Python finds members by itself, see Note [Members].
    def __getattr__(self, name: str) -> Any:
        own = own_dict(self)
        for kind in KINDS:
            members = own.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    # Registration

    # What Module calls __setattr__ and __delattr__.

    def _set_attribute(self, name: str, value: Any) -> None:
        kind = self._kind_of(name)
        if isinstance(value, Tensor) and isinstance(value, Parameter):
            self._check_initialized("parameters")
            self._make_room(name, PARAMETERS)
            self.register_parameter(name, value)
        elif isinstance(value, Members) and kind != PARAMETERS:
            self._check_initialized("module")
            self._make_room(name, MODULES)
            self._register(name, value, MODULES)
        elif isinstance(value, Buffer):
            self._check_initialized("buffers")
            self._make_room(name, BUFFERS)
            self._register_attribute(name, value)
        elif kind is not None:
            self._replace(name, value, kind)
        elif name == "__class__":
            set_class(self, value)
        else:
            object.__setattr__(self, name, value)

    def _register_attribute(self, name: str, buffer: Buffer) -> None:
        """Calls register_buffer, which a class may have overridden when it had no `persistent`."""
        own = type(self).register_buffer
        if own is Members.register_buffer or _takes_persistent(own):
            self.register_buffer(name, buffer, buffer.persistent)
            return
        if not buffer.persistent:
            raise RuntimeError(
                f"{type(self).__name__}: its register_buffer takes no `persistent`, so '{name}' "
                "cannot be a buffer that is not persistent. Let it take one."
            )
        self.register_buffer(name, buffer)

    def _kind_of(self, name: str) -> str | None:
        own = own_dict(self)
        for kind in KINDS:
            if name in own.get(kind, ()):
                return kind
        return None

    def _make_room(self, name: str, kind: str) -> None:
        """Removes what has a name, unless it is a member of the kind that is to have it."""
        own = own_dict(self)
        if name in own[kind]:
            return
        for other in KINDS:
            if name in own[other]:
                del own[other][name]
        own.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _replace(self, name: str, value: Any, kind: str) -> None:
        if value is not None and not (kind == BUFFERS and _is_tensor_like(value)):
            role, wanted = {
                PARAMETERS: ("parameter", "Parameter or None"),
                MODULES: ("child module", "Module or None"),
            }.get(kind, ("buffer", "Tensor or None"))
            raise TypeError(
                f"{type(self).__name__}: cannot assign '{type(value).__name__}' as {role} "
                f"'{name}' ({wanted} expected). Delete the attribute first to give it a new role."
            )
        self._register(name, value, kind)

    def _delete_attribute(self, name: str) -> None:
        kind = self._kind_of(name)
        if kind is None:
            object.__delattr__(self, name)
            return
        del own_dict(self)[kind][name]
        if kind == BUFFERS:
            self._non_persistent_buffers_set.discard(name)

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    def __getstate__(self) -> Any:
        # Python's is the own dictionary, with the copies of members.
        state: Any = super().__getstate__()
        attributes = dict(self.__dict__)
        return (attributes, *state[1:]) if isinstance(state, tuple) else attributes

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _register(self, name: str, value: Any, kind: str) -> None:
        """Places what hooks make of a checked member; they do not see that a parameter is None."""
        hooks = _HOOKS[kind]
        if hooks and not (value is None and kind == PARAMETERS):
            value = _registration_hooks.seen_by(hooks, self, name, value)
        own_dict(self)[kind][name] = value

    def _check_initialized(self, what: str) -> None:
        if PARAMETERS not in own_dict(self):
            raise AttributeError(
                f"{type(self).__name__}: cannot assign {what} before Module.__init__() call. "
                "Call super().__init__() first."
            )

    def _check_name(self, name: str, what: str, kind: str) -> None:
        self._check_initialized(what)
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {type(name).__name__}.")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: "{name}".')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string "".')
        if hasattr(self, name) and name not in own_dict(self)[kind]:
            raise KeyError(f"attribute '{name}' already exists in {type(self).__name__}.")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under a name; None reserves the name.

        Args:
            name: attribute name, without dots.
            param: the parameter, a leaf.

        Raises:
            TypeError: if param is not a Parameter.
            KeyError: if the name is taken, empty or has a dot.
            ValueError: if param was computed from other tensors.

        Example:
            >>> layer = torch.nn.Module()
            >>> layer.register_parameter("scale", torch.nn.Parameter(torch.ones(3)))
            >>> tuple(layer.scale.shape)
            (3,)
        """
        self._check_name(name, "parameter", PARAMETERS)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter: cannot assign '{type(param).__name__}' object to parameter "
                f"'{name}' (Parameter or None required). Wrap a tensor in nn.Parameter."
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"register_parameter: Cannot assign non-leaf Tensor to parameter '{name}'. "
                "A parameter is a value of its own; compute what depends on it in forward()."
            )
        self._register(name, param, PARAMETERS)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the module's state but is not learned.

        Args:
            name: attribute name, without dots.
            tensor: the buffer; None reserves the name and is left out of the state dict.
            persistent: whether the buffer is part of state_dict.

        Raises:
            TypeError: if tensor is not a Tensor.
            KeyError: if the name is taken, empty or has a dot.

        Example:
            >>> layer = torch.nn.Module()
            >>> layer.register_buffer("mean", torch.zeros(3))
            >>> list(layer.state_dict())
            ['mean']
        """
        self._check_name(name, "buffer", BUFFERS)
        if tensor is not None and not _is_tensor_like(tensor):
            raise TypeError(
                f"register_buffer: cannot assign '{type(tensor).__name__}' object to buffer "
                f"'{name}' (Tensor or None required)."
            )
        self._register(name, tensor, BUFFERS)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a child module under a name; the same as add_module.

        Args:
            name: attribute name, without dots.
            module: the child; None reserves the name.

        Raises:
            TypeError: if module is not a Module.
            KeyError: if the name is taken, empty or has a dot.

        Example:
            >>> net = torch.nn.Module()
            >>> net.register_module("act", torch.nn.ReLU())
            >>> net.act
            ReLU()
        """
        self._check_name(name, "module", MODULES)
        if module is not None and not isinstance(module, Members):
            raise TypeError(
                f"add_module: {type(module).__name__} is not a Module subclass. Children are "
                "modules: pass *layers for a list, nn.ReLU() for a function."
            )
        self._register(name, module, MODULES)

    add_module = register_module

    # Lookup by dotted path

    def get_submodule(self, target: str) -> Module:
        """Returns the module at a dotted path; "" is the module itself.

        Raises:
            AttributeError: if the path leads nowhere, or to something that is not a module.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> net.get_submodule("0.0")
            ReLU()
        """
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Members):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module  # pyright: ignore[reportReturnType]  # Module is the only subclass

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at a dotted path, replacing what is there.

        Args:
            target: the path.
            module: what is put there.
            strict: whether only a module that is there may be replaced, and none be added.

        Raises:
            ValueError: if the path is empty or module is not a Module.
            AttributeError: if the path to the parent leads nowhere, or with strict, the path; if
                there is something at the path that is no module.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.ReLU())
            >>> net.set_submodule("0", torch.nn.Tanh())
            >>> net[0]
            Tanh()
        """
        if target == "":
            raise ValueError("set_submodule: Cannot set the submodule without a target name.")
        if not isinstance(module, Members):
            raise ValueError(f"set_submodule: {type(module).__name__} is not an nn.Module.")
        parent, _, name = target.rpartition(".")
        owner = self.get_submodule(parent)
        if strict or hasattr(owner, name):
            owner.get_submodule(name)
        setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter at a dotted path.

        Raises:
            AttributeError: if the path leads nowhere, or to something that is not a parameter.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3))
            >>> tuple(net.get_parameter("0.weight").shape)
            (3, 2)
        """
        return self._get_member(target, PARAMETERS, "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Returns the buffer at a dotted path.

        Raises:
            AttributeError: if the path leads nowhere, or to something that is not a buffer.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
            >>> net.get_buffer("0.running_mean").tolist()
            [0.0, 0.0, 0.0]
        """
        return self._get_member(target, BUFFERS, "a buffer")

    def _get_member(self, target: str, kind: str, what: str) -> Any:
        parent, _, name = target.rpartition(".")
        module = self.get_submodule(parent)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in getattr(module, kind):
            raise AttributeError(f"`{name}` is not {what}")
        return getattr(module, name)

    # Walks

    def _own(self, kind: str) -> list[tuple[str, Any]]:
        """This module's own members of a kind, None included, in order of registration."""
        return list(own_dict(self)[kind].items())

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters of this module and, with recurse, of its descendants.

        Example:
            >>> [tuple(p.shape) for p in torch.nn.Linear(2, 3).parameters()]
            [(3, 2), (3,)]
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields (dotted path, parameter), each shared parameter once.

        Args:
            prefix: path to put before every name.
            recurse: whether to go into descendants.
            remove_duplicate: whether a shared parameter comes only under its first name.

        Example:
            >>> [name for name, _ in torch.nn.Linear(2, 3).named_parameters()]
            ['weight', 'bias']
        """
        return self._named_members(_parameters_of, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields the buffers of this module and, with recurse, of its descendants.

        Example:
            >>> len(list(torch.nn.BatchNorm1d(3).buffers()))
            3
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yields (dotted path, buffer), each shared buffer once.

        Args:
            prefix: path to put before every name.
            recurse: whether to go into descendants.
            remove_duplicate: whether a shared buffer comes only under its first name.

        Example:
            >>> [name for name, _ in torch.nn.BatchNorm1d(3).named_buffers()]
            ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return self._named_members(_buffers_of, prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Yields the direct child modules, each once.

        Example:
            >>> list(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()).children())
            [ReLU(), Tanh()]
        """
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yields (name, module) of the direct children, each child once.

        Example:
            >>> dict(torch.nn.Sequential(torch.nn.ReLU()).named_children())
            {'0': ReLU()}
        """
        seen = set()
        for name, module in list(self._modules.items()):
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yields this module and all its descendants, parents first.

        Args:
            remove_duplicate: whether a shared module comes only once.

        Example:
            >>> len(list(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()).modules()))
            3
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yields (dotted path, module) for this module and all descendants, parents first.

        Args:
            memo: modules to leave out; those yielded are added.
            prefix: path of this module.
            remove_duplicate: whether a shared module comes only under its first path.

        Raises:
            RecursionError: if a module that is inside itself shall come under all its paths.

        Example:
            >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU()).named_modules()]
            ['', '0']
        """
        memo = set() if memo is None else memo
        waiting: list[tuple[str, Any, int]] = [(prefix, self, 0)]  # the next one last
        while waiting:
            path, module, depth = waiting.pop()
            if module is None or module in memo:
                continue
            if remove_duplicate:
                memo.add(module)
            elif depth > sys.getrecursionlimit():
                raise RecursionError(
                    f"named_modules: {path[:50]}... has no end. A module is inside itself."
                )
            yield path, module
            for name, child in reversed(module._modules.items()):
                waiting.append((f"{path}.{name}" if path else name, child, depth + 1))


_C._show_as_dict(Members, attributes_of, set_attributes_of)


def _takes_persistent(method: Callable[..., None]) -> bool:
    from inspect import signature  # few programs need it

    return "persistent" in signature(method).parameters


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def _parameters_of(module: Members) -> Iterable[tuple[str, Any]]:
    return module._parameters.items()


def _buffers_of(module: Members) -> Iterable[tuple[str, Any]]:
    return module._buffers.items()
