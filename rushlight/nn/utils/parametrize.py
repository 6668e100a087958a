"""Parameters that are computed from others: parametrize.register_parametrization and its kin.

Owns the swap of a parameter for a property that computes it; which maps there are to compute it
with is in parametrizations.py. Invariant: a module with parametrizations has a class made for it,
which only its copies share, and gets back the one it had with the last of them removed.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules.container import ModuleDict, ModuleList
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache: dict[tuple[int, str], Tensor] = {}
_cache_depth = 0


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Computes each parametrized tensor once inside the block, however often it is used.

    Example:
        >>> from rushlight.nn.utils import parametrize
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> layer.weight is layer.weight
        False
        >>> with parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor and what they compute it from.

    register_parametrization makes it. What the tensor is computed from is its attribute `original`,
    or original0, original1, ... where the first parametrization takes several tensors.

    Args:
        modules: the parametrizations, the first one first.
        original: the tensor before they were there.
        unsafe: whether they may change its shape and dtype.

    Raises:
        ValueError: if there are none, or one returns something else than it may.
    """

    def __init__(
        self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False
    ) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        value = _inverted(reversed(self), original)
        self.is_tensor = isinstance(value, Tensor)
        self.ntensors = len(value) if not self.is_tensor else 1
        if self.is_tensor:
            _check_kept("dtype", dtype, value.dtype)
            _check_kept("device", original.device, value.device)
            with rl.no_grad():
                original.set_(value)
            _register(self, "original", original)
        for i, part in enumerate(() if self.is_tensor else value):
            if not isinstance(part, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {i} of the sequence with type {type(part).__name__}."
                )
            if isinstance(original, Parameter):
                part = Parameter(part, original.requires_grad)
            _register(self, f"original{i}", part.requires_grad_(original.requires_grad))
        if not unsafe:
            _check_result(self(), shape, dtype)

    def right_inverse(self, value: Tensor) -> None:
        """Changes the originals so that the tensor becomes value, or what the maps make of it.

        Raises:
            RuntimeError: if a parametrization has no right_inverse.
            ValueError: if one returns tensors that do not fit the originals.
        """
        parts: Any = value
        with rl.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                parts = module.right_inverse(parts)
            if self.is_tensor:
                if not isinstance(parts, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(parts).__name__}"
                    )
                self._set("original", parts, "The tensor")
                return
            if not isinstance(parts, Sequence):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors. "
                    f"Got {type(parts).__name__}."
                )
            if len(parts) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                    f"Got a sequence of length {len(parts)}."
                )
            for i, part in enumerate(parts):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors. Got element "
                        f"{i} of type {type(part).__name__}."
                    )
                self._set(f"original{i}", part, f"Tensor {i}")

    def _set(self, name: str, value: Tensor, what: str) -> None:
        original = getattr(self, name)
        if value.dtype != original.dtype:
            raise ValueError(
                f"{what} returned by `right_inverse` has dtype {value.dtype} while `{name}` has "
                f"dtype {original.dtype}"
            )
        original.set_(value)

    def _original_names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def forward(self) -> Tensor:
        """Computes the tensor."""
        first, *others = self
        result = first(*(getattr(self, name) for name in self._original_names()))
        for module in others:
            result = module(result)
        return result


def _inverted(modules: Iterator[Module], value: Any) -> Any:
    """What the tensor has to be computed from, so that it stays as it is."""
    with rl.no_grad():
        for module in modules:
            if hasattr(module, "right_inverse"):
                # one that cannot be inverted leaves the value as it is, as one without the method
                with contextlib.suppress(NotImplementedError):
                    value = module.right_inverse(value)
    if not isinstance(value, Tensor | Sequence):
        raise ValueError(
            "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
            f"Got {type(value).__name__}"
        )
    return value


def _check_kept(what: str, before: Any, after: Any) -> None:
    if before != after:
        raise ValueError(
            f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
            f"original.{what}: {before}\n"
            f"right_inverse(original).{what}: {after}"
        )


def _check_result(value: Any, shape: rl.Size, dtype: rl.dtype) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    for quality, before, after in (("dtype", dtype, value.dtype), ("shape", shape, value.shape)):
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {quality} of the tensor, unless "
                "the `unsafe` flag is enabled.\n"
                f"unparametrized {quality}: {before}\n"
                f"parametrized {quality}: {after}"
            )


def _check_inverse(parametrization: Module, value: Tensor, before: Tensor) -> None:
    """Tries the inverse of a parametrization that is put on top of others."""
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(value)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}"
        )
    for quality in ("dtype", "shape"):
        wanted, found = getattr(before, quality), getattr(inverse, quality)
        if wanted != found:
            raise ValueError(
                "The tensor returned by parametrization.right_inverse must have the same "
                f"{quality} as the parametrized tensor, unless the `unsafe` flag is enabled.\n"
                f"tensor's {quality}: {wanted}\n"
                f"returned {quality}: {found}"
            )


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set_class(module: Module, base: Any) -> None:
    """Gives a module its class for the tensors that are parametrized now.

    It is never changed afterwards, because copies of the module share it.
    """

    def refuse_pickling(self: Module) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). "
            "Save module.state_dict(), and register the same parametrizations before loading it."
        )

    def deepcopy_members(self: Module, memo: dict[int, Any]) -> Module:
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    members: dict[str, Any] = {name: _computed(name) for name in module.parametrizations}
    members["__getstate__"] = refuse_pickling
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = deepcopy_members
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _computed(name: str) -> property:
    """The property that stands where a tensor was."""

    def get(self: Module) -> Tensor:
        if name in self.__dict__:  # functional_call gives another tensor
            return self.__dict__[name]
        parametrizations = self.parametrizations[name]
        if not _cache_depth:
            return parametrizations()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrizations()
        return _cache[key]

    def set_(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set_)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Lets a parameter or buffer be computed: reading it gives parametrization(original).

    The original is module.parametrizations.<tensor_name>.original, and what is trained. With a
    method right_inverse(value) the parametrization tells what original makes the tensor have a
    value; it is asked for the value that the tensor has now, and for those assigned to it. It may
    return several tensors, which the parametrization is then called with.

    Args:
        module: what the tensor belongs to.
        tensor_name: the name of a parameter or buffer, which may be parametrized already.
        parametrization: the map.
        unsafe: whether it may change shape and dtype; it is not tried here then.

    Returns:
        module.

    Raises:
        ValueError: if there is no such parameter or buffer, or the map returns something else than
            a tensor of the same shape and dtype.

    Example:
        >>> class Symmetric(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).mT
        >>> layer = torch.nn.Linear(3, 3)
        >>> from rushlight.nn.utils import parametrize
        >>> layer = parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.mT)
        True
        >>> list(layer.state_dict())
        ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_result(after, before.shape, before.dtype)
            _check_inverse(parametrization, after, before)
        present = module.parametrizations[tensor_name]
        present.append(parametrization)
        present.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
    base = type_before_parametrizations(module)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parametrizations
    _set_class(module, base)
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Returns whether a tensor of a module, or any if None, has a parametrization.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> torch.nn.utils.parametrize.is_parametrized(layer, "bias")
        False
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes a parametrized tensor an ordinary parameter or buffer again.

    Args:
        module: what the tensor belongs to.
        tensor_name: its name.
        leave_parametrized: whether it keeps the value that it has now; otherwise it gets that of
            its original.

    Returns:
        module.

    Raises:
        ValueError: if the tensor is not parametrized, or has several originals to get back.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=2, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with rl.no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    base = type_before_parametrizations(module)
    del module.parametrizations[tensor_name]
    if is_parametrized(module):
        _set_class(module, base)
    else:
        del module.parametrizations
        module.__class__ = base
    _register(module, tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """Returns the class that a module has without its parametrizations.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> torch.nn.utils.parametrize.type_before_parametrizations(layer).__name__
        'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives a module the parametrizations of another one, and shares their originals.

    Args:
        from_module: whose parametrizations to take.
        to_module: gets them, and the tensors that it does not have yet.
        tensor_name: the only tensor to do it for; None does it for all.

    Returns:
        to_module.

    Example:
        >>> first = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> from rushlight.nn.utils import parametrize
        >>> second = parametrize.transfer_parametrizations_and_params(first, torch.nn.Linear(2, 3))
        >>> torch.equal(first.weight, second.weight)
        True
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization, unsafe=source.unsafe)
        target = to_module.parametrizations[name]
        for original in source._original_names():
            setattr(target, original, getattr(source, original))
    return to_module
