"""Tensors of classes with __torch_dispatch__: without elements of their own, or asked for none.

A wrapper has sizes, a dtype and a device, and what its class keeps besides; every op that meets it
is the class's business. See Note [Dispatch to Python] in core/tensor/dispatch.h.
"""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self


class DisableTorchDispatch:
    """Runs ops without asking modes and the classes of tensors, in a with block.

    Example:
        >>> from rushlight.utils._python_dispatch import TorchDispatchMode
        >>> class Refuse(TorchDispatchMode):
        ...     pass
        >>> with Refuse(), torch._C._DisableTorchDispatch():
        ...     torch.ones(2)
        tensor([1., 1.])
    """

    def __enter__(self) -> Self:
        self._before = _C._set_dispatch_disabled(True)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C._set_dispatch_disabled(self._before)


# Where programs look for it.
setattr(_C, "_DisableTorchDispatch", DisableTorchDispatch)  # noqa: B010


class WrapperMethods(_C.TensorBase):
    """What Tensor inherits."""

    # A subclass that defines it runs the ops that meet its tensors, see docs/dispatch.md.
    __torch_dispatch__ = _C._disabled_torch_dispatch_impl

    @staticmethod
    def _make_wrapper_subclass(
        cls: type,  # pyright: ignore[reportSelfClsParameterName]
        size: Sequence[int],
        strides: Sequence[int] | None = None,
        storage_offset: int | None = None,
        memory_format: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        dispatch_sizes_strides_policy: str | None = None,
        dispatch_device: bool = False,
        dispatch_layout: bool = False,
        _extra_dispatch_keys: Any = None,
        storage_size: int | None = None,
    ) -> Any:
        """Returns a tensor of a class that has no elements of its own.

        The class has a __torch_dispatch__, which every op that meets the tensor goes to.

        Args:
            cls: a subclass of Tensor.
            size: its sizes.
            strides: its strides; those of an ordinary tensor if None.
            storage_offset: where it begins in its storage.
            memory_format: the order of its dims in memory, where strides are not given.
            dtype: the default dtype if None.
            layout: has no effect, like pin_memory and all from dispatch_sizes_strides_policy on:
                sizes are what they are, and the layout is strided.
            device: the default device if None.
            requires_grad: whether backward computes its gradient.

        Example:
            >>> class Doubled(torch.Tensor):
            ...     @staticmethod
            ...     def __new__(cls, half):
            ...         made = torch.Tensor._make_wrapper_subclass(cls, half.shape)
            ...         made.half_of_it = half
            ...         return made
            ...     @classmethod
            ...     def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            ...         whole = [x.half_of_it * 2 if isinstance(x, cls) else x for x in args]
            ...         return func(*whole, **(kwargs or {}))
            >>> Doubled(torch.ones(2)) + 1
            tensor([3., 3.])
        """
        import rushlight as rl

        dtype = rl.get_default_dtype() if dtype is None else dtype
        size = tuple(int(length) for length in size)
        with DisableTorchDispatch():
            if strides is not None:
                steps = tuple(int(step) for step in strides)
                like = rl.empty_strided(size, steps, dtype=dtype, device="meta")
            elif memory_format is not None:
                like = rl.empty(size, dtype=dtype, device="meta", memory_format=memory_format)
            else:
                like = rl.empty(size, dtype=dtype, device="meta")
        place = _C._default_device() if device is None else _C.device(device)
        return _C._make_wrapper(cls, like, int(storage_offset or 0), place, bool(requires_grad))
