"""TVTensor: a tensor that says what it is of a sample, and how operations forget it.

Results of operations are plain tensors, but for those that only copy or move; set_return_type
changes that. What the transforms return is wrapped by them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import rushlight as rl
from rushlight import Tensor
from rushlight._tensor_override import DisableTorchFunctionSubclass
from rushlight.utils._pytree import tree_leaves

# The operations that make another of the same thing; to and pin_memory are methods, below.
_KEEPING = {"clone", "detach"}

_returns_tv_tensors = False


class _ReturnType:
    """Puts the choice before it back at the end of a with block."""

    def __init__(self, before: bool) -> None:
        self._before = before

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        global _returns_tv_tensors
        _returns_tv_tensors = self._before


def set_return_type(return_type: str) -> _ReturnType:
    """Choose what operations on TVTensors return: "Tensor", the default, or "TVTensor".

    Args:
        return_type: the choice, in any case of letters.

    Returns:
        A context manager that takes the choice back; outside a with block it stays.

    Raises:
        ValueError: for another word.

    Example:
        >>> image = tv_tensors.Image(torch.ones(3, 2, 2))
        >>> with tv_tensors.set_return_type("TVTensor"):
        ...     type(image + 1).__name__
        'Image'
        >>> type(image + 1).__name__
        'Tensor'
    """
    global _returns_tv_tensors
    choice = {"tensor": False, "tvtensor": True}.get(return_type.lower())
    if choice is None:
        raise ValueError(
            f"set_return_type: got {return_type!r}. It is 'TVTensor' or 'Tensor'. Pass one of them."
        )
    before, _returns_tv_tensors = _returns_tv_tensors, choice
    return _ReturnType(before)


class TVTensor(Tensor):
    """Base class of the tensors that transforms tell apart.

    A subclass names in _attributes what it knows beside the data; copies keep that.
    """

    _attributes: tuple[str, ...] = ()

    @staticmethod
    def _to_tensor(
        data: Any,
        dtype: rl.dtype | None = None,
        device: rl.device | str | int | None = None,
        requires_grad: bool | None = None,
    ) -> Tensor:
        if requires_grad is None:
            requires_grad = data.requires_grad if isinstance(data, Tensor) else False
        return rl.as_tensor(data, dtype=dtype, device=device).requires_grad_(requires_grad)

    @classmethod
    def _like(cls, tensor: Tensor, source: Any, **changes: Any) -> Self:
        """The tensor as this class, with what source knows and the changes to it."""
        result = tensor.as_subclass(cls)
        for name in cls._attributes:
            setattr(result, name, changes[name] if name in changes else getattr(source, name))
        return result

    @classmethod
    def wrap(cls, tensor: Tensor, like: TVTensor, **kwargs: Any) -> Self:
        """The tensor as an instance of this class that knows what like knows."""
        return cls._like(tensor, like, **kwargs)

    @classmethod
    def _wrap_output(cls, output: Any, source: Any) -> Any:
        if isinstance(output, Tensor):
            return output if isinstance(output, cls) else cls._like(output, source)
        if isinstance(output, (tuple, list)):
            kind: Any = type(output)
            return kind(cls._wrap_output(part, source) for part in output)
        return output

    _hears_attributes = False

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operation; its result is of this class only where set_return_type says."""
        if not all(issubclass(cls, other) for other in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            output = func(*args, **(kwargs or {}))
            keeps = func.__name__ in _KEEPING and isinstance(args[0], cls)
            if _returns_tv_tensors or keeps:
                leaves = tree_leaves((args, kwargs))
                source = next(leaf for leaf in leaves if isinstance(leaf, cls))
                return cls._wrap_output(output, source)
            return output.as_subclass(Tensor) if isinstance(output, cls) else output

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Tensor.to, which keeps the class."""
        return self._moved("to", args, kwargs)

    def pin_memory(self, *args: Any, **kwargs: Any) -> Any:
        """Tensor.pin_memory, which keeps the class."""
        return self._moved("pin_memory", args, kwargs)

    def _moved(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with DisableTorchFunctionSubclass():
            return self._wrap_output(getattr(super(), method)(*args, **kwargs), self)

    def _named(self) -> str:
        """The repr with what is known beside the data."""
        known = ", ".join(f"{name}={getattr(self, name)}" for name in self._attributes)
        return f"{super().__repr__()[:-1]}, {known})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Not a leaf's copy with its tape: what a copied sample holds is data.
        copied: Any = self.detach().clone().requires_grad_(self.requires_grad)
        return copied


def wrap(wrappee: Tensor, *, like: Any, **kwargs: Any) -> Any:
    """A tensor as the class of another, with what that one knows.

    Args:
        wrappee: the tensor.
        like: the example, a TVTensor or any other tensor.
        **kwargs: what differs, such as format and canvas_size of BoundingBoxes.

    Returns:
        A tensor of like's class that shares memory with wrappee.

    Example:
        >>> mask = tv_tensors.Mask(torch.zeros(2, 2))
        >>> type(tv_tensors.wrap(mask + 1, like=mask)).__name__
        'Mask'
    """
    if isinstance(like, TVTensor):
        return type(like).wrap(wrappee, like, **kwargs)
    return wrappee.as_subclass(type(like))
