"""Fake tensors: shapes, dtypes and devices without data, so that programs run without memory.

A fake tensor is a wrapper (Note [Dispatch to Python] in core/tensor/dispatch.h) of a tensor on
meta, on which every op runs. What it adds is the device that the program asked for, whether there
is one or not. Numbers of a single element that the program gave are kept, for they decide shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._tag import Tag
from rushlight.nn.parameter import Parameter
from rushlight.overrides import TorchFunctionMode
from rushlight.utils import _pytree as pytree
from rushlight.utils._mode_utils import no_dispatch
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    is_traceable_wrapper_subclass,
    transform_subclass,
)
from rushlight.utils.weak import WeakIdKeyDictionary

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeCopyMode",
    "FakeTensor",
    "FakeTensorConverter",
    "FakeTensorDeviceMismatchError",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
    "UnsupportedOperatorException",
    "is_fake",
    "materialized",
    "maybe_get_fake_mode",
    "unset_fake_temporarily",
]

aten: Any = rl.ops.aten

# Ops whose tensors may be on different devices; the result is on that of the first.
_MIXED = {
    aten.copy_.default,
    aten.index.Tensor,
    aten.index_put_.default,
}


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that has no fake form."""


class _OpError(RuntimeError):
    """What is wrong with an op.

    Attributes:
        func: the op.
    """

    def __init__(self, func: Any, text: str = "") -> None:
        super().__init__(text or func)
        self.func = func


class DynamicOutputShapeException(_OpError):
    """An op whose result has a shape that depends on data."""


class DataDependentOutputException(_OpError):
    """An op that reads data."""


class UnsupportedOperatorException(_OpError):
    """An op that cannot do without data."""


class FakeTensorDeviceMismatchError(_OpError):
    """An op of tensors that are on different devices."""

    def __init__(self, func: Any, common_device: Any, other_device: Any) -> None:
        super().__init__(
            func,
            f"{func}: Expected all tensors to be on the same device, but found at least two "
            f"devices, {common_device} and {other_device}!",
        )
        self.common_device = common_device
        self.other_device = other_device


class _Numbers:
    """Whether the numbers in some memory, which fake tensors share, are known."""

    are_known = True


class FakeTensor(Tensor):
    """A tensor with a shape, a dtype and a device, and no data.

    Args:
        fake_mode: the mode that runs its ops.
        elem: a tensor on meta.
        device: where it is said to be.
        constant: its number on the CPU, where that is known.
    """

    fake_mode: FakeTensorMode
    _elem: Tensor
    _constant: Tensor | None
    _numbers: _Numbers

    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(
        cls: type,
        fake_mode: FakeTensorMode,
        elem: Tensor,
        device: Any,
        constant: Tensor | None = None,
    ) -> Any:
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        made = Tensor._make_wrapper_subclass(
            cls,
            elem.shape,
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=device,
            requires_grad=elem.requires_grad,
        )
        made.fake_mode = fake_mode
        made._elem = elem
        made._constant = constant
        made._numbers = _Numbers()
        return made

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """Returns the fake tensor of a tensor."""
        return fake_mode.from_tensor(t)

    @property
    def fake_device(self) -> rl.device:
        """Where it is said to be, as `device`."""
        return self.device

    @property
    def constant(self) -> Tensor | None:
        """Its number as a tensor on the CPU, None where that is not known."""
        return self._constant if self._numbers.are_known else None

    def untyped_storage(self) -> Any:
        """Returns its memory, which is on meta and as large as it would be."""
        return self._elem.untyped_storage()

    def tolist(self) -> Any:
        """Returns its numbers, where they are known."""
        return [part.tolist() for part in self] if self.dim() else self.item()

    def __getstate__(self) -> dict[str, Any]:
        """The attributes that the program gave it, which copies keep."""
        return {key: value for key, value in vars(self).items() if key not in self.__annotations__}

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("FakeTensor: there is no data to save. Save the tensor it stands for.")

    @classmethod
    def __torch_dispatch__(
        cls,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs an op in the mode of the first fake tensor."""
        fake = next(leaf for leaf in pytree.tree_leaves((args, kwargs)) if is_fake(leaf))
        return fake.fake_mode.__torch_dispatch__(func, types, args, kwargs)


class FakeTensorMode(TorchDispatchMode):
    """Lets a program run without data in a with block: the tensors that it makes are fake.

    They are on the device that the program names, whether there is one or not.

    Args:
        allow_fallback_kernels: has no effect, like static_shapes and export.
        allow_non_fake_inputs: whether ops take other tensors for the fake ones of them.
        shape_env: must be None; sizes are numbers.

    Raises:
        AssertionError: where an op meets a tensor with data, and is not allowed to.
        DataDependentOutputException: where data is read, by item() or an if.
        DynamicOutputShapeException: where a shape depends on data, as that of nonzero().
        FakeTensorDeviceMismatchError: where an op meets tensors on different devices.

    Example:
        >>> from rushlight._subclasses.fake_tensor import FakeTensorMode
        >>> with FakeTensorMode():
        ...     big = torch.nn.Linear(100_000, 200_000, device="cuda")
        ...     out = big(torch.randn(8, 100_000, device="cuda"))
        >>> out.shape, out.device
        (torch.Size([8, 200000]), device(type='cuda', index=0))
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: None = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        if shape_env is not None:
            raise NotImplementedError(
                "FakeTensorMode: shape_env must be None. Sizes of fake tensors are numbers."
            )
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = None
        self.static_shapes = True
        self._fakes: Any = WeakIdKeyDictionary()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """True: it is a tool's own mode."""
        return True

    def is_our_fake(self, t: object) -> bool:
        """Returns whether a tensor is a fake one of this mode."""
        return isinstance(t, FakeTensor) and t.fake_mode is self

    def from_tensor(self, tensor: Tensor, *, static_shapes: bool | None = None, **_: Any) -> Any:
        """Returns the fake tensor of a tensor, the same one each time.

        It has the sizes, strides and device of the tensor and a gradient where that has one, and is
        a parameter or a view where that is one.

        Args:
            tensor: any tensor; a fake one of this mode comes back itself.
            static_shapes: has no effect, like arguments for symbolic sizes.

        Raises:
            UnsupportedFakeTensorException: the tensor is sparse or quantized.
        """
        if self.is_our_fake(tensor):
            return tensor
        if tensor not in self._fakes:
            with _disable_current_modes():
                self._fakes[tensor] = self._fake_of(tensor)
        return self._fakes[tensor]

    def __torch_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs an op on meta, and on numbers that are known as well."""
        if not all(issubclass(cls, FakeTensor) for cls in types):
            return NotImplemented
        if func is aten.lift_fresh.default:
            return self._lifted(args[0])
        given = self._only_fake(func, (args, kwargs or {}))
        leaves = pytree.tree_leaves(given)
        fakes = [leaf for leaf in leaves if isinstance(leaf, FakeTensor)]
        named = [leaf for leaf in leaves if isinstance(leaf, rl.device)]
        device = named[0] if named else _common_device(func, fakes)
        is_known = bool(fakes) and all(fake.constant is not None for fake in fakes)
        is_known = is_known and Tag.nondeterministic_seeded not in func.tags
        try:
            result = _run(func, given, lambda fake: fake._elem, "meta")
        except NotImplementedError as error:
            if not is_known:
                raise _refusal(func) from error
            result = _run(func, given, lambda fake: fake.constant, "cpu")
            return pytree.tree_map_only(Tensor, self._lifted, result)
        elems, spec = pytree.tree_flatten(result)
        constants: list[Any] = [None] * len(elems)
        is_small = all(elem.numel() == 1 for elem in elems if isinstance(elem, Tensor))
        if is_known and is_small:
            constants = pytree.tree_leaves(_run(func, given, lambda fake: fake.constant, "cpu"))
        else:
            _forget_written(func, *given)
        by_elem = {id(fake._elem): fake for fake in fakes}
        results = []
        for elem, constant in zip(elems, constants, strict=True):
            is_new = isinstance(elem, Tensor) and id(elem) not in by_elem
            made = self._made(func, fakes, elem, device, constant) if is_new else elem
            results.append(by_elem.get(id(elem), made))
        for fake in fakes:  # which ops in place may have given another shape
            if fake.shape != fake._elem.shape or fake.stride() != fake._elem.stride():
                _C._reshape_wrapper(fake, fake._elem)
        return pytree.tree_unflatten(results, spec)

    def _made(
        self, func: Any, fakes: list[Any], elem: Tensor, device: Any, constant: Tensor | None
    ) -> Any:
        """The fake tensor of a result."""
        if not elem.is_meta:  # of an op of numbers alone
            return self._lifted(elem)
        made = FakeTensor(self, elem, device, constant)
        if func.is_view:
            _C._share_storage(made, fakes[0])
            made._numbers = fakes[0]._numbers
        return made

    def _only_fake(self, func: Any, given: Any) -> Any:
        """Arguments with the fake tensors of those that are not."""
        written = given[0][:1] if func._schema.is_mutable else ()

        def fake_of(tensor: Tensor) -> Any:
            if self.is_our_fake(tensor) or self.allow_non_fake_inputs:
                return self.from_tensor(tensor)
            if isinstance(tensor, FakeTensor):
                raise AssertionError(f"Mixing fake modes NYI. Found in {func}")
            is_number = tensor.dim() == 0 and tensor.is_cpu
            if is_number and not any(tensor is other for other in written):
                return self._lifted(tensor)
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode "
                f"with 'allow_non_fake_inputs'. Found in {func}, which was given a tensor of shape "
                f"{tuple(tensor.shape)} with data."
            )

        return pytree.tree_map_only(Tensor, fake_of, given)

    def _lifted(self, tensor: Tensor) -> Tensor:
        """The fake tensor of a fresh one, whose number is kept."""
        if isinstance(tensor, FakeTensor):
            return tensor
        with no_dispatch():  # a clone, as an array may share the memory
            constant = tensor.clone() if tensor.numel() == 1 and tensor.is_cpu else None
        return FakeTensor(self, _outline(tensor), tensor.device, constant)

    def _fake_of(self, tensor: Tensor) -> Any:
        if is_traceable_wrapper_subclass(tensor):
            return transform_subclass(tensor, lambda _, part: self.from_tensor(part))
        if isinstance(tensor, FakeTensor):
            fake = FakeTensor(self, tensor._elem.detach(), tensor.device)
        elif tensor.layout is not rl.strided or tensor.is_quantized:
            raise UnsupportedFakeTensorException(
                f"a {'quantized' if tensor.is_quantized else tensor.layout} tensor has no fake form"
            )
        elif tensor._base is not None:
            return self._view_of(self.from_tensor(tensor._base), tensor)
        else:
            fake = FakeTensor(self, _outline(tensor), tensor.device)
        fake.requires_grad_(tensor.requires_grad)
        if isinstance(tensor, Parameter):
            fake._is_param = True
        if not tensor.is_leaf:
            with rl.enable_grad():
                return fake.clone()
        if tensor.grad is not None:
            fake.grad = self.from_tensor(tensor.grad)
        return fake

    def _view_of(self, base: Any, tensor: Tensor) -> Any:
        """The view of a fake tensor that looks as a tensor does into its own base."""
        with rl.set_grad_enabled(tensor.requires_grad):
            if tensor.dtype != base.dtype:
                base = base.view(tensor.dtype)
            return base.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _outline(tensor: Tensor) -> Tensor:
    """A tensor on meta that looks the same, into memory of the same size."""
    with no_dispatch(), rl.no_grad():
        count = tensor.untyped_storage().nbytes() // tensor.itemsize
        memory = rl.empty(count, dtype=tensor.dtype, device="meta")
        return memory.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).detach()


def materialized(tree: Any) -> Any:
    """Returns a tree with zeros on the CPU in the place of its fake tensors.

    Those that share memory share it there, too.
    """
    memories: dict[Any, Tensor] = {}

    def zeros_of(fake: FakeTensor) -> Tensor:
        memory = fake.untyped_storage()
        if memory not in memories:
            memories[memory] = rl.zeros(memory.nbytes(), dtype=rl.uint8, device="cpu")
        elements = memories[memory].view(fake.dtype)
        made = elements.as_strided(fake.shape, fake.stride(), fake.storage_offset())
        if isinstance(fake, Parameter):
            return Parameter(made, fake.requires_grad)
        return made.requires_grad_(fake.requires_grad)

    return pytree.tree_map_only(FakeTensor, zeros_of, tree)


def _run(func: Any, given: Any, inside: Callable[[Any], Any], device: str) -> Any:
    """What an op makes of what is inside fake tensors, which is on a device."""

    def placed(leaf: Any) -> Any:
        if isinstance(leaf, FakeTensor):
            return inside(leaf)
        return rl.device(device) if isinstance(leaf, rl.device) else leaf

    args, kwargs = pytree.tree_map(placed, given)
    kwargs.pop("pin_memory", None)
    before = _C._default_device()
    _C._set_default_device(device)
    try:
        with no_dispatch():
            return func(*args, **kwargs)
    finally:
        _C._set_default_device(before)


def _common_device(func: Any, fakes: list[Any]) -> Any:
    """Where the result of an op is; numbers on the CPU go with tensors on any device."""

    def is_number(fake: Any) -> bool:
        return fake.dim() == 0 and fake.device.type == "cpu"

    if not fakes:
        return _C._default_device()
    common = fakes[0]
    for fake in fakes[1:] if func not in _MIXED else ():
        if is_number(common):
            common = fake
        elif fake.device != common.device and not is_number(fake):
            raise FakeTensorDeviceMismatchError(func, common.device, fake.device)
    return common.device


def _refusal(func: Any) -> RuntimeError:
    if Tag.data_dependent_output in func.tags:
        return DataDependentOutputException(func)
    if Tag.dynamic_output_shape in func.tags:
        return DynamicOutputShapeException(func)
    return UnsupportedOperatorException(func)


def _forget_written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Notes that numbers are unknown where an op wrote some."""
    schema = func._schema
    if not schema.is_mutable:
        return
    written = [arg for arg, what in zip(args, schema.arguments, strict=False) if what.is_write]
    written += [kwargs.get("out")]
    for fake in pytree.tree_leaves(written):
        if isinstance(fake, FakeTensor):
            fake._numbers.are_known = False


class FakeTensorConverter:
    """Makes tensors fake for a mode that is named each time."""

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Tensor, **kwargs: Any) -> Any:
        """Returns what `fake_mode.from_tensor(t)` does."""
        return fake_mode.from_tensor(t, **kwargs)


def maybe_get_fake_mode(t: object) -> FakeTensorMode | None:
    """Returns the mode of a fake tensor, or of the fake tensors that a tensor is made of."""
    if isinstance(t, FakeTensor):
        return t.fake_mode
    if is_traceable_wrapper_subclass(t):
        whole: Any = t
        modes = {maybe_get_fake_mode(getattr(t, name)) for name in whole.__tensor_flatten__()[0]}
        if len(modes) == 1:
            return modes.pop()
    return None


def is_fake(x: object) -> bool:
    """Returns whether a tensor is fake, or made of fake ones.

    Example:
        >>> from rushlight._subclasses.fake_tensor import FakeTensorMode, is_fake
        >>> with FakeTensorMode():
        ...     x = torch.ones(2)
        >>> is_fake(x), is_fake(torch.ones(2))
        (True, False)
    """
    return maybe_get_fake_mode(x) is not None


@contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """Lets tensors have data in a with block, whatever mode is on; gives that mode, or None.

    Example:
        >>> from rushlight._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
        >>> with FakeTensorMode(), unset_fake_temporarily():
        ...     torch.ones(2)
        tensor([1., 1.])
    """
    modes = _C._dispatch_modes()
    fake_modes = [mode for mode in modes if isinstance(mode, FakeTensorMode)]
    with _disable_current_modes():
        others = [mode for mode in modes if not isinstance(mode, FakeTensorMode)]
        for mode in others:
            _C._push_dispatch_mode(mode)
        try:
            yield fake_modes[-1] if fake_modes else None
        finally:
            for _ in others:
                _C._pop_dispatch_mode()


class FakeCopyMode(TorchFunctionMode):
    """Makes deep copies fake in a with block, of a module for one.

    Args:
        fake_mode: the mode of the copies.

    Example:
        >>> import copy
        >>> from rushlight._subclasses.fake_tensor import FakeCopyMode, FakeTensorMode, is_fake
        >>> with FakeCopyMode(FakeTensorMode()):
        ...     net = copy.deepcopy(torch.nn.Linear(2, 3))
        >>> is_fake(net.weight)
        True
    """

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        self.fake_mode = fake_mode

    def __torch_function__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Makes copies fake, and runs all else."""
        if func is Tensor.__deepcopy__:
            tensor, memo = args
            return memo.setdefault(id(tensor), self.fake_mode.from_tensor(tensor))
        if func is Tensor.clone:
            return func(self.fake_mode.from_tensor(args[0]), **(kwargs or {}))
        return func(*args, **(kwargs or {}))
