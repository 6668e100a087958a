"""Functions that run around a module's forward and backward.

Owns the registration of hooks on one module, and the call of a module. Not here: hooks that watch
every module (_global_hooks.py), how hooks are kept (_hook_tables.py), tensor hooks, and how
backward hooks are spliced into the tape (_backward_hooks.py).
Invariant: `_hooks` is None on a module without hooks unless some hook watches every module, so the
common call costs one attribute test before it goes to forward.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from rushlight import _C
from rushlight.nn.modules._hook_tables import FlagView, Hook, HooksOf, HookTable, HookWithoutModule
from rushlight.nn.modules._member_dicts import own_dict
from rushlight.nn.modules._members import Members
from rushlight.utils.hooks import RemovableHandle

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _Forwards(Protocol[P, R]):
    """A module as type checkers see it in a call."""

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Hooked(Members):
    """The part of nn.Module that is called and runs hooks."""

    _hooks: HookTable | None = None  # on the class: hooks that watch every module

    def _forward_unimplemented(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function. '
            "Define it in the class; the modules of a ModuleList are called one by one."
        )

    # Declared as a variable so that subclasses may give it any signature.
    if TYPE_CHECKING:
        forward: Callable[..., Any]
    else:
        forward = _forward_unimplemented

    if TYPE_CHECKING:
        # A call takes what the forward of the module's own class takes, and returns the same.
        def __call__(self: _Forwards[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    else:
        __call__ = _C._module_call  # goes to forward, or below when there are hooks
        _call_impl = __call__  # PyTorch's name

    def _call_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        return _call_with_hooks(self, args, kwargs)

    def _own_hooks(self) -> HookTable:
        return own_dict(self).setdefault("_hooks", HookTable())

    _forward_pre_hooks = HooksOf("forward_pre")
    _forward_hooks = HooksOf("forward")
    _backward_pre_hooks = HooksOf("backward_pre")
    _backward_hooks = HooksOf("backward")
    _state_dict_pre_hooks = HooksOf("state_dict_pre")
    _state_dict_hooks = HooksOf("state_dict_post")
    _load_state_dict_pre_hooks = HooksOf("load_state_dict_pre")
    _load_state_dict_post_hooks = HooksOf("load_state_dict_post")

    @property
    def _forward_pre_hooks_with_kwargs(self) -> FlagView:
        return FlagView(self, "forward_pre", "takes_kwargs")

    @property
    def _forward_hooks_with_kwargs(self) -> FlagView:
        return FlagView(self, "forward", "takes_kwargs")

    @property
    def _forward_hooks_always_called(self) -> FlagView:
        return FlagView(self, "forward", "always_call")

    def _hooks_at(self, moment: str) -> list[Hook]:
        """The hooks for a moment in calling order: those of all modules, then this module's."""
        if self._hooks is None:
            return []
        tables = (Hooked._hooks, own_dict(self).get("_hooks"))
        return [hook for table in tables if table for hook in getattr(table, moment).values()]

    def _drop_empty_tables(self) -> None:
        """Brings back the short way through __call__ once all hooks were removed."""
        if not own_dict(self).get("_hooks", True):
            del self._hooks
        if not Hooked._hooks:
            Hooked._hooks = None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Runs hook(module, args) before every forward; what it returns replaces args.

        Args:
            hook: returns None to change nothing, or the new positional arguments. With with_kwargs
                it is called as hook(module, args, kwargs) and returns None or (args, kwargs).
            prepend: whether to run before the hooks already registered.
            with_kwargs: whether the hook sees keyword arguments.

        Returns:
            A handle whose remove() undoes the registration.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_forward_pre_hook(lambda module, args: (-args[0],))
            >>> layer(torch.tensor([-1.0, 2.0])).tolist()
            [1.0, 0.0]
        """
        return self._own_hooks().add("forward_pre", Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Runs hook(module, args, output) after every forward; what it returns replaces output.

        Args:
            hook: returns None to change nothing. With with_kwargs it is called as
                hook(module, args, kwargs, output).
            prepend: whether to run before the hooks already registered.
            with_kwargs: whether the hook sees keyword arguments.
            always_call: whether to run even if forward or another hook raises; output is None then.

        Returns:
            A handle whose remove() undoes the registration.

        Example:
            >>> shapes = []
            >>> layer = torch.nn.Linear(2, 3)
            >>> def note(module, args, output):
            ...     shapes.append(tuple(output.shape))
            >>> handle = layer.register_forward_hook(note)
            >>> y = layer(torch.zeros(4, 2))
            >>> shapes
            [(4, 3)]
        """
        return self._own_hooks().add("forward", Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Runs hook(module, grad_output) when the gradients of the module's outputs are known.

        Args:
            hook: grad_output is a tuple; what it returns (a tensor or tuple) replaces it.
            prepend: whether to run before the hooks already registered.

        Returns:
            A handle whose remove() undoes the registration.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_full_backward_pre_hook(lambda module, grad: grad[0] * 2)
            >>> x = torch.ones(1, requires_grad=True)
            >>> layer(x).backward()
            >>> x.grad.item()
            2.0
        """
        return self._own_hooks().add("backward_pre", Hook(hook), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Runs hook(module, grad_input, grad_output) when the inputs' gradients are known.

        Args:
            hook: both gradients are tuples, with None for what is not a tensor that requires grad;
                what it returns replaces grad_input. Keyword arguments of forward are not watched.
            prepend: whether to run before the hooks already registered.

        Returns:
            A handle whose remove() undoes the registration.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_full_backward_hook(
            ...     lambda module, grad_input, grad_output: (grad_input[0] + 5,))
            >>> x = torch.ones(1, requires_grad=True)
            >>> layer(x).backward()
            >>> x.grad.item()
            6.0
        """
        refuse_mixing(self._own_hooks().backward_node, "a single Module")
        return self._own_hooks().add("backward", Hook(hook), prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs hook(module, grad_input, grad_output) around the op that made the output; old.

        Use register_full_backward_hook: here grad_input are the gradients of the inputs of the last
        op of forward, whatever these are.

        Returns:
            A handle whose remove() undoes the registration.

        Warns:
            FutureWarning: in a call whose gradients are more than the hook will see.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_backward_hook(lambda module, grad_input, grad_output: None)
        """
        refuse_mixing(self._own_hooks().backward, "a single Module")
        return self._own_hooks().add("backward_node", Hook(hook))

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs hook(module, prefix, keep_vars) before state_dict reads the module.

        Returns:
            A handle whose remove() undoes the registration.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_state_dict_pre_hook(
            ...     lambda module, prefix, keep_vars: print("saving", type(module).__name__))
            >>> state = layer.state_dict()
            saving ReLU
        """
        return self._own_hooks().add("state_dict_pre", Hook(hook))

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs hook(module, state_dict, prefix, local_metadata) after state_dict read the module.

        Args:
            hook: edits state_dict in place, and returns None.

        Returns:
            A handle whose remove() undoes the registration.

        Example:
            >>> def drop_bias(module, state, prefix, metadata):
            ...     del state[prefix + "bias"]
            >>> layer = torch.nn.Linear(2, 3)
            >>> handle = layer.register_state_dict_post_hook(drop_bias)
            >>> list(layer.state_dict())
            ['weight']
        """

        def checked(*args: Any) -> None:
            if hook(*args) is not None:
                raise RuntimeError("state_dict post-hook must return None")

        return self._own_hooks().add("state_dict_post", Hook(checked))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like register_state_dict_post_hook, but what the hook returns replaces the state dict."""
        return self._own_hooks().add("state_dict_post", Hook(hook))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs a hook before load_state_dict fills the module.

        Args:
            hook: called as hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
                unexpected_keys, error_msgs); it may edit state_dict in place.

        Returns:
            A handle whose remove() undoes the registration.

        Example:
            >>> layer = torch.nn.Linear(2, 3, bias=False)
            >>> def rename(module, state, prefix, *rest):
            ...     state[prefix + "weight"] = state.pop(prefix + "w")
            >>> handle = layer.register_load_state_dict_pre_hook(rename)
            >>> layer.load_state_dict({"w": torch.zeros(3, 2)})
            <All keys matched successfully>
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        kind = Hook if with_module else HookWithoutModule
        return self._own_hooks().add("load_state_dict_pre", kind(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs hook(module, incompatible_keys) after load_state_dict filled the module.

        Args:
            hook: may edit the lists of incompatible_keys in place to forgive or add problems; it
                returns None.

        Returns:
            A handle whose remove() undoes the registration.

        Example:
            >>> layer = torch.nn.Linear(2, 3)
            >>> handle = layer.register_load_state_dict_post_hook(
            ...     lambda module, keys: keys.missing_keys.clear())
            >>> layer.load_state_dict({})
            <All keys matched successfully>
        """
        return self._own_hooks().add("load_state_dict_post", Hook(hook))


def _call_with_hooks(module: Hooked, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    module._drop_empty_tables()
    called: list[Hook] = []
    forward = module.forward  # a hook may change the class of a lazy module
    result = None
    try:
        for hook in module._hooks_at("forward_pre"):
            args, kwargs = _run_forward_pre_hook(module, hook, args, kwargs)

        watch = None
        backward_hooks = module._hooks_at("backward")
        backward_pre_hooks = module._hooks_at("backward_pre")
        if backward_hooks or backward_pre_hooks:
            from rushlight.nn.modules._backward_hooks import BackwardWatch

            watch = BackwardWatch(module, backward_hooks, backward_pre_hooks)
            args = watch.inputs(args)

        result = forward(*args, **kwargs)

        for hook in module._hooks_at("forward"):
            called.append(hook)
            result = _run_forward_hook(module, hook, args, kwargs, result)
        if watch is not None:
            result = watch.outputs(result)
        if node_hooks := module._hooks_at("backward_node"):
            _hook_node(module, node_hooks, args, result)
        return result
    except BaseException:
        for hook in module._hooks_at("forward"):
            if not hook.always_call or hook in called:
                continue
            try:
                _run_forward_hook(module, hook, args, kwargs, result)
            except Exception as error:
                warnings.warn(
                    "module forward hook with always_call=True raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                    stacklevel=2,
                )
        raise


def _hook_node(module: Hooked, hooks: list[Hook], inputs: tuple[Any, ...], result: Any) -> None:
    """Hangs hooks on the node that made the first tensor of the result."""
    first = result
    while isinstance(first, (dict, list, tuple)):
        first = next(iter(first.values() if isinstance(first, dict) else first))
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(functools.partial(hook, module))
    if _nodes_of(result) - {node}:
        _warn_of_missing("grad_output", "outputs are generated by different autograd Nodes")
    elif {following for following, _ in node.next_functions if following} != _nodes_of(inputs):
        _warn_of_missing("grad_input", "the forward contains multiple autograd Nodes")


def _nodes_of(tensors: Any) -> set[Any]:
    """The nodes that made a tensor, or those in a tuple."""
    several = tensors if isinstance(tensors, tuple) else (tensors,)
    return {getattr(each, "grad_fn", None) for each in several} - {None}


def _warn_of_missing(gradients: str, why: str) -> None:
    warnings.warn(
        f"Using a non-full backward hook when {why} is deprecated and will be removed in future "
        f"versions. This hook will be missing some {gradients}. Please use "
        "register_full_backward_hook to get the documented behavior.",
        FutureWarning,
        stacklevel=5,
    )


def refuse_mixing(others: OrderedDict[int, Hook], where: str) -> None:
    """Raises RuntimeError where there are backward hooks of the other kind."""
    if others:
        raise RuntimeError(
            f"Cannot use both regular backward hooks and full backward hooks on {where}. "
            "Please use only one of them."
        )


def _run_forward_pre_hook(
    module: Hooked, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not hook.takes_kwargs:
        changed = hook(module, args)
        if changed is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs
    changed = hook(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise RuntimeError(
            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
            f"but got {changed}."
        )
    return changed


def _run_forward_hook(
    module: Hooked, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Any:
    inputs = (args, kwargs) if hook.takes_kwargs else (args,)
    changed = hook(module, *inputs, result)
    return result if changed is None else changed
