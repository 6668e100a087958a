"""Puts tensors in the place of others in a module, for a while, by their dotted paths.

func.functional_call does it for the time of one call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rushlight import Tensor, nn

__all__ = ["NamedMemberAccessor", "swap_submodule", "swap_tensor"]

_MISSING: Any = object()  # what swap_tensor returns, and takes, where there is nothing


def swap_tensor(
    module: nn.Module, name: str, tensor: Tensor | None, allow_missing: bool = False
) -> Any:
    """Puts a tensor in the place of a parameter, a buffer or an attribute, and returns that.

    The place stays what it is: a parameter's may hold a tensor that is no nn.Parameter.

    Args:
        module: what the tensor belongs to.
        name: its name there, without dots.
        tensor: the new one.
        allow_missing: whether there may be none so far; what then comes back can be passed as
            tensor later, to remove the new one.

    Raises:
        AttributeError: if there is none.
        TypeError: if either is not a tensor, or module not a Module.
        KeyError: if name is empty or has a dot.

    Example:
        >>> from rushlight.nn.utils._named_member_accessor import swap_tensor
        >>> layer = torch.nn.Linear(1, 1)
        >>> weight = swap_tensor(layer, "weight", torch.ones(1, 1))
        >>> list(dict(layer.named_parameters())), layer.weight
        (['weight', 'bias'], tensor([[1.]]))
        >>> swap_tensor(layer, "weight", weight)
        tensor([[1.]])
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"swap_tensor: {module!r} is not an instance of torch.nn.Module")
    if not name or "." in name:
        raise KeyError(f"swap_tensor: tensor name must not be empty or contain a dot, got {name!r}")
    members = next((m for m in (module._parameters, module._buffers) if name in m), None)
    before = getattr(module, name, _MISSING) if members is None else members[name]
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    for value in (before, tensor):
        if value is not None and value is not _MISSING and not isinstance(value, Tensor):
            raise TypeError(f"swap_tensor: {name}: {value!r} is not an instance of torch.Tensor")
    if members is not None and tensor is not _MISSING:
        members[name] = tensor
    elif members is not None:
        del members[name]
    elif tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before


def swap_submodule(module: nn.Module, name: str, submodule: nn.Module) -> nn.Module:
    """Puts a submodule in the place of another, and returns that.

    Args:
        module: what it belongs to.
        name: its name there, without dots.
        submodule: the new one.

    Raises:
        KeyError: if there is none of that name.
        TypeError: if one of them is no Module.
    """
    for value in (module, submodule):
        if not isinstance(value, nn.Module):
            raise TypeError(f"swap_submodule: {value!r} is not an instance of torch.nn.Module")
    before = module._modules.get(name)
    if before is None:
        raise KeyError(f"swap_submodule: submodule {name!r} does not exist")
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """The tensors and submodules of a module, to be read and replaced by their dotted paths.

    Args:
        module: the module. Its submodules on the way are looked up once.

    Example:
        >>> from rushlight.nn.utils._named_member_accessor import NamedMemberAccessor
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1))
        >>> accessor = NamedMemberAccessor(model)
        >>> before, missing = accessor.swap_tensors_dict({"0.weight": torch.zeros(1, 1)})
        >>> accessor.get_tensor("0.weight")
        tensor([[0.]])
        >>> _ = accessor.swap_tensors_dict(before)
        >>> model[0].weight is before["0.weight"]
        True
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.memo: dict[str, nn.Module] = {"": module}

    def get_submodule(self, name: str) -> nn.Module:
        """Returns a submodule; "" is the module itself.

        Raises:
            AttributeError: if there is none.
            TypeError: if it is no Module.
        """
        if name not in self.memo:
            owner, attribute = self._place(name)
            if not hasattr(owner, attribute):
                raise AttributeError(f"{type(owner).__name__} has no attribute `{attribute}`")
            found = getattr(owner, attribute)
            if not isinstance(found, nn.Module):
                raise TypeError(
                    f"submodule `{name}`: {found!r} is not an instance of torch.nn.Module"
                )
            self.memo[name] = found
        return self.memo[name]

    def _place(self, path: str) -> tuple[nn.Module, str]:
        """The submodule that something belongs to, and its name there."""
        prefix, _, name = path.rpartition(".")
        return self.get_submodule(prefix), name

    def swap_submodule(self, path: str, value: nn.Module) -> nn.Module:
        """Puts a submodule in the place of another, and returns that; see swap_submodule."""
        before = swap_submodule(*self._place(path), value)
        below = (name for name in list(self.memo) if f"{name}.".startswith(f"{path}."))
        for name in below:
            del self.memo[name]
        return before

    def get_tensor(self, name: str) -> Tensor:
        """Returns a parameter, a buffer or an attribute.

        Raises:
            AttributeError: if there is none.
            TypeError: if it is neither a tensor nor None.
        """
        owner, attribute = self._place(name)
        if not hasattr(owner, attribute):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        found = getattr(owner, attribute)
        if found is not None and not isinstance(found, Tensor):
            raise TypeError(f"{name}: {found!r} is not an instance of torch.Tensor")
        return found  # pyright: ignore[reportReturnType]

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Sets one, which need not be there."""
        swap_tensor(*self._place(name), value, allow_missing=True)

    def del_tensor(self, name: str) -> None:
        """Removes one.

        Raises:
            AttributeError: if there is none.
        """
        swap_tensor(*self._place(name), _MISSING)

    def swap_tensor(self, name: str, value: Tensor, allow_missing: bool = False) -> Any:
        """Puts one in the place of another, and returns that; see swap_tensor."""
        return swap_tensor(*self._place(name), value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """Returns several; see get_tensor."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Sets several; see set_tensor."""
        for name, value in _paired(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Sets several, by name; see set_tensor."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Removes several; see del_tensor."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Tensor], allow_missing: bool = False
    ) -> list[Any]:
        """Puts several in the place of others, and returns those; see swap_tensor."""
        return [
            self.swap_tensor(name, value, allow_missing) for name, value in _paired(names, values)
        ]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Puts several in the place of others.

        Args:
            named_tensors: the new ones, by name.
            allow_missing: whether some may not have been there.

        Returns:
            Those that were there, with which a second call undoes it, and the names of others.

        Raises:
            RuntimeError: if some were not there, but must. Then all is as it was.
        """
        before: dict[str, Any] = {}
        try:
            for name, value in named_tensors.items():
                before[name] = self.swap_tensor(name, value, allow_missing=True)
            missing = [name for name, value in before.items() if value is _MISSING]
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, value in before.items():
                self.swap_tensor(name, value, allow_missing=True)
            raise
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Returns the tensors that names lack, and the names that no tensor has."""
        given = set(keys)
        known = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(known - given), sorted(given - known)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Returns the names and parameters."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Returns the names and buffers."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Returns the names, parameters and buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, nn.Module]]:
        """Returns the names and submodules."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


def _paired(names: Iterable[str], values: Iterable[Tensor]) -> Iterable[tuple[str, Tensor]]:
    """Names with their tensors.

    Raises:
        AssertionError: if there are not as many.
    """
    names, values = list(names), list(values)
    if len(names) != len(values):
        raise AssertionError(
            f"names and values must have the same length, got {len(names)} names and "
            f"{len(values)} values"
        )
    return zip(names, values, strict=True)
