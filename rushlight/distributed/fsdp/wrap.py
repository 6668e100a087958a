"""Which modules of a tree are wrapped by themselves: policies, and wrap, which does it by hand.

A policy is a function (module, recurse, nonwrapped_numel): asked with recurse=True whether to look
below a module, else whether to wrap it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from typing import Any

from rushlight.nn import Module, ModuleDict, ModuleList, MultiheadAttention

Wrapper = Callable[..., Module]

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wraps every module."""
    return True


class ModuleWrapPolicy:
    """Wraps the modules of some classes.

    Args:
        module_classes: the classes.
    """

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = tuple(set(module_classes))

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._module_classes)

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({set(self._module_classes)})"


class CustomPolicy:
    """Wraps the modules for which a function says so.

    Args:
        lambda_fn: returns for a module False, True, or options for its wrapper.
    """

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> Any:
        return recurse or self._lambda_fn(module)


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Wraps the modules for which lambda_fn returns True."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: set[type[Module]],
) -> bool:
    """Wraps the modules of some classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Wraps modules with at least so many elements of parameters that are not wrapped below.

    Args:
        module, recurse, nonwrapped_numel: see above.
        min_num_params: how many.
        force_leaf_modules: classes below which nothing is wrapped; MultiheadAttention by default.
        exclude_wrap_modules: classes that are not wrapped; containers by default.
    """
    leaves = (MultiheadAttention,) if force_leaf_modules is None else tuple(force_leaf_modules)
    excluded = (
        (ModuleList, ModuleDict) if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    )
    is_large = nonwrapped_numel >= min_num_params
    if recurse:
        return is_large and not isinstance(module, leaves)
    return is_large and not isinstance(module, excluded)


def _or_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]
) -> bool:
    """Wraps what one of several policies wraps."""
    return any(policy(module, recurse, nonwrapped_numel) for policy in policies)


def wrap_below(
    module: Module,
    policy: Callable[..., Any],
    wrapper: Wrapper,
    ignored_modules: set[Module],
    ignored_params: set[Any],
    is_root: bool = True,
) -> tuple[Module, int]:
    """Wraps what a policy says of a tree of modules, those below first.

    Returns:
        The module or its wrapper, which the root does not get, and how many elements of parameters
        were wrapped.
    """
    total = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not policy(module=module, recurse=True, nonwrapped_numel=total):
        return module, 0
    wrapped = 0
    for name, child in list(module.named_children()):
        if child in ignored_modules:
            continue
        made, count = wrap_below(child, policy, wrapper, ignored_modules, ignored_params, False)
        if made is not child:
            module.register_module(name, made)
        wrapped += count
    if is_root:
        return module, wrapped
    wanted = policy(module=module, recurse=False, nonwrapped_numel=total - wrapped)
    if not wanted:
        return module, wrapped
    return wrapper(module, **(wanted if isinstance(wanted, dict) else {})), total


_enabled: list[tuple[Wrapper, dict[str, Any]]] = []


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Generator[None, None, None]:
    """Lets wrap() wrap, in the scope of a `with`.

    Args:
        wrapper_cls: by what: FullyShardedDataParallel.
        **wrapper_kwargs: its options.
    """
    _enabled.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _enabled.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """Returns a module wrapped as enable_wrap says; outside of it the module.

    Args:
        module: to wrap.
        **wrap_overrides: options in the place of those that enable_wrap got.
    """
    if not _enabled:
        return module
    wrapper, options = _enabled[-1]
    return wrapper(module, **{**options, **wrap_overrides})
