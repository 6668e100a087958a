"""Copies of tensors by the modules copy and pickle.

Copies keep the class, the attributes, the strides of dense tensors and requires_grad, not the
history. Invariant: what shares memory before a deepcopy shares it afterwards.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._tensor_override import DisableTorchFunctionSubclass
from rushlight._told import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight import Tensor


class CopyMethods(_C.TensorBase):
    """What Tensor inherits."""

    def __copy__(self) -> Tensor:
        if _C._is_wrapper(self):
            result = self.detach().requires_grad_(self.requires_grad)
        else:
            with DisableTorchFunctionSubclass():
                result = as_class(type(self), self.detach(), self.requires_grad)
        result.__setstate__(self.__getstate__())
        return result

    @told
    def __deepcopy__(self, memo: dict[Any, Any]) -> Tensor:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment. Call .detach() first."
            )
        with DisableTorchFunctionSubclass():
            if _C._is_wrapper(self):
                whole: Any = self
                result = _copy_wrapper(whole)
            else:
                copied = copy_memory(self.detach(), memo)
                result = as_class(type(self), copied, self.requires_grad)
        memo[id(self)] = result
        import copy

        result.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        if self.grad is not None:
            result.grad = copy.deepcopy(self.grad, memo)
        return result

    @told
    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        whole: Any = self
        if _C._is_wrapper(self):
            return _rebuild_wrapper, (type(self), *_outside_of(whole)), self.__getstate__()
        import rushlight as rl
        from rushlight._tensor import _rebuild_from_type_v2
        from rushlight.utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(whole)
        with DisableTorchFunctionSubclass():
            function, arguments = self._reduce_ex_internal(protocol)
        state = self.__getstate__()
        if type(self) is rl.Tensor and not state:
            return function, arguments
        return _rebuild_from_type_v2, (function, type(self), arguments, state)

    def _reduce_ex_internal(self, proto: Any) -> tuple[Any, ...]:
        """What makes the tensor again, without its class and its attributes, and its arguments."""
        from collections import OrderedDict

        from rushlight import _utils
        from rushlight._storage import TypedStorage

        data = self.detach()
        if data._layout:
            from rushlight._sparse import parts_of, rebuild_leaf

            return rebuild_leaf, (*parts_of(data), self.requires_grad)
        place = tuple(data.shape), data.stride()
        if data.device.type == "meta":
            arguments = (data.dtype, *place, self.requires_grad)
            return _utils._rebuild_meta_tensor_no_storage, arguments
        storage = TypedStorage(wrap_storage=data.untyped_storage(), dtype=data.dtype)
        arguments = (data.storage_offset(), *place, self.requires_grad, OrderedDict())
        if data.dtype in _utils.WITHOUT_STORAGE:
            return _utils._rebuild_tensor_v3, (storage.untyped(), *arguments, data.dtype)
        return _utils._rebuild_tensor_v2, (storage, *arguments)

    @told
    def __setstate__(self, state: Any) -> None:
        set_state(self, state)

    def module_load(self, other: Tensor, assign: bool = False) -> Tensor:
        """Returns what takes this tensor's place in a module when `other` is loaded.

        Subclasses may override it to convert what they load.

        Args:
            other: the tensor from the state dict.
            assign: whether `other` itself is taken, not its values.

        Returns:
            A new handle: on `other` when `assign` is True, else on this tensor, which then has the
            values of `other`.

        Example:
            >>> torch.zeros(2).module_load(torch.ones(2))
            tensor([1., 1.])
        """
        import rushlight as rl

        if _C._argument_takes_over((other,), {}):  # not by overridable, which imports much
            arguments = (self, other), {"assign": assign}
            return _C._call_taken_over(rl.Tensor.module_load, *arguments)
        if assign:
            return other.detach()
        with rl.no_grad():
            return self.copy_(other).detach()


def set_state(obj: Any, state: Any) -> None:
    """Sets attributes to what __getstate__ returned: a dict, and one of what stands in slots."""
    attributes, slots = state if isinstance(state, tuple) else (state, {})
    obj.__dict__.update(attributes or {})
    for name, value in slots.items():
        setattr(obj, name, value)


def as_class(cls: Any, tensor: Tensor, requires_grad: bool) -> Tensor:
    """A tensor as one of a subclass, on the same memory."""
    import rushlight as rl

    if cls is rl.Tensor:
        return tensor.requires_grad_(requires_grad)
    return rl.Tensor._make_subclass(cls, tensor, requires_grad)


def _copy_wrapper(tensor: Tensor) -> Tensor:
    """What the class of a tensor without elements makes of clone(), without history."""
    import rushlight as rl

    with rl.no_grad():
        result = tensor.clone()
    if type(result) is not type(tensor):
        raise RuntimeError(
            f"deepcopy: clone() of a {type(tensor).__name__} returned a {type(result).__name__}. "
            "Its __torch_dispatch__ must return one of its class for aten.clone.default, or define "
            "__deepcopy__."
        )
    return result.requires_grad_(tensor.requires_grad)


def _outside_of(tensor: Tensor) -> tuple[Any, ...]:
    """What is known of a tensor without elements besides its attributes."""
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    offset, device = tensor.storage_offset(), str(tensor.device)
    return tensor.dtype, shape, stride, offset, device, tensor.requires_grad


def _rebuild_wrapper(
    cls: Any,
    dtype: Any,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    device: str,
    requires_grad: bool,
) -> Tensor:
    """Makes a tensor without elements from what __reduce_ex__ pickled."""
    import rushlight as rl

    return rl.Tensor._make_wrapper_subclass(
        cls, sizes, strides, offset, dtype=dtype, device=device, requires_grad=requires_grad
    )


def copy_memory(tensor: Tensor, memo: dict[Any, Any]) -> Tensor:
    """The tensor on a copy of its whole storage, the same one for all tensors that share it."""
    if tensor._layout or tensor.device.type == "meta" or _C._lift_of(tensor):
        return tensor.clone()
    sizes, strides, offset = tensor.shape, tensor.stride(), tensor.storage_offset()
    storage = tensor.untyped_storage()
    key = "storage", str(tensor.device), storage.data_ptr()
    if key not in memo:
        # The storage stays in the memo, so that no other one gets its address.
        memo[key] = storage, storage._values().clone()
    used = storage.nbytes() // tensor.dtype.itemsize * tensor.dtype.itemsize
    whole = memo[key][1][:used].view(tensor.dtype)
    return whole.as_strided(sizes, strides, offset).detach()


def is_dense(tensor: Tensor) -> bool:
    """Whether the elements lie side by side in some order of the dims."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
