"""The base class of optimizers.

Owns parameter groups, the state kept per parameter, hooks and the layout of state_dict, which
PyTorch's checkpoints share. Update rules are elsewhere: each algorithm is a file of its own.
Invariant: `param_groups` and `state` are plain containers that programs read and change between
steps, so a step reads them afresh.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rushlight import Tensor, _named_ranges
from rushlight.optim._helpers import *  # noqa: F403 - libraries import them from here
from rushlight.utils._foreach_utils import Indices, TensorListList
from rushlight.utils._foreach_utils import _group_tensors_by_device_and_dtype as _grouped
from rushlight.utils.hooks import RemovableHandle

# What optimizers are given; programs annotate theirs with it.
ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

Hooks = OrderedDict[int, Callable[..., Any]]

# The hooks of an optimizer: what they run around, as attributes.
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
# Those of all optimizers.
_global_optimizer_pre_hooks: Hooks = OrderedDict()
_global_optimizer_post_hooks: Hooks = OrderedDict()


class _RequiredParameter:
    """Stands in `defaults` for an option that every parameter group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a step method that runs the optimizer's hooks before and after the given one."""

    @functools.wraps(step)
    def step_with_hooks(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._opt_called is False:
            self._opt_called = True
        before, after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        has_hooks = before or after or _global_optimizer_pre_hooks or _global_optimizer_post_hooks
        # Where a subclass's step calls its parent's, the hooks run around the outer one only.
        if type(self).step is not step_with_hooks or not (has_hooks or _named_ranges.is_profiling):
            return step(self, *args, **kwargs)
        return step_between_hooks(self, *args, **kwargs)

    @_named_ranges.shown_as("Optimizer.step#{}.step")
    def step_between_hooks(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        before, after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        args = (self, *args)
        for hook in (*_global_optimizer_pre_hooks.values(), *before.values()):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise RuntimeError(
                    f"{type(self).__name__}.step: a pre-hook returned {changed!r}. "
                    "It must return None or a tuple of (new_args, new_kwargs)."
                )
            args, kwargs = changed
        result = step(*args, **kwargs)
        for hook in (*after.values(), *_global_optimizer_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    return step_with_hooks


class Optimizer:
    """Base class of optimizers: parameter groups, their options and the state of each parameter.

    A subclass calls super().__init__(params, defaults) and defines step.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        defaults: options for the groups that do not give their own.

    Example:
        >>> class Descent(torch.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...     @torch.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for param in group["params"]:
        ...                 param -= group["lr"] * param.grad
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> weight.sum().backward()
        >>> Descent([weight], lr=0.5).step()
        >>> weight.tolist()
        [0.5, 0.5]
    """

    # Whether a step has been taken since the first scheduler was attached; None before that.
    _opt_called: bool | None = None
    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks
    _optimizer_state_dict_pre_hooks: Hooks
    _optimizer_state_dict_post_hooks: Hooks
    _optimizer_load_state_dict_pre_hooks: Hooks
    _optimizer_load_state_dict_post_hooks: Hooks

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            given = params.type() if isinstance(params, Tensor) else type(params).__name__
            raise TypeError(
                f"{type(self).__name__}: params argument given to the optimizer should be an "
                f"iterable of Tensors or dicts, but got {given}. Pass a list of parameters, or "
                "what model.parameters() returns."
            )
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []

        groups: list[Any] = list(params)
        if not groups:
            raise ValueError(
                f"{type(self).__name__}: optimizer got an empty parameter list. "
                "A generator such as model.parameters() can be read once only; keep a list of it."
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.step)

    def __getstate__(self) -> dict[str, Any]:
        # Hooks stay behind, as in PyTorch: they are seldom picklable.
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __getattr__(self, name: str) -> Any:
        # Wrappers of other optimizers often leave __init__ out, so hooks begin when asked for.
        if name not in _HOOKS:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return self.__dict__.setdefault(name, OrderedDict())

    def _patch_step_function(self) -> None:
        """Does nothing; such wrappers call it to have hooks run around their step."""

    def __repr__(self) -> str:
        texts = []
        for i, group in enumerate(self.param_groups):
            options = [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
            texts.append("\n".join([f"Parameter Group {i}", *options]))
        return f"{type(self).__name__} (\n" + "\n\n".join(texts) + "\n)"

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once; every algorithm defines it.

        Args:
            closure: function that computes the gradients anew and returns the loss.
        Returns:
            What the closure returned, or None.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step")

    @_named_ranges.shown_as("Optimizer.zero_grad#{}.zero_grad")
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters.

        Args:
            set_to_none: drop the gradients, which frees their memory; False fills them with zeros.
        """
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    if param.grad.requires_grad:  # create_graph gave it a history
                        param.grad = param.grad.detach()
                    param.grad.zero_()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters with options of its own.

        Args:
            param_group: "params" (a tensor, tensors or (name, tensor) pairs) and options; those
                that it lacks are the optimizer's defaults.
        """
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(f"{name}: param_group must be a dict, but got {type(param_group)}")
        if "params" not in param_group:
            raise KeyError(f"{name}: a parameter group needs 'params', but has {[*param_group]}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        if isinstance(params, set):
            raise TypeError(
                f"{name}: optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs. Please use a list."
            )
        params = list(params)
        group = {**param_group, "params": params}

        named = [isinstance(param, tuple) for param in params]
        if any(named):
            if not all(named):
                raise ValueError(
                    f"{name}: all optimizer params should be with/without names, but some "
                    "param names are missing"
                )
            group["params"] = [param for _, param in params]
            group["param_names"] = [param_name for param_name, _ in params]
        if any(("param_names" in other) != ("param_names" in group) for other in self.param_groups):
            raise ValueError(
                f"{name}: all optimizer param groups should be with/without names. "
                "Give (name, tensor) pairs to all groups or to none."
            )

        for key, value in self.defaults.items():
            if value is required and key not in group:
                raise ValueError(
                    f"{name}: parameter group didn't specify a value of required optimization "
                    f"parameter {key}"
                )
            group.setdefault(key, value)
        self._check_params(group["params"])
        self.param_groups.append(group)

    def _check_params(self, params: list[Any]) -> None:
        name = type(self).__name__
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    f"{name}: optimizer can only optimize Tensors, but one of the params is "
                    f"{type(param).__name__}. Pass what model.parameters() returns."
                )
            is_leaf = param.is_leaf or param.retains_grad or self.defaults.get("differentiable")
            if not is_leaf:
                raise ValueError(
                    f"{name}: can't optimize a non-leaf Tensor of shape {tuple(param.shape)}. "
                    "Parameters must be leaves; pass x.detach() or the tensor it came from."
                )
        if len(set(params)) != len(params):
            warnings.warn(
                f"{name}: optimizer contains a parameter group with duplicate parameters; each "
                "step updates them more than once",
                stacklevel=4,
            )
        others = {param for group in self.param_groups for param in group["params"]}
        if not others.isdisjoint(params):
            raise ValueError(f"{name}: some parameters appear in more than one parameter group")

    def state_dict(self) -> dict[str, Any]:
        """Returns the state and the options, with parameters replaced by their position.

        Returns:
            {"state": {position: state}, "param_groups": [options with "params": [positions]]}.
            The tensors are not copied.
        """
        for hook in tuple(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        positions: dict[Tensor, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                positions.setdefault(param, len(positions))
            params = [positions[param] for param in group["params"]]
            groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": params})
        state = {
            positions.get(key, key): self._exported(value) for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in tuple(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def _exported(self, state: Any) -> Any:
        """Returns one entry of the state as state_dict has it."""
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the state and options of another optimizer over the same parameters.

        Args:
            state_dict: what state_dict returned, here or in PyTorch. Its tensors are not copied
                unless a dtype or device changes.

        Raises:
            TypeError: state_dict is no dict.
            KeyError: it lacks "state" or "param_groups".
            ValueError: the groups or the number of their parameters differ.
        """
        name = type(self).__name__
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"{name}.load_state_dict: expected what state_dict() returned, got "
                f"{type(state_dict).__name__}."
            )
        state_dict = dict(state_dict)
        for hook in tuple(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        if not {"state", "param_groups"} <= state_dict.keys():
            raise KeyError(
                f"{name}.load_state_dict: 'state' and 'param_groups' are needed, got "
                f"{[*state_dict]}."
            )
        saved_groups = copy.deepcopy(state_dict["param_groups"])
        self._check_sizes(saved_groups)
        params: dict[Any, Tensor] = {}
        groups = []
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            params.update(zip(saved["params"], group["params"], strict=True))
            # Options that an older file lacks take their defaults.
            options = {**self.defaults, **saved, "params": group["params"]}
            if "param_names" in group:
                options.setdefault("param_names", group["param_names"])
            groups.append(options)
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _move_like(params[key], value)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in tuple(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def _check_sizes(self, saved_groups: list[dict[str, Any]]) -> None:
        name = type(self).__name__
        sizes = [len(group["params"]) for group in self.param_groups]
        saved_sizes = [len(group["params"]) for group in saved_groups]
        if len(sizes) != len(saved_sizes):
            raise ValueError(
                f"{name}.load_state_dict: loaded state dict has a different number of parameter "
                f"groups: {len(saved_sizes)}, but the optimizer has {len(sizes)}"
            )
        if sizes != saved_sizes:
            raise ValueError(
                f"{name}.load_state_dict: loaded state dict contains a parameter group that "
                "doesn't match the size of optimizer's group: its groups have "
                f"{saved_sizes} parameters, but the optimizer's have {sizes}"
            )

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) before each step.

        The hook returns None or new (args, kwargs) for step. args begins with the optimizer.
        """
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer) before state_dict, first of all hooks with prepend."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self,
        hook: Callable[[Optimizer, dict[str, Any]], dict[str, Any] | None],
        prepend: bool = False,
    ) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) after state_dict; it may return another one."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self,
        hook: Callable[[Optimizer, dict[str, Any]], dict[str, Any] | None],
        prepend: bool = False,
    ) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) before load_state_dict, with a shallow copy.

        The hook may change that or return another one.
        """
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer) after load_state_dict, first of all hooks with prepend."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: TensorListList, with_indices: bool = False
    ) -> dict[Any, tuple[TensorListList, Indices]]:
        return _grouped(tensorlistlist, with_indices)


def _register(hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) before each step of every optimizer.

    Args:
        hook: returns None or new (args, kwargs) for step.
    Returns:
        A handle whose remove() takes the hook out again.
    """
    return _register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) after each step of every optimizer.

    Args:
        hook: what it returns is ignored.
    Returns:
        A handle whose remove() takes the hook out again.
    """
    return _register(_global_optimizer_post_hooks, hook)


def _move_like(param: Tensor, value: Any, key: str | None = None) -> Any:
    """Returns saved state with its tensors on the parameter's device and in its dtype."""
    if isinstance(value, Tensor):
        # A step count stays a float32 scalar on the CPU, whatever the parameter is.
        if key == "step":
            return value
        if param.dtype.is_floating_point:
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _move_like(param, v, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_move_like(param, v) for v in value)
    return value
