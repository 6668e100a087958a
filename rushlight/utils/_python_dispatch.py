"""Modes and classes that see every op below autograd; docs/dispatch.md shows how they are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Self, runtime_checkable

from rushlight import _C, Tensor
from rushlight.utils._pytree import tree_flatten

__all__ = [
    "BaseTorchDispatchMode",
    "TensorWithFlatten",
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Sees every op that this thread runs in a with block, in backward too.

    A subclass says in __torch_dispatch__ what becomes of an op. It stands below autograd: what it
    does is not recorded, the op is. While it runs the mode is not in force; modes may be nested,
    and the innermost is asked first.

    Example:
        >>> from rushlight.utils._python_dispatch import TorchDispatchMode
        >>> class Log(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> x = torch.ones(2, requires_grad=True)
        >>> with Log():
        ...     y = (2 * x).sum()
        aten.mul.Tensor
        aten.sum.default
        >>> y.grad_fn.name()
        'SumBackward0'
    """

    def __init__(self, _dispatch_key: object = None) -> None:
        pass

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Returns what becomes of an op; NotImplemented leaves it to the arguments' classes."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if isinstance(vars(type(self)).get("__torch_dispatch__"), classmethod):
            raise RuntimeError(
                f"{type(self).__name__}: __torch_dispatch__ is a classmethod. That of a mode is a "
                "plain method."
            )
        _C._push_dispatch_mode(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C._pop_dispatch_mode()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it is a tool's own, of which is_in_torch_dispatch_mode may leave out."""
        return False

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """Returns a new mode, for programs that write `with Mode.push():`."""
        return cls(*args, **kwargs)


BaseTorchDispatchMode = TorchDispatchMode


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The modes of this thread, the innermost last."""
    return _C._dispatch_modes()


def _len_torch_dispatch_stack() -> int:
    return len(_C._dispatch_modes())


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, None if there is none."""
    modes = _C._dispatch_modes()
    return modes[-1] if modes else None


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Returns whether a mode is in force on this thread.

    Args:
        include_infra_modes: whether modes count whose is_infra_mode() says True.

    Example:
        >>> from rushlight.utils._python_dispatch import is_in_torch_dispatch_mode
        >>> is_in_torch_dispatch_mode()
        False
    """
    return any(include_infra_modes or not mode.is_infra_mode() for mode in _C._dispatch_modes())


is_in_any_mode_without_ignore_compile_internals = is_in_torch_dispatch_mode


def _push_mode(mode: TorchDispatchMode) -> None:
    _C._push_dispatch_mode(mode)


def _pop_mode() -> Any:
    return _C._pop_dispatch_mode()


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Takes the innermost mode out of force in a with block."""
    mode = _C._pop_dispatch_mode()
    try:
        yield mode
    finally:
        _C._push_dispatch_mode(mode)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Takes all modes out of force in a with block."""
    modes: deque[Any] = deque()
    for _ in _C._dispatch_modes():
        modes.appendleft(_C._pop_dispatch_mode())
    try:
        yield list(modes)
    finally:
        for mode in modes:
            _C._push_dispatch_mode(mode)


@runtime_checkable
class TensorWithFlatten(Protocol):
    """A tensor made of others: it takes itself apart, and its class puts one together again."""

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the attributes that are tensors, and what else it is made of."""
        ...

    @staticmethod
    def __tensor_unflatten__(
        inner_tensors: dict[str, Tensor], flatten_spec: Any, outer_size: Any, outer_stride: Any
    ) -> Tensor:
        """A tensor of these parts."""
        ...


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Returns whether a tensor is of a class that can be taken apart.

    Its class has __torch_dispatch__, __tensor_flatten__ and __tensor_unflatten__.

    Example:
        >>> from rushlight.utils._python_dispatch import is_traceable_wrapper_subclass
        >>> is_traceable_wrapper_subclass(torch.ones(2))
        False
    """
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Returns whether the tensors of a class can be taken apart."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and t.__torch_dispatch__ is not Tensor.__torch_dispatch__
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any,
    callback: Callable[[str, Tensor], Tensor],
    outer_size: Any = None,
    outer_stride: Any = None,
) -> Any:
    """Returns a tensor of the same class whose parts are what callback(name, part) returns.

    Args:
        t: a tensor that can be taken apart.
        callback: gets the name of a part and the part.
        outer_size: the sizes of the new tensor; those of `t` if None.
        outer_stride: its strides; those of `t` if None.
    """
    names, spec = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    result = type(t).__tensor_unflatten__(parts, spec, size, stride)
    if result.shape != tuple(size):
        raise AssertionError(
            f"{type(t).__name__}.__tensor_unflatten__ made a tensor of shape "
            f"{tuple(result.shape)} where {tuple(size)} was asked for."
        )
    return result


def return_and_correct_aliasing(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, out: Any
) -> Any:
    """Returns what a __torch_dispatch__ should return that computed `out` by the tensors inside.

    An op in place, or with out=, returns the tensor that it wrote; a view counts writes together
    with what it looks into.

    Args:
        func: the operator.
        args: its arguments.
        kwargs: those that are passed by name.
        out: the new tensor, or a list of them.
    """
    kwargs = kwargs or {}
    if "out" in kwargs:
        return kwargs["out"]
    name: str = func.overloadpacket.__name__
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    if func.is_view and isinstance(args[0], Tensor):
        for tensor in tree_flatten(out)[0]:
            if isinstance(tensor, Tensor):
                _C._share_storage(tensor, args[0])
    return out
