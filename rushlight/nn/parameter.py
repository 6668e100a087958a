"""Tensors that a module registers when they are assigned to it.

Owns Parameter and Buffer, and what stands for them in a lazy module until their shape is known.
Invariant: parameters and buffers are leaves that share the memory of the tensor they were made
from.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor


class _ParameterMeta(type(Tensor)):
    """Counts tensors of other classes that Parameter returned as parameters."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module learns: assigning it to a module registers it.

    Args:
        data: tensor whose memory the parameter shares; None makes an empty one. Of a subclass of
            Tensor whose results keep the class, the parameter is one, too.
        requires_grad: whether backward computes a gradient for it.

    Example:
        >>> layer = torch.nn.Module()
        >>> layer.scale = torch.nn.Parameter(torch.ones(3))
        >>> [name for name, _ in layer.named_parameters()]
        ['scale']
    """

    __torch_function__ = _C._disabled_torch_function_impl  # results are plain tensors

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        convert = getattr(data, "_as_parameter", None)
        if convert is not None:  # a DTensor has more to keep than its memory
            return convert(requires_grad)
        kept = _detached_in_its_class(data)
        if kept is not None:
            kept.requires_grad_(requires_grad)._is_param = True
            return kept
        return Tensor._make_subclass(cls, rl.empty(0) if data is None else data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            result = type(self)(self.detach().clone(), self.requires_grad)
            memo[id(self)] = result
            result.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        state = self.__getstate__()
        if type(self) is not Parameter:
            return type(self), (self.detach(), self.requires_grad), state
        from rushlight import _utils

        arguments = (self.detach(), self.requires_grad, OrderedDict())
        if not state:
            return _utils._rebuild_parameter, arguments
        return _utils._rebuild_parameter_with_state, (*arguments, state)

    def __repr__(self, **kwargs: Any) -> str:
        return "Parameter containing:\n" + super().__repr__(**kwargs)


class Buffer(Tensor):
    """A tensor that belongs to a module's state but is not learned, such as a running mean.

    Args:
        data: tensor whose memory the buffer shares; None makes an empty one.
        persistent: whether the buffer is part of the module's state_dict.

    Example:
        >>> layer = torch.nn.Module()
        >>> layer.steps = torch.nn.Buffer(torch.zeros(1))
        >>> list(layer.state_dict())
        ['steps']
    """

    persistent: bool

    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        tensor: Any = rl.empty(0) if data is None else data
        result = Tensor._make_subclass(cls, tensor, tensor.requires_grad)
        result.persistent = persistent
        return result


def _detached_in_its_class(data: Any) -> Any:
    """A tensor of a class that is no parameter's or buffer's, detached, if that keeps the class."""
    kind = type(data)
    if kind is Tensor or not issubclass(kind, Tensor) or issubclass(kind, (Parameter, Buffer)):
        return None
    detached = data.detach()
    if type(detached) is kind:
        return detached
    if kind.__torch_dispatch__ is not Tensor.__torch_dispatch__:
        raise RuntimeError(
            f"Parameter: detach() of a {kind.__name__} returned a {type(detached).__name__}. A "
            "parameter stays of its class, so __torch_dispatch__ must return one for "
            "aten.detach.default."
        )
    return None


# What may be asked of a tensor without a shape: its dtype, its device and their changes.
_ALLOWED = {
    "__hash__",
    "_cast",
    "_to",
    "bfloat16",
    "char",
    "copy_",
    "cpu",
    "cuda",
    "double",
    "float",
    "get_device",
    "half",
    "int",
    "is_complex",
    "is_floating_point",
    "long",
    "short",
    "size",
    "to",
}


class UninitializedTensorMixin(Tensor):
    """A parameter or buffer without a shape: materialize gives it one, and its ordinary class."""

    cls_to_become: type[Tensor]

    def materialize(
        self,
        shape: int | Sequence[int],
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        """Gives the tensor memory of this shape, not initialized.

        Args:
            shape: sizes.
            device: where to put it; its own device if None.
            dtype: its own dtype if None.

        Example:
            >>> weight = torch.nn.UninitializedParameter()
            >>> weight.materialize((2, 3))
            >>> tuple(weight.shape), type(weight).__name__
            ((2, 3), 'Parameter')
        """
        device = self.device if device is None else device
        dtype = self.dtype if dtype is None else dtype
        self.data = rl.empty(shape, device=device, dtype=dtype)
        self.__class__: Any = self.cls_to_become

    @property
    def shape(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Raises, as there is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self) -> Any:
        """Raises, as there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def dim(self) -> Any:
        """Raises, as there is no shape yet."""
        return self.__torch_function__(Tensor.dim, ())

    def numel(self) -> Any:
        """Raises, as there are no elements yet."""
        return self.__torch_function__(Tensor.numel, ())

    nelement = numel

    def __repr__(self, **kwargs: Any) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, self.device, self.dtype)

    _hears_attributes = False

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name in _ALLOWED or name in ("__get__", "__set__"):  # the latter: properties
            return Tensor.__torch_function__.__func__(cls, func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you "
            "are using a `LazyModule` or explicitly manipulating "
            f"`rushlight.nn.parameter.{cls.__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch "
            "functions"
        )


def is_lazy(param: Any) -> bool:
    """Returns whether this is a parameter or buffer without a shape.

    Example:
        >>> torch.nn.parameter.is_lazy(torch.nn.UninitializedParameter())
        True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(  # pyright: ignore[reportIncompatibleVariableOverride]
    UninitializedTensorMixin, Parameter
):
    """A parameter whose shape is not known yet.

    It can change dtype and device, and materialize, which makes it an ordinary Parameter; all else
    raises.

    Args:
        requires_grad: whether backward computes a gradient for it.
        device: where it will be.
        dtype: its dtype.

    Example:
        >>> torch.nn.LazyLinear(3).weight
        <UninitializedParameter>
    """

    cls_to_become = Parameter

    def __new__(
        cls,
        requires_grad: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> UninitializedParameter:
        return Tensor._make_subclass(cls, rl.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(  # pyright: ignore[reportIncompatibleVariableOverride]
    UninitializedTensorMixin, Buffer
):
    """A buffer whose shape is not known yet; see UninitializedParameter.

    Args:
        requires_grad: whether backward computes a gradient for it.
        device: where it will be.
        dtype: its dtype.
        persistent: whether the buffer is part of the module's state_dict.

    Example:
        >>> torch.nn.LazyBatchNorm1d().running_mean
        <UninitializedBuffer>
    """

    cls_to_become = Tensor
    persistent: bool

    def __new__(
        cls,
        requires_grad: bool = False,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = rl.empty(0, device=device, dtype=dtype)
        result = Tensor._make_subclass(cls, data, requires_grad)
        result.persistent = persistent
        return result
