"""The switches that turn recording off and on, as context managers and decorators."""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])


_CO_GENERATOR = 0x20  # of the inspect module, whose import takes longer than ours


# functools, too, is imported where it is used: the rest of the package starts without it.
def _wraps(function: Callable[..., Any]) -> Callable[[F], F]:
    from functools import wraps

    return wraps(function)  # pyright: ignore[reportReturnType]


def _is_generator_function(function: Callable[..., Any]) -> bool:
    from functools import partial

    while isinstance(function, partial):
        function = function.func
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & _CO_GENERATOR)


def decorated(make: Callable[[], Any], function: F) -> F:
    """Runs each call of a function, or each step of a generator, in a context that make returns."""
    if _is_generator_function(function):
        return _stepped(make, function)  # pyright: ignore[reportReturnType]

    @_wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return call  # pyright: ignore[reportReturnType]


def _stepped(make: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    @_wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        try:
            with make():
                value = next(generator)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    with make():
                        value = generator.throw(error)
                else:
                    with make():
                        value = generator.send(sent)
        except StopIteration as stop:
            return stop.value

    return generate


class _DecoratorContextManager:
    """A context manager that is a decorator, too: for each call of a function or generator step."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc_info: object) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """Returns a fresh context, so that a decorated function may call itself."""
        return type(self)()

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            import warnings

            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. "
                "Decorate its __init__ instead.",
                FutureWarning,
                stacklevel=2,
            )
        return decorated(self.clone, function)  # pyright: ignore[reportReturnType]


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments, which decorates without parentheses, too."""

    def __new__(cls, function: Any = None) -> Any:
        made = super().__new__(cls)
        return made if function is None else made(function)

    def __init__(self, function: Any = None) -> None:
        pass


class _Mode(_DecoratorContextManager):
    """A grad mode for a scope."""

    _enabled: bool
    _previous: bool

    def __enter__(self) -> None:
        self._previous = _C.is_grad_enabled()
        _C._set_grad_enabled(self._enabled)

    def __exit__(self, *exc_info: object) -> None:
        _C._set_grad_enabled(self._previous)


class no_grad(_Mode, _NoParamDecoratorContextManager):
    """Turns recording off: results do not require grad.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    _enabled = False


class enable_grad(no_grad):
    """Turns recording on again inside no_grad.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad(), torch.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    _enabled = True


class set_grad_enabled(_Mode):
    """Turns recording on or off, at once, and for the scope when used with `with`.

    Args:
        mode: whether ops are recorded.

    Example:
        >>> with torch.set_grad_enabled(False):
        ...     torch.is_grad_enabled()
        False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: mode must be bool, not {type(mode).__name__}.")
        self._previous = _C.is_grad_enabled()
        self.mode = self._enabled = mode
        _C._set_grad_enabled(self._enabled)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self._enabled)

    def __call__(self, function: F) -> F:
        _C._set_grad_enabled(self._previous)  # the switch is for the calls only
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)


class inference_mode(_Mode):
    """Like no_grad, and results can never enter a recorded computation later.

    Inside it nothing is recorded, under enable_grad neither.

    Args:
        mode: whether the mode is on; False ends it for a scope, and ops are recorded there.

    Example:
        >>> with torch.inference_mode():
        ...     y = torch.ones(2) * 2
        >>> y.is_inference()
        True
    """

    def __new__(cls, mode: Any = True) -> Any:
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        cls.__init__(made, True)
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self._previous = _C.is_grad_enabled()
        self._previous_inference = _C.is_inference_mode_enabled()
        _C._set_inference_mode(self.mode)
        _C._set_grad_enabled(not self.mode)

    def __exit__(self, *exc_info: object) -> None:
        _C._set_inference_mode(self._previous_inference)
        _C._set_grad_enabled(self._previous)

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)
