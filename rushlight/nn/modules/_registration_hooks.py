"""Hooks of the whole process that see each parameter, buffer and child module that a module gets.

Owns the hooks and running them; _members.py says when. Not called for what is put into the views
`_parameters`, `_buffers` and `_modules`, which is past registration.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rushlight.utils.hooks import RemovableHandle

Hooks = OrderedDict[int, Callable[..., Any]]

parameter_hooks: Hooks = OrderedDict()
buffer_hooks: Hooks = OrderedDict()
module_hooks: Hooks = OrderedDict()


def seen_by(hooks: Hooks, module: Any, name: str, value: Any) -> Any:
    """Returns what the hooks make of a value that a module gets under a name."""
    for hook in tuple(hooks.values()):
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _add(hooks: Hooks, hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, name, param) for each parameter that any module gets.

    What the hook returns, unless None, takes the place of the parameter.

    Returns:
        A handle whose remove() undoes the registration.

    Example:
        >>> from rushlight.nn.modules.module import register_module_parameter_registration_hook
        >>> def announce(module, name, param):
        ...     print(type(module).__name__, name, tuple(param.shape))
        >>> with register_module_parameter_registration_hook(announce):
        ...     layer = torch.nn.Linear(2, 3)
        Linear weight (3, 2)
        Linear bias (3,)
    """
    return _add(parameter_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, name, buffer) for each buffer that any module gets.

    What the hook returns, unless None, takes the place of the buffer.

    Returns:
        A handle whose remove() undoes the registration.

    Example:
        >>> from rushlight.nn.modules.module import register_module_buffer_registration_hook
        >>> with register_module_buffer_registration_hook(lambda module, name, t: t.double()):
        ...     layer = torch.nn.BatchNorm1d(2)
        >>> layer.running_mean.dtype
        torch.float64
    """
    return _add(buffer_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, name, submodule) for each child that any module gets.

    What the hook returns, unless None, takes the place of the child.

    Returns:
        A handle whose remove() undoes the registration.

    Example:
        >>> from rushlight.nn.modules.module import register_module_module_registration_hook
        >>> with register_module_module_registration_hook(lambda module, name, child: child.eval()):
        ...     net = torch.nn.Sequential(torch.nn.Dropout())
        >>> net[0].training
        False
    """
    return _add(module_hooks, hook)
