"""What a module holds: parameters, buffers and child modules.

Owns the registry and every way to walk it; not hooks, state dicts or conversions.
Invariant: a member's value is an ordinary entry of the instance's __dict__, so `self.weight` costs
what any attribute costs, and `_kinds` says in order of registration which entries are members.
"""

from __future__ import annotations

from collections.abc import MutableMapping, MutableSet

from rushlight import _C, Tensor
from rushlight.nn.modules import _registration_hooks
from rushlight.nn.parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
    from typing import Any

    from rushlight.nn.modules.module import Module

PARAMETER = "parameter"
BUFFER = "buffer"
TRANSIENT = "buffer outside the state dict"
MODULE = "module"
BUFFERS = (BUFFER, TRANSIENT)
_HOOKS = {
    PARAMETER: _registration_hooks.parameter_hooks,
    BUFFER: _registration_hooks.buffer_hooks,
    TRANSIENT: _registration_hooks.buffer_hooks,
    MODULE: _registration_hooks.module_hooks,
}


class MemberView(MutableMapping[str, "Any"]):
    """A live mapping of one kind of a module's members, by name.

    It reads and writes the module itself, so there is no second copy to keep in step.
    """

    def __init__(self, module: Members, *kinds: str) -> None:
        self._module = module
        self._kinds = kinds

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return self._module.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self:
            self._module.__dict__[name] = value
        else:
            self._module._place(name, value, self._kinds[0])

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._module._remove(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._module._kinds.get(name) in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kind in self._module._kinds.items() if kind in self._kinds])

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    def __len__(self) -> int:
        return sum(kind in self._kinds for kind in self._module._kinds.values())

    def __repr__(self) -> str:
        return repr(self.copy())

    def copy(self) -> dict[str, Any]:
        return dict(self)

    __copy__ = copy

    def popitem(self) -> tuple[str, Any]:
        """Takes out the last member, as a dictionary does."""
        for name in reversed(self):
            return name, self.pop(name)
        raise KeyError("popitem(): dictionary is empty")

    def become(self, members: Mapping[str, Any]) -> None:
        """Takes out what there is, and puts these in; names that stay keep their kind."""
        members, kinds = dict(members), {name: self._module._kinds[name] for name in self}
        self.clear()
        for name, value in members.items():
            self._module._place(name, value, kinds.get(name, self._kinds[0]))

    # The views are those of a dictionary of this moment: they can be reversed, and the module may
    # change while a loop goes over them.

    def keys(self) -> KeysView[str]:
        return dict.fromkeys(self).keys()

    def values(self) -> ValuesView[Any]:
        return self.copy().values()

    def items(self) -> ItemsView[str, Any]:
        return self.copy().items()


class TransientNames(MutableSet[str]):
    """A live set of the names of a module's buffers that its state dict leaves out."""

    def __init__(self, module: Members) -> None:
        self._module = module

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._module._kinds.get(name) == TRANSIENT

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kind in self._module._kinds.items() if kind == TRANSIENT])

    def __len__(self) -> int:
        return sum(kind == TRANSIENT for kind in self._module._kinds.values())

    def __repr__(self) -> str:
        return repr(set(self))

    def add(self, value: str) -> None:
        kinds = self._module._kinds
        if kinds.get(value) not in BUFFERS:
            raise KeyError(f"'{value}' is no buffer of {type(self._module).__name__}.")
        kinds[value] = TRANSIENT

    def discard(self, value: str) -> None:
        if value in self:
            self._module._kinds[value] = BUFFER

    # What set has beyond operators.

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> set[Any]:
        return set(it)

    def copy(self) -> set[str]:
        return set(self)

    __copy__ = copy

    def update(self, *others: Iterable[str]) -> None:
        for name in set().union(*others):
            self.add(name)


class Members:
    """The part of nn.Module that registers members and walks them."""

    _kinds: dict[str, str]

    def __init__(self) -> None:
        self.__dict__["_kinds"] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__getattr__ is not Members.__getattr__:
            cls._read_members_by_getattr()
        elif cls.__getattribute__ is object.__getattribute__:
            _C._read_attributes_directly(cls)

    @classmethod
    def _read_members_by_getattr(cls) -> None:
        if cls.__getattribute__ is object.__getattribute__:
            _C._read_members_by_getattr(cls)

    # Python finds members by itself. This is for the classes of programs that have a __getattr__
    # of their own, which asks this one first, and for properties that raise AttributeError and have
    # the name of a member; see __init_subclass__ and _place() for the others.
    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__ and name in self.__dict__.get("_kinds", ()):
            return self.__dict__[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def _parameters(self) -> MemberView:
        return MemberView(self, PARAMETER)

    @_parameters.setter
    def _parameters(self, members: Mapping[str, Any]) -> None:
        self._parameters.become(members)

    @property
    def _buffers(self) -> MemberView:
        return MemberView(self, *BUFFERS)

    @_buffers.setter
    def _buffers(self, members: Mapping[str, Any]) -> None:
        self._buffers.become(members)

    @property
    def _non_persistent_buffers_set(self) -> TransientNames:
        return TransientNames(self)

    @_non_persistent_buffers_set.setter
    def _non_persistent_buffers_set(self, names: Iterable[str]) -> None:
        kept, transient = set(names), self._non_persistent_buffers_set
        transient -= transient - kept
        transient |= kept

    @property
    def _modules(self) -> MemberView:
        return MemberView(self, MODULE)

    @_modules.setter
    def _modules(self, members: Mapping[str, Any]) -> None:
        self._modules.become(members)

    # Registration

    # What Module calls __setattr__ and __delattr__.

    def _set_attribute(self, name: str, value: Any) -> None:
        kind = self.__dict__.get("_kinds", {}).get(name)
        if isinstance(value, Tensor) and isinstance(value, Parameter):
            self._check_initialized("parameters")
            if kind != PARAMETER:
                self.__dict__.pop(name, None)
            self.register_parameter(name, value)
        elif isinstance(value, Members):
            self._check_initialized("module")
            self._register(name, value, MODULE)
        elif isinstance(value, Buffer):
            self._check_initialized("buffers")
            if kind not in BUFFERS:
                self.__dict__.pop(name, None)
            self.register_buffer(name, value, value.persistent)
        elif kind is None:
            object.__setattr__(self, name, value)
        else:
            self._replace(name, value, kind)

    def _replace(self, name: str, value: Any, kind: str) -> None:
        if value is not None and not (kind in BUFFERS and isinstance(value, Tensor)):
            role, wanted = {
                PARAMETER: ("parameter", "Parameter or None"),
                MODULE: ("child module", "Module or None"),
            }.get(kind, ("buffer", "Tensor or None"))
            raise TypeError(
                f"{type(self).__name__}: cannot assign '{type(value).__name__}' as {role} "
                f"'{name}' ({wanted} expected). Delete the attribute first to give it a new role."
            )
        self._register(name, value, kind)

    def _delete_attribute(self, name: str) -> None:
        if name in self.__dict__.get("_kinds", ()):
            self._remove(name)
        else:
            object.__delattr__(self, name)

    def _remove(self, name: str) -> None:
        """Removes a member, even where a property of the class has its name."""
        del self.__dict__[name], self._kinds[name]

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if not name[0].isdigit()]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # A shallow copy shares its members with the original, but must not share the registry.
        self.__dict__["_kinds"] = dict(self._kinds)

    def _register(self, name: str, value: Any, kind: str) -> None:
        """Places what hooks make of a checked member; they do not see that a parameter is None."""
        hooks = _HOOKS[kind]
        if hooks and not (value is None and kind == PARAMETER):
            value = _registration_hooks.seen_by(hooks, self, name, value)
        self._place(name, value, kind)

    def _place(self, name: str, value: Any, kind: str) -> None:
        """Registers a checked member; one whose kind changes moves to the end of the order."""
        if self._kinds.get(name) != kind:
            self._kinds.pop(name, None)
            self._kinds[name] = kind
            if hasattr(getattr(type(self), name, None), "__set__"):
                self._read_members_by_getattr()
        self.__dict__[name] = value

    def _check_initialized(self, what: str) -> None:
        if "_kinds" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: cannot assign {what} before Module.__init__() call. "
                "Call super().__init__() first."
            )

    def _check_name(self, name: str, what: str, kinds: tuple[str, ...]) -> None:
        self._check_initialized(what)
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {type(name).__name__}.")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: "{name}".')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string "".')
        if hasattr(self, name) and self._kinds.get(name) not in kinds:
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
        self._check_name(name, "parameter", (PARAMETER,))
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
        self._register(name, param, PARAMETER)

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
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"register_buffer: cannot assign '{type(tensor).__name__}' object to buffer "
                f"'{name}' (Tensor or None required)."
            )
        self._register(name, tensor, BUFFER if persistent else TRANSIENT)

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
        self._check_name(name, "module", (MODULE,))
        if module is not None and not isinstance(module, Members):
            raise TypeError(
                f"add_module: {type(module).__name__} is not a Module subclass. Children are "
                "modules: pass *layers for a list, nn.ReLU() for a function."
            )
        self._register(name, module, MODULE)

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
        return self._get_member(target, (PARAMETER,), "an nn.Parameter")

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

    def _get_member(self, target: str, kinds: tuple[str, ...], what: str) -> Any:
        parent, _, name = target.rpartition(".")
        module = self.get_submodule(parent)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if module._kinds.get(name) not in kinds:
            raise AttributeError(f"`{name}` is not {what}")
        return getattr(module, name)

    # Walks

    def _own(self, *kinds: str) -> list[tuple[str, Any]]:
        """This module's own members of some kinds, None included, in order of registration."""
        values = self.__dict__
        return [(name, values[name]) for name, kind in self._kinds.items() if kind in kinds]

    def _named_members(
        self, kinds: tuple[str, ...], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            values = module.__dict__
            for name, kind in module._kinds.items():
                if kind not in kinds:
                    continue
                value = values[name]
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
        return self._named_members((PARAMETER,), prefix, recurse, remove_duplicate)

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
        return self._named_members(BUFFERS, prefix, recurse, remove_duplicate)

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
        for name, module in self._own(MODULE):
            if module is not None and id(module) not in seen:
                seen.add(id(module))
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

        Example:
            >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU()).named_modules()]
            ['', '0']
        """
        memo = set() if memo is None else memo
        waiting: list[tuple[str, Any]] = [(prefix, self)]  # the next one last
        while waiting:
            path, module = waiting.pop()
            if module is None or module in memo:
                continue
            if remove_duplicate:
                memo.add(module)
            yield path, module
            if MODULE in module._kinds.values():
                for name, child in reversed(module._own(MODULE)):
                    waiting.append((f"{path}.{name}" if path else name, child))
