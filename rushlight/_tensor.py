"""The class Tensor: what of it reads better in Python than in C++.

Ops become methods straight from the op table; hot attributes and operators are in
bindings/tensor.cpp.
"""

from __future__ import annotations

from rushlight import _C, _layout
from rushlight._copying import CopyMethods, as_class
from rushlight._interchange import InterchangeMethods
from rushlight._parts import name_after
from rushlight._quantized_methods import QuantizedMethods
from rushlight._target import read_target
from rushlight._tensor_memory import MemoryMethods
from rushlight._tensor_override import DisableTorchFunctionSubclass, OverrideMethods
from rushlight._told import tell_of_members, told
from rushlight._wrapper import DisableTorchDispatch, WrapperMethods

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from rushlight._layout import layout as Layout
    from rushlight.utils.hooks import RemovableHandle

_ops = _C.ops("torch")
_type_names: dict[Any, str] = {}  # by dtype, device, and whether they are sparse

_CONVERSIONS = {
    "float": _C.float32,
    "double": _C.float64,
    "half": _C.float16,
    "bfloat16": _C.bfloat16,
    "int": _C.int32,
    "long": _C.int64,
    "short": _C.int16,
    "char": _C.int8,
    "byte": _C.uint8,
    "bool": _C.bool,
    "cfloat": _C.complex64,
    "cdouble": _C.complex128,
}

_ROWS_AT_ONCE = 1 << 20  # which a loop over a tensor makes before it begins, or goes on


def _removed_method(name: str) -> Callable[..., Any]:
    """A method that PyTorch has removed: it raises and says what to use."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        import rushlight._linalg

        return getattr(rushlight._linalg, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Raises a RuntimeError; see torch.{name}."
    return method


# What to() is mostly asked for, which is of no class that takes it over.
_TARGETS = {_C.device, _C.dtype, str}


class Tensor(
    CopyMethods,
    InterchangeMethods,
    MemoryMethods,
    OverrideMethods,
    QuantizedMethods,
    WrapperMethods,
):
    """A multi-dimensional array of numbers of one type, with gradients.

    Made by torch.tensor and the functions beside it. Tensor(2, 3) makes an uninitialized one of
    that shape, Tensor([1, 2]) one with these values, in the default dtype.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([[2., 4.],
                [6., 8.]])
    """

    vars().update(_C.ops("Tensor"))

    # Python 2 divided by these, and programs still call them by name.
    __div__ = _C.TensorBase.__truediv__
    __rdiv__ = _C.TensorBase.__rtruediv__
    __idiv__ = _C.TensorBase.__itruediv__

    __module__ = "rushlight"

    def __new__(cls, *args: Any, dtype: Any = None, device: Any = None) -> Any:
        from rushlight._legacy import new_tensor

        if len(args) == 1 and isinstance(args[0], Tensor):
            made = args[0].detach()
        else:
            place = _C._default_device() if device is None else _C.device(device)
            made = new_tensor(dtype or _C.get_default_dtype(), place, args)
        return made if cls is Tensor else Tensor._make_subclass(cls, made)

    # Autograd

    _grad = _C.TensorBase.grad

    @property
    def grad_fn(self) -> Any:
        """The node that made the tensor, or None for a leaf."""
        return _C._grad_fn(self)

    def backward(
        self,
        gradient: Tensor | Sequence[Tensor | None] | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | Tensor | None = None,
    ) -> None:
        """Computes the gradients of this tensor and adds them to the .grad of leaves.

        Args:
            gradient: the gradient of the tensor itself, of its shape, also as the one item of a
                list; ones for a single element.
            retain_graph: keeps the tape for another backward; create_graph when None.
            create_graph: records the gradients, so that they can be differentiated again.
            inputs: the only leaves that collect gradients; all when None.

        Raises:
            RuntimeError: if the tensor has no history, or several elements and no gradient.

        Example:
            >>> x = torch.tensor(3.0, requires_grad=True)
            >>> (x**2).backward()
            >>> x.grad
            tensor(6.)
        """
        retain = create_graph if retain_graph is None else retain_graph
        if inputs is None:
            leaves = None
        else:
            leaves = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
            if not leaves:
                raise RuntimeError("'inputs' argument to backward() cannot be empty.")
        given = tuple(gradient) if isinstance(gradient, (list, tuple)) else (gradient,)
        if len(given) != 1:
            raise RuntimeError(f"backward: got 1 tensors and {len(given)} gradients. Pass one.")
        _C._run_backward((self,), given, leaves, retain, create_graph, True)

    @property
    def _backward_hooks(self) -> dict[int, Callable[[Tensor], Tensor | None]] | None:
        """The hooks on its gradient in the order in which they run, None without any."""
        return dict(enumerate(_C._hooks_of(self))) or None

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: dict[int, Callable[[Tensor], Tensor | None]] | None) -> None:
        for hook in (hooks or {}).values():
            self.register_hook(hook)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Calls hook(grad) when the gradient is computed; what it returns replaces the gradient.

        Hooks run in the order in which they came. One that came before the tensor was written in
        place sees the gradient of what the tensor held before.

        Args:
            hook: returns None, or a tensor like grad. It must not write grad.

        Returns:
            A handle whose remove() takes the hook away.

        Raises:
            RuntimeError: if the tensor does not require grad.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> handle = x.register_hook(lambda grad: grad * 10)
            >>> x.sum().backward()
            >>> x.grad
            tensor([10., 10.])
        """
        return _C._register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Calls hook(self) after backward has added to .grad of this leaf.

        Args:
            hook: returns None.

        Returns:
            A handle whose remove() takes the hook away.

        Raises:
            RuntimeError: if the tensor does not require grad, or is the result of an op.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
            >>> (3 * x).sum().backward()
            tensor([3., 3.])
        """
        return _C._register_post_accumulate_grad_hook(self, hook)

    def retain_grad(self) -> None:
        """Keeps the gradient of this computed tensor in .grad too, as a leaf does anyway.

        Raises:
            RuntimeError: if the tensor does not require grad.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> y = x * 2
            >>> y.retain_grad()
            >>> y.sum().backward()
            >>> y.grad
            tensor([1., 1.])
        """
        _C._retain_grad(self)

    def detach_(self) -> Tensor:
        """Cuts the tensor off its history, in place."""
        _C._detach_(self)
        return self

    # Conversion

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """Returns the tensor with another dtype or device, itself when nothing changes.

        Takes a dtype, a device and a dtype, or another tensor to match; `copy=True` always copies,
        `memory_format` sets the order of the elements. A `non_blocking` copy between the CPU's
        pinned memory and a GPU returns before it is done.

        Example:
            >>> torch.ones(2).to(torch.int64)
            tensor([1, 1])
        """
        if _C._stays_as_it_is(self, args, kwargs):
            return self
        if args and type(args[0]) not in _TARGETS and _C._argument_takes_over(args, kwargs):
            return _C._call_taken_over(Tensor.to, (self, *args), kwargs)
        device, dtype, non_blocking, copy, format = read_target(args, kwargs)
        result = self
        if device is not None:
            result = _C._to(self, device, non_blocking)
        if dtype is not None and dtype != self.dtype:
            result = _C._cast(result, dtype)
        if result is self and copy:
            return self.clone(memory_format=format)
        if format in (None, _C.preserve_format):
            return result
        # Strides that pass for both formats are laid out anew, for ops that go by them.
        if result._suggested_format() is format and (
            result is self or result.is_contiguous(memory_format=format)
        ):
            return result
        return result.clone(memory_format=format)

    def cpu(self) -> Tensor:
        """Returns the tensor on the CPU, itself when it is there."""
        return self if self.is_cpu else self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Tensor:
        """Returns the tensor on a GPU."""
        return self.to("cuda" if device is None else device, non_blocking=non_blocking)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Returns the name of the tensor's type, or the tensor as another type."""
        if dtype is None:
            kind = (self.dtype, self.device, self.is_sparse)
            if kind not in _type_names:
                from rushlight._legacy import type_name

                _type_names[kind] = type_name(*kind)
            return _type_names[kind]
        if isinstance(dtype, _C.dtype):
            return self.to(dtype)
        from rushlight._legacy import TensorType, read_type

        if isinstance(dtype, str):
            dtype, device = read_type(dtype)
        elif isinstance(dtype, TensorType):
            dtype, device = dtype.dtype, dtype.device_type
        elif isinstance(dtype, type):
            return self.to(_C.get_default_dtype() if dtype is Tensor else dtype)
        else:
            raise TypeError(f"type(): expected a dtype or the name of a type, got {dtype!r}")
        if device == self.device.type:
            return self.to(dtype)
        return self.to(device, dtype, non_blocking=non_blocking)

    def new(self, *args: Any, size: Any = None, device: Any = None) -> Tensor:
        """Returns a tensor of this dtype on this device, of sizes or of data; old.

        Use new_empty and new_tensor instead.

        Example:
            >>> torch.ones(2, dtype=torch.float64).new([1, 2])
            tensor([1., 2.], dtype=torch.float64)
        """
        from rushlight._legacy import new_sparse_tensor, new_tensor

        place = self.device if device is None else _C.device(device)
        make = new_sparse_tensor if self.is_sparse else new_tensor
        return make(self.dtype, place, args, size)

    def pin_memory(self) -> Tensor:
        """Returns the tensor in pinned memory, which a GPU reads and writes by itself.

        Where there is no GPU, returns the tensor itself.
        """
        if self.is_pinned() or not _C._cuda_is_available():
            return self
        return _C._cuda_pinned_copy(self)

    def record_stream(self, stream: Any) -> None:
        """Tells that a stream other than the one it was made on uses the tensor.

        Its memory is then not given to another tensor before that stream's work is done.

        Args:
            stream: a cuda.Stream.
        """
        _C._cuda_record_stream(self, stream.device_index, stream.cuda_stream)

    def is_pinned(self) -> bool:
        """Returns whether the memory is pinned for copies to a GPU."""
        return _C._cuda_is_pinned(self)

    # Sparse and nested layouts

    def to_sparse(
        self,
        sparse_dim: int | None = None,
        *,
        layout: Layout | None = None,
        blocksize: int | Sequence[int] | None = None,
        dense_dim: int | None = None,
    ) -> Tensor:
        """Returns the elements that are not zero, or are entries already, as a sparse tensor.

        Args:
            sparse_dim: number of dims that get indices; all when None.
            layout: the sparse layout; torch.sparse_coo when None.
            blocksize: rows and columns of a block, for torch.sparse_bsr and torch.sparse_bsc: the
                blocks that are not all zero are kept. They must divide the sizes of the matrix.
            dense_dim: number of dims of a dense tensor that get no indices, in place of sparse_dim.
                In layouts other than torch.sparse_coo two of the others are those of matrices, and
                those before are of a batch, whose matrices must have as many entries each.

        Example:
            >>> torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse().indices().tolist()
            [[0], [1]]
        """
        from rushlight._sparse import to_sparse

        return to_sparse(self, sparse_dim, layout, blocksize, dense_dim)

    def to_sparse_coo(self) -> Tensor:
        """Returns the tensor in layout sparse_coo."""
        return self.to_sparse(layout=_layout.sparse_coo)

    def to_sparse_csr(self, dense_dim: int | None = None) -> Tensor:
        """Returns a matrix in layout sparse_csr."""
        return self.to_sparse(layout=_layout.sparse_csr, dense_dim=dense_dim)

    def to_sparse_csc(self, dense_dim: int | None = None) -> Tensor:
        """Returns a matrix in layout sparse_csc."""
        return self.to_sparse(layout=_layout.sparse_csc, dense_dim=dense_dim)

    def to_sparse_bsr(self, blocksize: int | Sequence[int], dense_dim: int | None = None) -> Tensor:
        """Returns a matrix in layout sparse_bsr, of blocks by rows.

        Example:
            >>> torch.eye(4).to_sparse_bsr((2, 2)).values().shape
            torch.Size([2, 2, 2])
        """
        return self.to_sparse(layout=_layout.sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)

    def to_sparse_bsc(self, blocksize: int | Sequence[int], dense_dim: int | None = None) -> Tensor:
        """Returns a matrix in layout sparse_bsc, of blocks by columns."""
        return self.to_sparse(layout=_layout.sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)

    def resize_as_sparse_(self, the_template: Tensor) -> Tensor:
        """Gives a sparse tensor the sizes of another one."""
        dims = the_template.sparse_dim(), the_template.dense_dim()
        return self.sparse_resize_(tuple(the_template.shape), *dims)

    def to_padded_tensor(
        self, padding: float, output_size: Sequence[int] | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Returns the parts of a nested tensor in a plain one; see torch.nested."""
        raise RuntimeError(
            "to_padded_tensor: the tensor is not nested. Make nested ones with torch.nested."
        )

    # Shape

    @property
    def layout(self) -> Layout:
        """How the elements are stored: torch.strided, or one of the sparse layouts."""
        return _layout.LAYOUTS[self._layout]

    @property
    def real(self) -> Tensor:
        """The real part of complex numbers, a view; a real tensor itself."""
        return _ops["real"](self)

    @real.setter
    def real(self, value: Any) -> None:
        self.real.copy_(value)

    @property
    def imag(self) -> Tensor:
        """The imaginary part of complex numbers, a view."""
        return _ops["imag"](self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag.copy_(value)

    @property
    def T(self) -> Tensor:
        """The tensor with its dims reversed; meant for matrices, it warns for others."""
        if self.dim() == 2:
            return self.permute(1, 0)
        import warnings

        warnings.warn(
            f"The use of `x.T` on tensors of dimension other than 2, as here {self.dim()}, is "
            "deprecated. Use `x.mT` for batches of matrices, or `x.permute` with dims.",
            stacklevel=2,
        )
        return self.permute(tuple(range(self.dim() - 1, -1, -1)))

    @property
    def mT(self) -> Tensor:
        """The tensor with its last two dims swapped."""
        if self.dim() == 1:
            raise RuntimeError(
                "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor."
            )
        return self.transpose(-2, -1) if self.dim() else self.view(())

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
        if self.dim() not in (0, 2):
            raise RuntimeError(
                "tensor.H is only supported on matrices (2-D tensors). "
                f"Got {self.dim()}-D tensor. For batches of matrices, consider using tensor.mH."
            )
        return self.adjoint()

    @property
    def mH(self) -> Tensor:
        """The conjugate transposes of the matrices in the last two dims."""
        return self.adjoint()

    # Linear algebra

    def lu(self, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
        """Returns the compact LU factorization; see torch.lu."""
        from rushlight._linalg import lu

        return lu(self, pivot, get_infos)

    eig = _removed_method("eig")
    lstsq = _removed_method("lstsq")
    solve = _removed_method("solve")
    symeig = _removed_method("symeig")

    # Python

    @told
    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from rushlight._printing import tensor_repr

        with DisableTorchFunctionSubclass(), DisableTorchDispatch():
            return tensor_repr(self)

    @told
    def __format__(self, spec: str) -> str:
        if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __iter__(self) -> Iterator[Tensor]:
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        if len(self) <= _ROWS_AT_ONCE:
            return iter(self.unbind(0))
        return (row for part in self.split(_ROWS_AT_ONCE) for row in part.unbind(0))

    @told
    def __reversed__(self) -> Tensor:
        return self.flip(0) if self.dim() else self

    @told
    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, int, float, complex, bool)):
            return bool((self == element).any())
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, "
            f"but you passed in a {type(element)}."
        )

    def unique(
        self,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Any:
        """Returns the different elements, in order; see torch.unique."""
        from rushlight._distinct import unique

        return unique(self, sorted, return_inverse, return_counts, dim)

    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """Returns the elements that differ from the one before; see torch.unique_consecutive."""
        from rushlight._distinct import unique_consecutive

        return unique_consecutive(self, return_inverse, return_counts, dim)

    def histogram(
        self,
        bins: int | Tensor = 100,
        *,
        range: Sequence[float] | None = None,
        weight: Tensor | None = None,
        density: bool = False,
    ) -> Any:
        """Returns how many elements fall into each bin, and the edges; see torch.histogram."""
        from rushlight._numeric import histogram

        return histogram(self, bins, range=range, weight=weight, density=density)

    def hash_tensor(
        self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, mode: int = 0
    ) -> Tensor:
        """Returns hashes of the elements over dims; see torch.hash_tensor."""
        from rushlight._numeric import hash_tensor

        return hash_tensor(self, dim, keepdim, mode=mode)

    def new_tensor(
        self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> Tensor:
        """Returns a new tensor of the data, with the dtype of this one and on its device."""
        dtype = dtype or self.dtype
        device = self.device if device is None else device
        if not isinstance(data, Tensor):
            return _C.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "tensor.new_tensor(sourceTensor).",
            stacklevel=2,
        )
        return data.detach().to(device, dtype, copy=True).requires_grad_(requires_grad)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__})


def _conversion(name: str, dtype: Any) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            return self.to(dtype, memory_format=memory_format)
        return self if self.dtype is dtype else _C._cast(self, dtype)

    convert.__name__ = name
    convert.__doc__ = f"""Returns the tensor as {dtype._name}, itself when it is.

    A copy has the order of dims of the tensor, unless `memory_format` is another.
    """
    return convert


for _name, _dtype in _CONVERSIONS.items():
    setattr(Tensor, _name, _conversion(_name, _dtype))

_C._set_tensor_class(Tensor)
name_after(Tensor)
tell_of_members(Tensor)


def _rebuild_from_type_v2(func: Any, new_type: Any, args: tuple[Any, ...], state: Any) -> Tensor:
    """Makes a tensor of a class, with attributes, from what __reduce_ex__ pickled."""
    made = func(*args)
    if type(made) is not new_type:
        made = as_class(new_type, made.detach(), made.requires_grad)
    made.__setstate__(state)
    return made
