"""The handle that registering a hook returns, and what saving a tensor says of its hooks.

Owns handles only; the tables of hooks belong to modules, tensors and optimizers.
Invariant: an id is never used twice in a table, so a handle removes its own hook or nothing.
"""

from __future__ import annotations

import itertools
import warnings

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from rushlight import Tensor

    F = TypeVar("F", bound=Callable[..., Any])

_ids = itertools.count()


class _TapeHooks:
    """The hooks of a tensor or a node, seen from a handle: like a dict with the one hook."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook

    def __contains__(self, id: int) -> bool:
        return True

    def __delitem__(self, id: int) -> None:
        _C._remove_hook(self._hook)

    def __reduce__(self) -> Any:
        return (
            dict,
            (),
        )  # copies of tensors have no hooks, so that the handle's copy removes nothing


def unserializable_hook(f: F) -> F:
    """Returns a hook of tensors, marked so that saving such a tensor does not warn of it.

    Example:
        >>> @torch.utils.hooks.unserializable_hook
        ... def double(grad):
        ...     return grad * 2
    """
    marked: Any = f
    marked.__torch_unserialize__ = True
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warns that the hooks of a tensor are not saved with it."""
    for hook in _C._hooks_of(tensor):
        if not hasattr(hook, "__torch_unserialize__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, "
                "decorate it with @torch.utils.hooks.unserializable_hook to suppress this warning.",
                stacklevel=3,
            )


class RemovableHandle:
    """What registering a hook returns: remove() takes the hook out again.

    It is also a context manager that removes the hook at the end of the block.

    Args:
        hooks: the table whose entry the handle removes: a dict, or what deletes entries like one.
        id: key of the entry; None takes a new one.
        extra_dict: another table, or a list of them, whose entry goes too if there is one.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)])
        >>> with optimizer.register_step_post_hook(lambda *_: print("stepped")):
        ...     optimizer.step()
        stepped
        >>> optimizer.step()
    """

    def __init__(self, hooks: Any, id: int | None = None, *, extra_dict: Any = ()) -> None:
        self.id = next(_ids) if id is None else id
        self._hooks = hooks
        if extra_dict is None:
            extra_dict = ()
        self._extra = tuple(extra_dict) if isinstance(extra_dict, (list, tuple)) else (extra_dict,)

    def hooks_dict_ref(self) -> Any:
        """Returns the table that the hook is in; PyTorch keeps a weak reference to it."""
        return self._hooks

    def remove(self) -> None:
        """Takes the hook out; does nothing the second time."""
        if self.id in self._hooks:
            del self._hooks[self.id]
        for table in self._extra:
            table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def _tape_handle(hook: Any) -> RemovableHandle:
    """The handle of a hook on the tape, which bindings/hooks.cpp knows; keeps no tensor alive."""
    return RemovableHandle(_TapeHooks(hook))
