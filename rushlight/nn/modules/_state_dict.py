"""Saving a module's state into a flat dictionary and filling it from one.

Owns the key scheme ("path.to.module.name"), the metadata and the report of mismatches; not files.
Invariant: load_state_dict tells every problem at once, and only after it copied what fits.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.__future__ import get_swap_module_params_on_conversion
from rushlight.nn.modules._hooks import Hooked
from rushlight.nn.parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The keys on which a module and a state dict disagree."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()


def named_in_order(
    module: Any, args: tuple[Any, ...], prefix: str, keep_vars: bool
) -> tuple[Any, str, bool]:
    """destination, prefix and keep_vars of a call that gave the first of them by position."""
    warnings.warn(
        f"{type(module).__name__}.state_dict: positional arguments are deprecated. Pass "
        "destination, prefix and keep_vars by name.",
        FutureWarning,
        stacklevel=3,
    )
    given: Any = args + (None, prefix, keep_vars)[len(args) :]
    if len(given) > 3:
        raise TypeError(f"state_dict takes 3 arguments, but {len(given)} were given.")
    return given


class Stateful(Hooked):
    """The part of nn.Module that saves and loads its state."""

    # Stored with the state, so that a later class can tell how to read an older file.
    _version: int = 1

    def get_extra_state(self) -> Any:
        """Returns what state_dict stores beside parameters and buffers; override to add some."""
        raise RuntimeError(
            f"{type(self).__name__}: get_extra_state is not defined, but the state dict has extra "
            "state for this module. Define both get_extra_state and set_extra_state."
        )

    def set_extra_state(self, state: Any) -> None:
        """Takes back what get_extra_state returned; override together with it."""
        raise RuntimeError(
            f"{type(self).__name__}: set_extra_state is not defined, but the state dict has extra "
            "state for this module. Define both get_extra_state and set_extra_state."
        )

    def _has_extra_state(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Stateful, method)

    def state_dict(
        self,
        *args: Any,
        destination: OrderedDict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> OrderedDict[str, Any]:
        """Returns all parameters and persistent buffers, keyed by dotted path.

        The tensors share memory with the module; clone them to keep a snapshot.

        Args:
            args: the three that follow, as programs for early versions of PyTorch give them; this
                warns.
            destination: dictionary to fill; a new one if None.
            prefix: text to put before every key.
            keep_vars: whether to keep the tensors attached to autograd instead of detaching them.

        Returns:
            The dictionary; its attribute _metadata holds each module's version.

        Example:
            >>> {key: tuple(t.shape) for key, t in torch.nn.Linear(2, 3).state_dict().items()}
            {'weight': (3, 2), 'bias': (3,)}
        """
        if args:
            destination, prefix, keep_vars = named_in_order(self, args, prefix, keep_vars)
        result: OrderedDict[str, Any]
        if destination is None:
            result = OrderedDict()
            vars(result)["_metadata"] = OrderedDict()
        else:
            result = destination
        local_metadata = {"version": self._version}
        metadata = getattr(result, "_metadata", None)
        if metadata is not None:
            metadata[prefix[:-1]] = local_metadata

        for hook in self._hooks_at("state_dict_pre"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(result, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=result, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._hooks_at("state_dict_post"):
            replaced = hook(self, result, prefix, local_metadata)
            result = result if replaced is None else replaced
        return result

    def _save_to_state_dict(
        self, destination: OrderedDict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Adds this module's own state to destination; override to change what is stored."""
        for name, tensor in self._saved_members():
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if self._has_extra_state("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _saved_members(self) -> list[tuple[str, Any]]:
        members, buffers = list(self._parameters.items()), self._buffers
        if buffers:
            left_out = self._non_persistent_buffers_set
            members += [(n, value) for n, value in buffers.items() if n not in left_out]
        return members

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies the tensors of a state dict into the module.

        Args:
            state_dict: what state_dict() returned.
            strict: whether missing and unexpected keys are errors.
            assign: whether to take over the given tensors, with their dtype and device, instead of
                copying into the module's own.

        Returns:
            The lists missing_keys and unexpected_keys, as a named tuple.

        Raises:
            RuntimeError: if shapes differ or, with strict, keys differ; it lists all of them.
            TypeError: if state_dict is not a mapping.

        Example:
            >>> net = torch.nn.Linear(2, 3)
            >>> net.load_state_dict(torch.nn.Linear(2, 3).state_dict())
            <All keys matched successfully>
        """
        if not hasattr(state_dict, "items"):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict).__name__}. "
                "Pass what state_dict() returned, or what load() read."
            )
        state = OrderedDict(state_dict)
        metadata = getattr(state_dict, "_metadata", {})
        incompatible = _IncompatibleKeys([], [])
        problems: list[str] = []
        self._load_tree(state, "", metadata, assign, incompatible, problems)

        missing, unexpected = incompatible
        if strict and unexpected:
            problems.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}.")
        if strict and missing:
            problems.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}.")
        if problems:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(problems)
            )
        return incompatible

    def _load_tree(
        self,
        state: dict[str, Any],
        prefix: str,
        metadata: Mapping[str, Any],
        assign: bool,
        incompatible: _IncompatibleKeys,
        problems: list[str],
    ) -> None:
        """Loads this module, then its children, from the entries of state under prefix."""
        local_metadata = dict(metadata.get(prefix[:-1], {}))
        if assign:
            local_metadata["assign_to_params_buffers"] = True
        # strict=True: the lists are always filled, and load_state_dict decides what they mean.
        self._load_from_state_dict(state, prefix, local_metadata, True, *incompatible, problems)
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}{name}."
                below = {key: value for key, value in state.items() if key.startswith(path)}
                child._load_tree(below, path, metadata, assign, incompatible, problems)
        for hook in self._hooks_at("load_state_dict_post"):
            if hook(self, incompatible) is not None:
                raise AssertionError(
                    f"{type(self).__name__}: a load_state_dict post-hook must return None. Change "
                    "the lists of incompatible_keys in place."
                )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Fills this module's own members; override to read older layouts of the class."""
        for hook in self._hooks_at("load_state_dict_pre"):
            hook(
                self,
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        members = [(name, t) for name, t in self._saved_members() if t is not None]
        for name, tensor in members:
            key = prefix + name
            if key in state_dict:
                problem = self._load_tensor(name, tensor, key, state_dict[key], assign)
                if problem is not None:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)

        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._has_extra_state("set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)

        if strict:
            own = {name for name, _ in members}
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in self._modules if dot else name not in own:
                        unexpected_keys.append(key)

    def _load_tensor(
        self, name: str, tensor: Tensor, key: str, value: Any, assign: bool
    ) -> str | None:
        """Copies value into one member; returns what is wrong, or None."""
        if not isinstance(value, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value).__name__}."
            )
        if is_lazy(tensor):  # so is the value, see lazy.py: there is nothing to copy
            return None
        # Early PyTorch files store scalars with one element as shape (1,).
        if tensor.dim() == 0 and tuple(value.shape) == (1,):
            value = value[0]
        if value.shape != tensor.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {tuple(value.shape)} from "
                f"checkpoint, the shape in current model is {tuple(tensor.shape)}."
            )
        swaps = get_swap_module_params_on_conversion()
        if assign and not swaps:
            if isinstance(tensor, Parameter):
                if isinstance(value, Parameter):
                    value.requires_grad_(tensor.requires_grad)
                else:
                    value = Parameter(value, tensor.requires_grad)
            setattr(self, name, value)
            return None
        if tensor.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with rl.no_grad():
                if swaps:
                    _swap_in(tensor, value, assign)
                else:
                    tensor.copy_(value)
        except (RuntimeError, NotImplementedError) as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{tuple(tensor.shape)} and whose dimensions in the checkpoint are "
                f"{tuple(value.shape)}, an exception occurred : {error}"
            )
        return None


def _swap_in(tensor: Tensor, value: Tensor, assign: bool) -> None:
    """Makes a member what its class makes of the value to load; it stays the same object."""
    loaded = tensor.module_load(value, assign=assign)
    if loaded is tensor or loaded is value:
        raise RuntimeError(
            f"module_load returned {'self' if loaded is tensor else 'other'}, whose place another "
            "tensor shall take. Return its .detach()."
        )
    if isinstance(tensor, Parameter):
        if isinstance(loaded, Parameter):
            loaded.requires_grad_(tensor.requires_grad)
        else:
            loaded = Parameter(loaded, tensor.requires_grad)
    rl.utils.swap_tensors(tensor, loaded)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
