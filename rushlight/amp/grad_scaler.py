"""Gradient scaling for training with half types.

Owns the scale and when it changes; the unscaling of all gradients is one op, _unscale_.
Invariant: the scale and the count of good steps are tensors on one device, so that a step waits for
the device only once, to learn whether it may be taken; or not at all, when the optimizer leaves
steps out by itself.
"""

from __future__ import annotations

import enum
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._signatures import signature

if TYPE_CHECKING:
    from rushlight.optim import Optimizer


class OptState(enum.Enum):
    """What has happened to an optimizer since the last update of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _Copies:
    """Copies of a number on each device where it is asked for."""

    def __init__(self, number: Tensor) -> None:
        self._number = number
        self.by_device: dict[rl.device, Tensor] = {}

    def on(self, device: rl.device) -> Tensor:
        if device not in self.by_device:
            self.by_device[device] = self._number.to(device, copy=True)
        return self.by_device[device]


class GradScaler:
    """Scales a loss up, so that gradients in float16 do not vanish, and gradients down again.

    A step whose gradients are infinite or NaN is left out, and the scale multiplied by
    backoff_factor; after growth_interval good steps it is multiplied by growth_factor.

    Source: Micikevicius et al., Mixed precision training (2018), section 3.2.

    Args:
        device: "cuda" or "cpu"; without a GPU, a scaler for "cuda" is disabled, with a warning.
        init_scale: the first scale.
        growth_factor: greater than 1.
        backoff_factor: less than 1.
        growth_interval: good steps between two growths.
        enabled: False makes scale and step do nothing of their own.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.SGD([weight], lr=0.5)
        >>> scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        >>> scaler.scale(weight.sum()).backward()
        >>> weight.grad.tolist()
        [1024.0, 1024.0]
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> weight.tolist()
        [0.5, 0.5]
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not rl.cuda.is_available():
            warnings.warn(
                "GradScaler is enabled, but CUDA is not available. Disabling.", stacklevel=2
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1:
            raise AssertionError(f"The growth factor must be > 1.0, but is {growth_factor}.")
        if backoff_factor >= 1:
            raise AssertionError(f"The backoff factor must be < 1.0, but is {backoff_factor}.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    def scale(self, outputs: Any) -> Any:
        """Returns a loss, or a list, tuple or other iterable of losses, times the scale.

        Args:
            outputs: tensors on any device.
        Returns:
            The same structure, or `outputs` itself if the scaler is disabled.
        """
        if not self._enabled:
            return outputs
        copies: _Copies | None = None

        def scaled(value: Any) -> Any:
            nonlocal copies
            if isinstance(value, Tensor):
                if copies is None:
                    copies = _Copies(self._scale_on(value.device))
                return value * copies.on(value.device)
            if isinstance(value, Iterable):
                parts = map(scaled, value)
                return type(value)(parts) if isinstance(value, list | tuple) else parts
            raise ValueError(
                f"GradScaler.scale: outputs must be a Tensor or an iterable of Tensors, not "
                f"{type(value).__name__}"
            )

        return scaled(outputs)

    def _scale_on(self, device: rl.device) -> Tensor:
        """Returns the scale, which the first use puts on a device."""
        if self._scale is None:
            self._scale = rl.full((), self._init_scale, dtype=rl.float32, device=device)
            self._growth_tracker = rl.full(
                (), self._init_growth_tracker, dtype=rl.int32, device=device
            )
        return self._scale

    def _used(self, method: str) -> tuple[Tensor, Tensor]:
        """Returns the scale and the count of good steps, which must exist."""
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"GradScaler.{method}: there is no scale yet. "
                "Call scaler.scale(loss) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer by the scale, for instance to clip them.

        Args:
            optimizer: whose step follows; step calls this itself unless it was called.
        Raises:
            RuntimeError: it was called already since the last update.
            ValueError: a gradient is float16.
        """
        if not self._enabled:
            return
        scale, _ = self._used("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = _unscale(optimizer, inverse, allow_fp16=False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Takes the optimizer's step, unless a gradient is infinite or NaN.

        Args:
            optimizer: the optimizer; its gradients are unscaled first if they were not.
            args: what optimizer.step gets.
            kwargs: likewise.
        Returns:
            What optimizer.step returned; None for a step that was left out.
        Raises:
            RuntimeError: step was called already since the last update, or with a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError(
                "Closure use is not currently supported if GradScaler is enabled. A closure would "
                "compute gradients that are not unscaled."
            )
        self._used("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_inside(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"].values()
        if not found:
            raise AssertionError(
                "GradScaler.step: No inf checks were recorded for this optimizer. None of its "
                "parameters has a gradient; call backward first."
            )
        is_good = not any(number.item() for number in found)
        result = optimizer.step(*args, **kwargs) if is_good else None
        state["stage"] = OptState.STEPPED
        return result

    def _step_inside(
        self, optimizer: Any, state: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Takes the step of an optimizer that unscales, and leaves steps out, by itself.

        It reads its attributes grad_scale, which may be None, and found_inf; or it takes the scaler
        as an argument, which is an older way.
        """
        if "grad_scaler" in signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed "
                "optimizer. In the near future GradScaler registers `grad_scale: Tensor` and "
                "`found_inf: Tensor` to the passed optimizer and let the optimizer use them "
                "directly.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        scale, _ = self._used("step")
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
            optimizer.grad_scale = scale * getattr(optimizer, "grad_scale", 1)
        else:
            optimizer.grad_scale = getattr(optimizer, "grad_scale", None)
        found = state["found_inf_per_device"].values()
        optimizer.found_inf = sum((number.to(scale.device) for number in found), 0 * scale)
        try:
            result = optimizer.step(*args, **kwargs)
        finally:  # a step by itself must not find them
            del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Changes the scale by what the steps since the last update found.

        Args:
            new_scale: the scale to use instead; a number, or a tensor of one.
        """
        if not self._enabled:
            return
        scale, tracker = self._used("update")
        if new_scale is not None:
            self._replace(scale, new_scale)
        else:
            found = [
                number.to(scale.device)
                for state in self._per_optimizer_states.values()
                for number in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError(
                    "GradScaler.update: No inf checks were recorded prior to update. "
                    "Call scaler.step(optimizer) first."
                )
            _amp_update_scale_(
                scale,
                tracker,
                rl.stack(found).sum(),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _replace(self, scale: Tensor, new_scale: float | Tensor) -> None:
        if not isinstance(new_scale, Tensor):
            scale.fill_(new_scale)
        elif new_scale.numel() == 1 and not new_scale.requires_grad:
            scale.copy_(new_scale.reshape(()))
        else:
            raise AssertionError(
                "GradScaler.update: new_scale should be a float or a 1-element tensor with "
                f"requires_grad=False, but has shape {tuple(new_scale.shape)} and requires_grad="
                f"{new_scale.requires_grad}."
            )

    def get_scale(self) -> float:
        """Returns the scale; 1.0 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Returns what the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the scale grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Returns what the scale shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the scale shrinks by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Returns the number of good steps between two growths."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of good steps between two growths."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def is_enabled(self) -> bool:
        """Returns whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Returns the scale, the factors and the count; nothing if the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the state of another scaler.

        Args:
            state_dict: what state_dict returned, here or in PyTorch.
        Raises:
            RuntimeError: it is empty, as that of a disabled scaler.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        self._scale = self._growth_tracker = None

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Optimizer) -> dict[rl.device, Tensor]:
        """Looks for infinite gradients without changing them."""
        scale, _ = self._used("_check_inf_per_device")
        found = _unscale(optimizer, rl.ones_like(scale), allow_fp16=True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Optimizer) -> dict[rl.device, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]


# The two functions that scalers of other libraries call, by PyTorch's names.


def _amp_update_scale_(
    scale: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Shrinks the scale or counts a good step, without waiting for the device."""
    is_bad, good = found_inf > 0, growth_tracker + 1
    grows = (good >= growth_interval) & ~is_bad
    grown = scale * scale_growth_factor
    # A scale that would be infinite stays.
    grown = rl.where(grown.isfinite(), grown, scale)
    kept = rl.where(grows, grown, scale)
    scale.copy_(rl.where(is_bad, scale * scale_backoff_factor, kept))
    growth_tracker.copy_(rl.where(is_bad | grows, rl.zeros_like(good), good))
    return scale


@rl.no_grad()
def _amp_foreach_non_finite_check_and_unscale_(
    self: list[Tensor], found_inf: Tensor, inv_scale: Tensor
) -> None:
    """Multiplies tensors by a number, and sets found_inf to 1 if one was not finite."""
    _C._unscale_(self, found_inf, inv_scale)


@rl.no_grad()
def _unscale(optimizer: Optimizer, inverse: Tensor, allow_fp16: bool) -> dict[rl.device, Tensor]:
    """Multiplies an optimizer's gradients; returns by device 1 if one was not finite, else 0."""
    inverses, found = _Copies(inverse), _Copies(rl.zeros_like(inverse))
    by_device: defaultdict[rl.device, list[Tensor]] = defaultdict(list)
    for group in optimizer.param_groups:
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.dtype == rl.float16 and not allow_fp16:
                raise ValueError(
                    "Attempting to unscale FP16 gradients. Keep parameters in float32 and run the "
                    "forward pass under autocast."
                )
            if grad.is_sparse:
                # Equal entries of float16 may overflow when they are added up.
                if grad.dtype == rl.float16:
                    grad = param.grad = grad.coalesce()
                grad = grad._values()
            by_device[grad.device].append(grad)
    for device, grads in by_device.items():
        _C._unscale_(grads, found.on(device), inverses.on(device))
    return found.by_device
