"""The methods of Tensor that look at or change its memory, and those that call Python for each
element."""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rushlight import Tensor
    from rushlight._storage import TypedStorage


class MemoryMethods(_C.TensorBase):
    """What Tensor inherits."""

    # Kinds of tensors and devices that do not exist here.
    is_ipu = False
    is_maia = False
    is_mkldnn = False
    is_mps = False
    is_mtia = False
    is_vulkan = False
    is_xla = False
    is_xpu = False

    is_nested = False  # see nested

    @property
    def _cdata(self) -> int:
        """A number that no other tensor has as long as this one lives."""
        return id(self)

    # Storage

    def storage(self) -> TypedStorage:
        """Returns the memory behind the tensor as numbers of its dtype; old.

        Example:
            >>> torch.arange(4)[1:].storage().tolist()
            [0, 1, 2, 3]
        """
        from rushlight._storage import TypedStorage

        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)

    def storage_type(self) -> type[TypedStorage]:
        """Returns the class of storages of the dtype, torch.FloatStorage for one."""
        from rushlight._storage import storage_class

        return storage_class(self.dtype)

    def set_(
        self,
        source: Any = None,
        storage_offset: int = 0,
        size: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> Tensor:
        """Makes the tensor look at the memory of another tensor or of a storage.

        Args:
            source: a tensor of the same dtype, a storage, or None for no elements.
            storage_offset: where the first element lies, in elements; that of a tensor as source
                counts when only that is given.
            size: the shape; that of the tensor, or all of the storage, unless given.
            stride: the steps in memory; row-major unless given.

        Raises:
            RuntimeError: if the dtypes or devices differ, or the tensor requires grad.

        Example:
            >>> x, y = torch.zeros(3), torch.arange(4.0)
            >>> x.set_(y)
            tensor([0., 1., 2., 3.])
            >>> x.set_(y.untyped_storage(), 1, (2, 2), (1, 1))
            tensor([[1., 2.],
                    [2., 3.]])
        """
        import rushlight as rl
        from rushlight._storage import StorageBase, TypedStorage

        if source is None:
            source = rl.empty(0, dtype=self.dtype, device=self.device)
        given = getattr(source, "dtype", self.dtype)
        if given is not self.dtype:
            raise RuntimeError(
                f"set_: the tensor is {self.dtype._name}, but source is {given._name}. Their "
                f"dtypes must be the same."
            )
        if isinstance(source, StorageBase):
            bytes = source.untyped() if isinstance(source, TypedStorage) else source
            source = bytes._values()
            whole: Sequence[int] = (source.nbytes // self.itemsize,)
        elif size is None:
            whole, stride, storage_offset = source.shape, source.stride(), source.storage_offset()
        else:
            whole = size
        size = whole if size is None else (size,) if isinstance(size, int) else tuple(size)
        if not stride:
            steps = [1]
            for length in size[:0:-1]:
                steps.insert(0, steps[0] * max(length, 1))
            stride = steps[: len(size)]
        return _C._set_storage(self, source, storage_offset, size, stride)

    def share_memory_(self) -> Tensor:
        """Moves the memory, in place, to where forked processes see each other's writes.

        Returns:
            The tensor itself; its views stay its views. On a GPU nothing needs to be done.

        Raises:
            RuntimeError: if an array or another library uses the memory.

        Example:
            >>> x = torch.zeros(2).share_memory_()
            >>> x.is_shared()
            True
        """
        # Whose import teaches Python's own multiprocessing not to send copies.
        import rushlight.multiprocessing  # noqa: F401

        _C._storage_share(self)
        return self  # pyright: ignore[reportReturnType]

    def is_shared(self) -> bool:
        """Returns whether processes share the memory; on a GPU they always can."""
        return _C._storage_is_shared(self)

    def dim_order(
        self, *, ambiguity_check: bool | Sequence[_C.memory_format] = False
    ) -> tuple[int, ...]:
        """Returns the dims in the order in which they lie in memory, the widest steps first.

        Args:
            ambiguity_check: refuses strides that allow more than one order; of memory formats,
                those that allow several of them.

        Raises:
            RuntimeError: if that is asked for and the order is not the only one.

        Example:
            >>> torch.empty(2, 3, 4).transpose(0, 1).dim_order()
            (1, 0, 2)
        """
        if not isinstance(ambiguity_check, bool):
            formats = list(ambiguity_check)
            if not all(isinstance(format, _C.memory_format) for format in formats):
                raise TypeError(
                    "dim_order: ambiguity_check must be a bool or a list of memory formats, not "
                    f"{ambiguity_check!r}."
                )
            if sum(self.is_contiguous(memory_format=format) for format in formats) > 1:
                raise RuntimeError(f"dim_order: the tensor lies in several of {formats}.")
        elif ambiguity_check:
            steps = [step for step, size in zip(self.stride(), self.shape, strict=True) if size > 1]
            if len(steps) < self.dim() or len(set(steps)) < len(steps):
                raise RuntimeError("dim_order: the tensor does not have unique dim order.")
        return tuple(sorted(range(self.dim()), key=self.stride, reverse=True))

    def narrow_copy(self, dim: int, start: int, length: int) -> Tensor:
        """Returns a copy of the `length` slices of dim from start on."""
        from rushlight._view_copies import narrow_copy

        return narrow_copy(self, dim, start, length)

    # Shape, in old ways

    def resize(self, *sizes: Any) -> Tensor:
        """Returns the tensor in another shape of as many elements; old, use reshape.

        Raises:
            RuntimeError: if the number of elements differs.
        """
        import math
        import warnings

        warnings.warn("non-inplace resize is deprecated", stacklevel=2)
        if len(sizes) == 1 and not isinstance(sizes[0], int):
            sizes = tuple(sizes[0])
        if math.prod(sizes) != self.numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in "
                f"total), but the given tensor has a size of {'x'.join(map(str, self.shape))} "
                f"({self.numel()} elements). autograd's resize can only change the shape of a "
                f"given tensor, while preserving the number of elements. "
            )
        return self.contiguous().view(*sizes)

    def resize_as(self, tensor: Tensor) -> Tensor:
        """Returns the tensor in the shape of another; old, use reshape_as."""
        return self.resize(*tensor.shape)

    # Python for each element

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replaces each element by what a function makes of it; slow.

        Example:
            >>> torch.tensor([1.0, 2.0]).apply_(lambda value: value + 1)
            tensor([2., 3.])
        """
        return self._replace("apply_", callable)

    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replaces each element a by callable(a, b), with the element b of another tensor; slow.

        Example:
            >>> torch.tensor([1, 2]).map_(torch.tensor([3, 4]), lambda a, b: a * b)
            tensor([3, 8])
        """
        return self._replace("map_", callable, tensor)

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """Replaces each element a by callable(a, b, c), with elements of two tensors; slow."""
        return self._replace("map2_", callable, x, y)

    def _replace(self, name: str, function: Callable[..., Any], *others: Tensor) -> Tensor:
        if any(tensor.requires_grad for tensor in (self, *others)):
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}()."
            )
        if self.device.type != "cpu":
            raise TypeError(f"{name} is only implemented on CPU tensors")
        columns = [other.expand(self.shape).flatten().tolist() for other in others]
        values = [function(*row) for row in zip(self.flatten().tolist(), *columns, strict=True)]
        return self.copy_(_C.tensor(values, dtype=self.dtype).view(self.shape))
