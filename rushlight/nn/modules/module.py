"""nn.Module, the base class of every layer and network.

Owns training mode, conversions and printing. What a module holds is in _members.py, hooks and the
call itself in _hooks.py, saving and loading in _state_dict.py; each is a base of the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import rushlight as rl
from rushlight import Tensor
from rushlight.__future__ import get_overwrite_module_params_on_conversion
from rushlight._parts import name_after
from rushlight._target import read_target
from rushlight.nn.modules import _registration_hooks
from rushlight.nn.modules._global_hooks import (
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from rushlight.nn.modules._member_dicts import MemberDict
from rushlight.nn.modules._members import Members
from rushlight.nn.modules._registration_hooks import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from rushlight.nn.modules._state_dict import _EXTRA_STATE_KEY_SUFFIX as _EXTRA_STATE_KEY_SUFFIX
from rushlight.nn.modules._state_dict import Stateful
from rushlight.nn.modules._state_dict import _IncompatibleKeys as _IncompatibleKeys
from rushlight.nn.parameter import Parameter

if TYPE_CHECKING:
    from rushlight.nn.modules._summary import ModuleSummary

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


# Where libraries look for these hooks.
_global_parameter_registration_hooks = _registration_hooks.parameter_hooks
_global_buffer_registration_hooks = _registration_hooks.buffer_hooks
_global_module_registration_hooks = _registration_hooks.module_hooks


class _ForwardSignature:
    """What notebooks and inspect.signature show of a call: the arguments of forward."""

    def __get__(self, module: Module | None, owner: type) -> Any:
        if module is None:
            raise AttributeError("__signature__")  # the class has its own: that of __init__
        from rushlight._signatures import signature

        return signature(module.forward)


class Module(Stateful):
    """Base class of layers and networks: state, child modules and a forward function.

    A subclass calls super().__init__(), assigns parameters and child modules as attributes, and
    defines forward. Calling the module runs forward and the hooks around it.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = torch.nn.Linear(2, 8)
        ...         self.out = torch.nn.Linear(8, 1)
        ...     def forward(self, x):
        ...         return self.out(self.hidden(x).relu())
        >>> tuple(Net()(torch.zeros(5, 2)).shape)
        (5, 1)
    """

    training: bool
    # Whether __init__ goes on to the class after Module, with the arguments it was given.
    call_super_init: bool = False
    dump_patches: bool = False  # of PyTorch's old way to save modules; has no effect
    __signature__ = _ForwardSignature()
    # Here and in no base, since programs leave them out by super(Module, self).
    __setattr__ = Stateful._set_attribute
    __delattr__ = Stateful._delete_attribute

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            surplus = (
                f"got an unexpected keyword argument '{next(iter(kwargs))}'"
                if kwargs
                else f"takes 1 positional argument but {len(args) + 1} were given"
            )
            raise TypeError(f"{type(self).__name__}.__init__() {surplus}")
        super().__init__()
        self.training = True
        if self.call_super_init:
            super(Members, self).__init__(*args, **kwargs)

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Puts the module and all its descendants into training mode.

        Args:
            mode: False for evaluation mode, as eval() does.

        Returns:
            The module.

        Raises:
            ValueError: if mode is not a bool.

        Example:
            >>> torch.nn.Dropout().train(False).training
            False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Puts the module and all its descendants into evaluation mode.

        Example:
            >>> torch.nn.Dropout().eval().training
            False
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether backward computes gradients for the parameters.

        Returns:
            The module.

        Example:
            >>> layer = torch.nn.Linear(2, 3).requires_grad_(False)
            >>> layer.weight.requires_grad
            False
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters.

        Args:
            set_to_none: whether to drop the gradients; False fills them with zeros.

        Example:
            >>> layer = torch.nn.Linear(2, 3)
            >>> layer(torch.ones(1, 2)).sum().backward()
            >>> layer.zero_grad()
            >>> layer.weight.grad is None
            True
        """
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad.detach_()
                parameter.grad.zero_()

    def compile(self, *args: Any, **options: Any) -> None:
        """Has calls of the module run compiled from now on.

        Args:
            args, options: what torch.compile takes after the model.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh())
            >>> net.compile()
            >>> net(torch.zeros(1, 2)).shape
            torch.Size([1, 3])
        """
        from rushlight._dynamo.eval_frame import CompiledForward

        self.forward = CompiledForward(self, *args, **options)

    # Walks that change things

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls fn on every descendant and then on the module itself.

        Returns:
            The module.

        Example:
            >>> def clear_bias(module):
            ...     if isinstance(module, torch.nn.Linear):
            ...         torch.nn.init.zeros_(module.bias)
            >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3)).apply(clear_bias)
            >>> net[0].bias.tolist()
            [0.0, 0.0, 0.0]
        """
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replaces the values of parameters, gradients and buffers by fn of them.

        Parameters stay the same objects, so that optimizers keep pointing at them, unless
        torch.__future__ says otherwise.
        """
        if recurse:
            for child in self.children():
                child._apply(fn)
        overwrites = get_overwrite_module_params_on_conversion()
        for name, tensor in self._parameters.items():
            if tensor is None:
                continue
            with rl.no_grad():
                if overwrites or rl._C._is_wrapper(tensor):
                    self._parameters[name] = _overwritten(tensor, fn)
                    continue
                applied = fn(
                    tensor
                )  # not of .data: classes of parameters have methods of their own
                if applied is not tensor:
                    tensor.data = applied
                if tensor.grad is not None:
                    applied = fn(tensor.grad)
                    if applied is not tensor.grad:
                        tensor.grad.data = applied
        for name, tensor in self._buffers.items():
            if tensor is not None:
                self._buffers[name] = fn(tensor)
        return self

    def _replicate_for_data_parallel(self) -> Self:
        """Returns a module that shares all with this one and has no parameters, only their names'
        places: nn.parallel.replicate fills them."""
        replica = self.__new__(type(self))
        replica.__dict__.update(self.__dict__)
        absent = {name: None for name, value in self._parameters.items() if value is None}
        replica._parameters = MemberDict(absent)
        replica._buffers = MemberDict(self._buffers)
        replica._modules = MemberDict(self._modules)
        replica._is_replica = True
        return replica

    # Conversions

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves and converts parameters and buffers, in place.

        Called as to(device=None, dtype=None, non_blocking=False, *, memory_format=None), as
        to(dtype, non_blocking=False) or as to(tensor, non_blocking=False).

        Args:
            device: where to put parameters and buffers.
            dtype: a floating or complex dtype; tensors of integers keep theirs.
            tensor: a tensor whose device and dtype to take.
            non_blocking: whether copies from pinned host memory may overlap with the host.
            memory_format: layout for the tensors with 4 or 5 dimensions.

        Returns:
            The module.

        Raises:
            TypeError: if dtype is neither floating nor complex.
            RuntimeError: with copy=True, as a module is converted in place.
            NotImplementedError: if parameters are on meta, where they have no data to move.

        Example:
            >>> torch.nn.Linear(2, 3).to(torch.float64).weight.dtype == torch.float64
            True
        """
        device, dtype, non_blocking, copy, memory_format = read_target(args, kwargs)
        if copy:
            raise RuntimeError("Module.to does not accept copy. Use copy.deepcopy(module).to(...).")
        if dtype is not None and not _is_inexact(dtype):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}."
            )

        def convert(tensor: Tensor) -> Tensor:
            options: dict[str, Any] = {"non_blocking": non_blocking}
            if device is not None:
                options["device"] = device
            if dtype is not None and _is_inexact(tensor.dtype):
                options["dtype"] = dtype
            if memory_format is not None and tensor.dim() in (4, 5):
                options["memory_format"] = memory_format
            try:
                return tensor.to(**options)
            except NotImplementedError as error:
                if not tensor.is_meta:
                    raise
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use "
                    "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module "
                    "from meta to a different device."
                ) from error

        return self._apply(convert)

    def to_empty(self, *, device: rl.device | str | None, recurse: bool = True) -> Self:
        """Gives parameters and buffers fresh, uninitialized memory on a device.

        Args:
            device: where to put them.
            recurse: whether to go into descendants.

        Returns:
            The module.

        Example:
            >>> tuple(torch.nn.Linear(2, 3).to_empty(device="cpu").weight.shape)
            (3, 2)
        """
        return self._apply(lambda tensor: rl.empty_like(tensor, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Moves parameters and buffers to memory that processes share; see Tensor.share_memory_.

        Example:
            >>> torch.nn.Linear(2, 1).share_memory().weight.is_shared()
            True
        """
        return self._apply(lambda tensor: tensor.share_memory_())

    def cpu(self) -> Self:
        """Moves parameters and buffers to the CPU.

        Example:
            >>> torch.nn.Linear(2, 3).cpu().weight.device.type
            'cpu'
        """
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: rl.device | int | None = None) -> Self:
        """Moves parameters and buffers to a GPU, the current one if None.

        Returns:
            The module.
        """
        return self._apply(lambda tensor: tensor.cuda(device))

    def xpu(self, device: rl.device | int | None = None) -> Self:
        """Raises a RuntimeError if there is anything to move: Rushlight has no such devices."""
        return self._apply(lambda tensor: tensor.to("xpu"))

    def ipu(self, device: rl.device | int | None = None) -> Self:
        """Raises a RuntimeError if there is anything to move: Rushlight has no such devices."""
        return self._apply(lambda tensor: tensor.to("ipu"))

    def mtia(self, device: rl.device | int | None = None) -> Self:
        """Raises a RuntimeError if there is anything to move: Rushlight has no such devices."""
        return self._apply(lambda tensor: tensor.to("mtia"))

    def type(self, dst_type: rl.dtype | str) -> Self:
        """Converts all parameters and buffers to a dtype, integers included.

        Example:
            >>> layer = torch.nn.BatchNorm1d(2).type(torch.float64)
            >>> layer.num_batches_tracked.dtype == torch.float64
            True
        """
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _to_floating(self, dtype: rl.dtype) -> Self:
        return self._apply(
            lambda tensor: tensor.to(dtype) if tensor.dtype.is_floating_point else tensor
        )

    def float(self) -> Self:
        """Converts floating parameters and buffers to float32.

        Example:
            >>> torch.nn.Linear(2, 3).double().float().weight.dtype == torch.float32
            True
        """
        return self._to_floating(rl.float32)

    def double(self) -> Self:
        """Converts floating parameters and buffers to float64.

        Example:
            >>> torch.nn.Linear(2, 3).double().weight.dtype == torch.float64
            True
        """
        return self._to_floating(rl.float64)

    def half(self) -> Self:
        """Converts floating parameters and buffers to float16.

        Example:
            >>> torch.nn.Linear(2, 3).half().weight.dtype == torch.float16
            True
        """
        return self._to_floating(rl.float16)

    def bfloat16(self) -> Self:
        """Converts floating parameters and buffers to bfloat16.

        Example:
            >>> torch.nn.Linear(2, 3).bfloat16().weight.dtype == torch.bfloat16
            True
        """
        return self._to_floating(rl.bfloat16)

    # Printing

    def _get_name(self) -> str:
        return self.__class__.__name__

    def extra_repr(self) -> str:
        """Returns the settings that repr shows; override it in a layer."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            f"({name}): " + _addindent(repr(child), 2) for name, child in self._modules.items()
        ]
        if not child_lines and len(extra_lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra_lines + child_lines) + "\n)"

    def summary(self, *example_inputs: Any, depth: int | None = None) -> ModuleSummary:
        """Returns a table of the layers: output shapes, parameters and multiplications.

        Args:
            example_inputs: arguments for one forward, run in evaluation mode without gradients, to
                learn the output shapes and count the multiplications of matrix products,
                convolutions and the like; without them the table has neither.
            depth: how many levels of children to show; None shows all.

        Returns:
            An object that prints as the table and has rows, total_parameters,
            trainable_parameters, total_multiply_adds and bytes.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU())
            >>> net.summary(torch.zeros(1, 2))
            layer        output shape  parameters  multiply-adds
            Sequential   (1, 8)                24             16
            ├─ 0 Linear  (1, 8)                24             16
            └─ 1 ReLU    (1, 8)                 0              0
            24 parameters (24 trainable) in 96 bytes, 16 multiply-adds
        """
        from rushlight.nn.modules._summary import summarize

        return summarize(self, example_inputs, depth)


name_after(Module)


def _overwritten(param: Tensor, fn: Callable[[Tensor], Tensor]) -> Parameter:
    """A new parameter of the value and gradient that fn gives."""
    new = Parameter(fn(param), param.requires_grad)
    if param.grad is not None:
        new.grad = fn(param.grad).requires_grad_(param.grad.requires_grad)
    return new


def _is_inexact(dtype: rl.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _addindent(s_: str, numSpaces: int) -> str:
    """Indents every line but the first, as the reprs of modules do."""
    return s_.replace("\n", "\n" + numSpaces * " ")
