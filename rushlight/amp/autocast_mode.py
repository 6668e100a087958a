"""Autocast: the region in which ops choose the dtype that they compute in.

Owns the context manager, the switches of a thread in PyTorch's names, and what a user's
autograd.Function says about autocast. The casts themselves are the core's: the field .autocast of
an op, and core/ops/watched_call.h.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, Self, TypeVar

import rushlight as rl
from rushlight import _C, Tensor

F = TypeVar("F", bound=Callable[..., Any])
_State = tuple[dict[str, tuple[bool, rl.dtype]], bool]  # (enabled, dtype) by device; the cache

_DEVICES = ("cpu", "cuda")
_SHORT_DTYPES = (rl.bfloat16, rl.float16)


def is_autocast_available(device_type: str) -> bool:
    """Returns whether there is an autocast for tensors of a device.

    Args:
        device_type: "cpu", "cuda", ...

    Raises:
        RuntimeError: if no device is called so.

    Example:
        >>> torch.amp.is_autocast_available("cpu")
        True
    """
    return rl.device(device_type).type in _DEVICES


class _Region:
    """Sets what autocast does in this thread for a scope; may be entered again."""

    def __init__(self) -> None:
        self._outside: list[_State] = []

    def _inside(self) -> _State:
        raise NotImplementedError

    def __enter__(self) -> Self:
        outside = _state()
        _set_state(self._inside())  # raises for what is no dtype
        self._outside.append(outside)
        _C.autocast_increment_nesting()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        _set_state(self._outside.pop())


def _state() -> _State:
    return {device: _C._autocast(device) for device in _DEVICES}, _C.is_autocast_cache_enabled()


def _set_state(state: _State) -> None:
    modes, keeps_casts = state
    for device, (enabled, dtype) in modes.items():
        _C._set_autocast(device, enabled, dtype)
    _C.set_autocast_cache_enabled(keeps_casts)


class RestoredAutocast(_Region):
    """What autocast did when this was made, for what must run again as it did then."""

    def __init__(self) -> None:
        super().__init__()
        self._then = _state()

    def _inside(self) -> _State:
        return self._then


class autocast(_Region):
    """A region in which ops choose the dtype that they compute in; also a decorator.

    Products, convolutions and attention run in the short dtype, which halves the memory they read;
    losses, and what would lose digits, run in float32; the rest takes what it is given. Weights
    stay float32, and so do their gradients. Calls in place or with out= are as written, and so is
    backward, which should stand after the region. The page on mixed precision lists the ops.
    Source: Micikevicius et al., Mixed precision training (2018).

    Args:
        device_type: "cpu" or "cuda": the tensors that it is about.
        dtype: the short dtype, bfloat16 or float16; unless given, what get_autocast_dtype says:
            bfloat16 on the CPU, float16 on CUDA.
        enabled: False makes a region without autocast, inside another one.
        cache_enabled: whether the casts of parameters are kept until the outermost region ends.

    Raises:
        ValueError: if device_type is not a string.
        RuntimeError: if there is no autocast for the device.

    Example:
        >>> weight = torch.ones(2, 2, requires_grad=True)
        >>> with torch.autocast("cpu"):
        ...     product = weight @ weight
        >>> product.dtype
        torch.bfloat16
        >>> product.float().sum().backward()
        >>> weight.grad.dtype
        torch.float32
    """

    def __init__(
        self,
        device_type: str,
        dtype: rl.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(device_type, str):
            raise ValueError(
                f"autocast: Expected `device_type` of type `str`, got: `{type(device_type)}`"
            )
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"autocast: User specified an unsupported autocast device_type '{device_type}'. "
                "It is 'cpu' or 'cuda'."
            )
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled and self._is_usable()
        self._keeps_casts = cache_enabled

    def _is_usable(self) -> bool:
        if self.device == "cuda" and not rl.cuda.is_available():
            warnings.warn(
                "autocast: User provided device_type of 'cuda', but CUDA is not available. "
                "Disabling",
                stacklevel=3,
            )
            return False
        if self.fast_dtype not in _SHORT_DTYPES:
            names = ", ".join(map(str, _SHORT_DTYPES))
            warnings.warn(
                f"autocast: In {self.device.upper()} autocast, but the target dtype "
                f"{self.fast_dtype} is not supported. Disabling autocast. It supports {names}.",
                stacklevel=3,
            )
            return False
        return True

    def _inside(self) -> _State:
        modes, keeps_casts = _state()
        modes[self.device] = self._enabled, self.fast_dtype
        return modes, keeps_casts if self._keeps_casts is None else self._keeps_casts

    def __call__(self, function: F) -> F:
        if not callable(function):
            raise TypeError(
                f"autocast: called with {type(function).__name__}, which is no function. Use it as "
                "a decorator, or as a block: with autocast(...)."
            )

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call  # pyright: ignore[reportReturnType]


# The switches of a thread


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Returns whether autocast is on for a device in this thread.

    Example:
        >>> with torch.autocast("cpu"):
        ...     torch.is_autocast_enabled("cpu")
        True
    """
    if device_type in ("cpu", "cuda"):
        return _C._autocast(device_type)[0]
    _C.device(device_type)  # raises for what is no device
    return False


def get_autocast_dtype(device_type: str) -> rl.dtype:
    """Returns the short dtype of autocast on a device.

    Example:
        >>> torch.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    return _C._autocast(device_type)[1]


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turns autocast on or off for a device in this thread, outside of a region.

    Args:
        device_type: the device; or only `enabled`, which is then about CUDA.
        enabled: whether ops choose their dtypes.
    """
    if enabled is None:
        device_type, enabled = "cuda", bool(device_type)
    device = str(device_type)
    _C._set_autocast(device, enabled, get_autocast_dtype(device))


def set_autocast_dtype(device_type: str, dtype: rl.dtype) -> None:
    """Sets the short dtype of autocast on a device, for this thread.

    Args:
        device_type: "cpu" or "cuda".
        dtype: bfloat16 or float16.
    """
    _C._set_autocast(device_type, is_autocast_enabled(device_type), dtype)


def autocast_increment_nesting() -> int:
    """Says that a region begins, and returns how many there are now, one in the other."""
    return _C.autocast_increment_nesting()


def autocast_decrement_nesting() -> int:
    """Says that a region ends, and returns how many are left; 0 is the time to clear the cache."""
    return _C.autocast_decrement_nesting()


def clear_autocast_cache() -> None:
    """Forgets the casts of parameters that were kept in this thread.

    A program that changes parameters within a region calls this, so that they are cast anew.
    """
    _C.clear_autocast_cache()


def is_autocast_cache_enabled() -> bool:
    """Returns whether casts of parameters are kept in this thread until the outermost region ends.

    Example:
        >>> torch.is_autocast_cache_enabled()
        True
    """
    return _C.is_autocast_cache_enabled()


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether casts of parameters are kept in this thread until the outermost region ends."""
    _C.set_autocast_cache_enabled(enabled)


def is_autocast_cpu_enabled() -> bool:
    """Returns whether autocast is on for the CPU: is_autocast_enabled("cpu")."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Turns autocast on or off for the CPU: set_autocast_enabled("cpu", enabled)."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> rl.dtype:
    """Returns the short dtype of autocast on the CPU: get_autocast_dtype("cpu")."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: rl.dtype) -> None:
    """Sets the short dtype of autocast on the CPU: set_autocast_dtype("cpu", dtype)."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> rl.dtype:
    """Returns the short dtype of autocast on CUDA: get_autocast_dtype("cuda")."""
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: rl.dtype) -> None:
    """Sets the short dtype of autocast on CUDA: set_autocast_dtype("cuda", dtype)."""
    set_autocast_dtype("cuda", dtype)


# autograd.Function


def _cast(value: Any, device_type: str, dtype: rl.dtype) -> Any:
    if isinstance(value, Tensor):
        wanted = value.is_floating_point() and value.dtype != rl.float64
        return value.to(dtype) if wanted and value.device.type == device_type else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, dict):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, device_type, dtype) for item in value)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: rl.dtype | None = None,
) -> Callable[..., Any]:
    """Says how the forward of an autograd.Function behaves under autocast.

    Args:
        fwd: the static method forward; without it a decorator is returned.
        device_type: "cpu" or "cuda".
        cast_inputs: the dtype that floating-point arguments are cast to under autocast, which is
            then off inside; None leaves both as they are.
    Raises:
        ValueError: if device_type is not a string.

    Example:
        >>> class Square(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         return 2 * g * ctx.saved_tensors[0]
        >>> with torch.autocast("cpu"):
        ...     Square.apply(torch.ones(2, dtype=torch.bfloat16)).dtype
        torch.float32
    """
    _check_device_type("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return forward(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return forward(
                ctx,
                *_cast(args, device_type, cast_inputs),
                **_cast(kwargs, device_type, cast_inputs),
            )

    return call


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Runs the backward of an autograd.Function under the autocast of its forward.

    Args:
        bwd: the static method backward; without it a decorator is returned.
        device_type: "cpu" or "cuda", as given to custom_fwd.
    Raises:
        ValueError: if device_type is not a string.
    """
    _check_device_type("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def call(ctx: Any, *grads: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return backward(ctx, *grads)

    return call


def _check_device_type(name: str, device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(
            f"{name}: Expected `device_type` of type `str`, got: `{type(device_type)}`"
        )
