"""Hooks that watch every module of the process.

Owns their registration; when they run is in _hooks.py, which asks for them at each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.nn.modules._hook_tables import Hook, HookTable
from rushlight.nn.modules._hooks import Hooked, refuse_mixing
from rushlight.utils.hooks import RemovableHandle


def _all_modules() -> HookTable:
    if Hooked._hooks is None:
        Hooked._hooks = HookTable()
    return Hooked._hooks


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, args) before the forward of every module in the process.

    Returns:
        A handle whose remove() undoes the registration.

    Example:
        >>> from rushlight.nn.modules.module import register_module_forward_pre_hook
        >>> def announce(module, args):
        ...     print("entering", module)
        >>> with register_module_forward_pre_hook(announce):
        ...     y = torch.nn.ReLU()(torch.zeros(1))
        entering ReLU()
    """
    return _all_modules().add("forward_pre", Hook(hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Runs hook(module, args, output) after the forward of every module in the process.

    Args:
        hook: what it returns, unless None, replaces the output. With with_kwargs it is called as
            hook(module, args, kwargs, output).
        with_kwargs: whether the hook sees keyword arguments.
        always_call: whether to run even if forward or another hook raises.

    Returns:
        A handle whose remove() undoes the registration.

    Example:
        >>> from rushlight.nn.modules.module import register_module_forward_hook
        >>> def announce(module, args, output):
        ...     print(type(module).__name__, tuple(output.shape))
        >>> with register_module_forward_hook(announce):
        ...     y = torch.nn.Linear(2, 3)(torch.zeros(4, 2))
        Linear (4, 3)
    """
    return _all_modules().add("forward", Hook(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, grad_output) before the backward of every module in the process.

    Returns:
        A handle whose remove() undoes the registration.

    Example:
        >>> from rushlight.nn.modules.module import register_module_full_backward_pre_hook
        >>> x = torch.ones(1, requires_grad=True)
        >>> with register_module_full_backward_pre_hook(lambda module, grad: (grad[0] * 3,)):
        ...     torch.nn.ReLU()(x).backward()
        >>> x.grad.item()
        3.0
    """
    return _all_modules().add("backward_pre", Hook(hook))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, grad_input, grad_output) after the backward of every module.

    Returns:
        A handle whose remove() undoes the registration.

    Example:
        >>> from rushlight.nn.modules.module import register_module_full_backward_hook
        >>> def announce(module, grad_input, grad_output):
        ...     print(module, grad_input[0].tolist())
        >>> x = torch.ones(1, requires_grad=True)
        >>> with register_module_full_backward_hook(announce):
        ...     torch.nn.ReLU()(x).backward()
        ReLU() [1.0]
    """
    refuse_mixing(_all_modules().backward_node, "all modules")
    return _all_modules().add("backward", Hook(hook))


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, grad_input, grad_output) for every module; see register_backward_hook.

    Returns:
        A handle whose remove() undoes the registration.

    Example:
        >>> from rushlight.nn.modules.module import register_module_backward_hook
        >>> handle = register_module_backward_hook(lambda module, grad_input, grad_output: None)
        >>> handle.remove()
    """
    refuse_mixing(_all_modules().backward, "all modules")
    return _all_modules().add("backward_node", Hook(hook))
