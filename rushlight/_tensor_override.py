"""What subclasses of Tensor do with ops by default: they stay what they are.

bindings/override.h says when they are asked.
"""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self


class DisableTorchFunctionSubclass:
    """Lets ops see subclasses as plain tensors in a with block.

    Example:
        >>> class Logged(torch.Tensor):
        ...     pass
        >>> x = torch.ones(1).as_subclass(Logged)
        >>> with torch.overrides.DisableTorchFunctionSubclass():
        ...     type(x + 1).__name__
        'Tensor'
        >>> type(x + 1).__name__
        'Logged'
    """

    def __enter__(self) -> Self:
        self._before = _C._set_overrides_disabled(True)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C._set_overrides_disabled(self._before)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """The same, and no mode is told of anything."""

    def __enter__(self) -> Self:
        self._modes = _C._function_modes()
        for _ in self._modes:
            _C._pop_function_mode()
        return super().__enter__()

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        for mode in self._modes:
            _C._push_function_mode(mode)


# Where programs look for them.
for _class in (DisableTorchFunctionSubclass, DisableTorchFunction):
    setattr(_C, _class.__name__, _class)


def as_class(result: Any, cls: Any) -> Any:
    """Returns a result with its tensors as instances of a class, also inside lists and tuples."""
    if isinstance(result, _C.TensorBase):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if not isinstance(result, (tuple, list)):
        return result
    if any(isinstance(item, (_C.TensorBase, tuple, list)) for item in result):
        kind: Any = type(result)
        return kind(as_class(item, cls) for item in result)
    return result


# What returns another tensor, which stays of the class that it has.
_holding: Any = (_C.TensorBase.grad, _C.TensorBase._base)
nowrap_functions = {attribute.__get__ for attribute in _holding}


class OverrideMethods(_C.TensorBase):
    """What Tensor inherits."""

    # Whether a __torch_function__ is told of attributes, and of methods that are no ops. Classes of
    # ours, whose methods answer by themselves, say False.
    _hears_attributes = True

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs a function for instances of a subclass and makes the results instances of it.

        A subclass replaces this to change what functions do with it.

        Args:
            func: the function that was called, torch.add for one.
            types: the classes among the arguments that take over functions.
            args: the arguments.
            kwargs: the keyword arguments.

        Returns:
            The result, or NotImplemented if another of the classes is to do it.

        Example:
            >>> class Logged(torch.Tensor):
            ...     @classmethod
            ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
            ...         print("calling", func.__name__)
            ...         return super().__torch_function__(func, types, args, kwargs)
            >>> y = torch.ones(2).as_subclass(Logged) + 1
            calling add
            >>> type(y).__name__
            'Logged'
        """
        if not all(issubclass(cls, other) for other in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result if func in nowrap_functions else as_class(result, cls)
