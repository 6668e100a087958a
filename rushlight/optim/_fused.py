"""The step of optimizers that update all parameters of a group in one op.

Owns how parameters, gradients and state are gathered for that op (core/ops/foreach/optim.cpp).
Invariant: a parameter's count of steps is a scalar tensor on the CPU, in `state` and in state_dict,
as PyTorch has it. Further numbers are Python's in `state`, and scalar tensors in state_dict.

Note [Steps left out on the GPU]
A GradScaler hands over found_inf, a tensor, and the kernels change nothing unless it is 0. Whether
the step was taken is known only when the GPU has come that far, so it is counted at once, and the
next step (or whoever reads the state) takes the count back if found_inf was not 0: by then that
number has come to the host, and nobody waits for the work that was asked for since.

Note [Steps in a CUDA graph]
A captured step repeats the numbers that Python passed, so what changes from step to step must be
computed on the GPU: with capturable=True each group keeps its count of steps there too, and a
captured step counts on that. Python learns of the replays when it next reads the state or takes a
step. A step that cannot be repeated is refused while it is captured: one with another count for
each parameter, the first one, which begins the state, and those that compute with their count in
Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.optim._options import run_closure
from rushlight.optim.optimizer import Optimizer

Group = dict[str, Any]
State = dict[str, Any]


class FusedOptimizer(Optimizer):
    """Base of the optimizers whose step is one op over all parameters of a group.

    A subclass defines _start and _update.
    """

    # Names of the numbers in a parameter's state, beside its count of steps.
    _numbers: tuple[str, ...] = ()
    # Whether count and numbers must be equal among the parameters that one op updates.
    _by_count = True
    # Whether a step is proportional to lr, so that its derivative by lr is the step over lr.
    _proportional_to_lr = True
    # Whether _update_in_ops is defined.
    _has_ops = False
    # What the refusal of sparse gradients advises.
    _advice = ""
    # What a GradScaler wants gradients to be divided by, and whether it found infinite ones.
    _scaling: Tensor | None = None
    # The states that a step has begun to count, when it may have to be taken back.
    _counted: list[State] | None = None
    found_inf: Tensor  # a GradScaler's, while it takes a step
    # Whether _update can compute what depends on the count of steps on the GPU, or nothing does.
    _can_be_captured = False
    # The counts on the GPU, by the id of the group; which a graph changes; that of this step.
    _counts: dict[int, Tensor] | None = None
    _replayed: dict[int, tuple[Tensor, list[State]]] | None = None
    _count: Tensor | None = None
    # The found_inf of the last step on its way to the host, the event of its arrival, and _counted.
    _unsettled: tuple[Tensor, Any, list[State]] | None = None

    @property
    def _step_supports_amp_scaling(self) -> bool:
        return bool(self.defaults.get("fused"))

    def _start(self, param: Tensor, group: Group) -> State:
        """Returns the state of a parameter that has taken no step."""
        raise NotImplementedError

    def _update(
        self, group: Group, params: list[Tensor], grads: list[Tensor], states: list[State]
    ) -> None:
        """Updates parameters whose states are alike; their steps are counted already."""
        raise NotImplementedError

    def _update_in_ops(self, group: Group, param: Tensor, grad: Tensor) -> None:
        """Takes the step of one parameter in ops that have gradients of all options."""
        raise NotImplementedError

    def _take_back(self, counted: list[State]) -> None:
        """Brings back states that were counted for a step that changed nothing."""
        for state in counted:
            state["step"] -= 1

    def _settle(self) -> None:
        """Takes the last step back if it was left out; see Note [Steps left out on the GPU]."""
        if self._unsettled is not None:
            found_inf, arrival, counted = self._unsettled
            self._unsettled = None
            arrival.synchronize()
            if found_inf.item():
                self._take_back(counted)
        if self._replayed and not rl.cuda.is_current_stream_capturing():
            for count, states in self._replayed.values():
                number = int(count.item())
                for state in states:
                    state["step"].fill_(number)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        self._settle()
        loss = run_closure(closure)
        if hasattr(self, "found_inf"):
            self._step_scaled(self.found_inf, getattr(self, "grad_scale", None))
        else:
            self._step_groups()
        return loss

    def _step_scaled(self, found_inf: Tensor, grad_scale: Tensor | None) -> None:
        """Takes a step for a GradScaler, which may be left out."""
        if not found_inf.is_cuda and found_inf.item():
            return
        scale = rl.ones_like(found_inf) if grad_scale is None else grad_scale
        self._scaling = rl.stack((scale, found_inf))
        self._counted = []
        try:
            self._step_groups()
            if found_inf.is_cuda and not rl.cuda.is_current_stream_capturing():
                with rl.cuda.device(found_inf.device):
                    copy = rl.empty((), dtype=found_inf.dtype).pin_memory()
                    copy.copy_(found_inf, non_blocking=True)
                    arrival = rl.cuda.current_stream().record_event()
                self._unsettled = copy, arrival, self._counted
        finally:
            self._scaling = self._counted = None

    def _step_groups(self) -> None:
        for group in self.param_groups:
            params = [param for param in group["params"] if param.grad is not None]
            grads = [param.grad for param in params]
            self._step_with(group, params, grads)

    def _step_with(self, group: Group, params: list[Tensor], grads: list[Tensor]) -> None:
        """Takes the step of parameters of a group along some gradients."""
        if True in [grad.is_sparse for grad in grads]:
            params, grads = self._without_sparse(group, params, grads)
        if not params:
            return
        if group.get("fused") and params[0].is_meta:
            raise RuntimeError(
                f"{type(self).__name__}: `fused=True` requires all the params to be floating "
                "point Tensors of supported devices, but they are on meta. Give the module "
                "memory by to_empty."
            )
        if group.get("differentiable"):
            with rl.enable_grad():
                self._step_recorded(group, params, grads)
        else:
            self._step_dense(group, params, grads)

    def _step_recorded(self, group: Group, params: list[Tensor], grads: list[Tensor]) -> None:
        """Takes a step that backward goes through: into options, too, if the class has ops for it,
        and else into lr where a step is proportional to it."""
        lr, name = group["lr"], type(self).__name__
        in_ops = self._has_ops and not any(param.is_complex() for param in params)
        if in_ops and self._has_recorded_numbers(group, params):
            for param, grad in zip(params, grads, strict=True):
                self._update_in_ops(group, param, grad)
            return
        if not (self._proportional_to_lr and isinstance(lr, Tensor) and lr.requires_grad):
            _refuse_recorded_options(name, group)
            self._step_dense(group, params, grads)
            return
        rate = lr.detach()
        _refuse_recorded_options(name, {**group, "lr": rate})
        if not rate.item():
            raise ValueError(
                f"{name}: lr requires grad, but is 0. A step is differentiated in lr as the step "
                "over lr. Start from a small number instead."
            )
        before = [param.clone() for param in params]
        self._step_dense(group, params, grads)
        nothing = ((lr - rate) / rate).reshape(())  # 0, with a derivative
        for param, old in zip(params, before, strict=True):
            param.add_((param - old) * nothing)

    def _has_recorded_numbers(self, group: Group, params: list[Tensor]) -> bool:
        """Whether an option requires grad, or a number in the state."""
        numbers = [
            self.state.get(param, {}).get(name) for param in params for name in self._numbers
        ]
        return any(tensor.requires_grad for tensor in (*_options(group), *_tensors(numbers)))

    def _step_dense(self, group: Group, params: list[Tensor], grads: list[Tensor]) -> None:
        if params[0].is_cuda and rl.cuda.is_current_stream_capturing():
            self._step_captured(group, params, grads)
            return
        states, steps = self._counted_states(group, params)
        if group.get("capturable") and params[0].is_cuda:
            self._count_on_gpu(group, params[0].device, steps)
        keys: list[Any] = steps
        if self._numbers:
            numbers = itemgetter(*self._numbers)
            keys = [(step, numbers(state)) for step, state in zip(steps, states, strict=True)]
        different = set(keys)
        if not self._by_count or len(different) == 1:
            self._update(group, params, grads, states)
            return
        # Parameters that once had no gradient lag behind: they are updated with their own step.
        for key in different:
            chosen = [i for i, other in enumerate(keys) if other == key]
            self._update(
                group,
                [params[i] for i in chosen],
                [grads[i] for i in chosen],
                [states[i] for i in chosen],
            )

    def _count_on_gpu(self, group: Group, device: rl.device, steps: list[float]) -> None:
        """Keeps the count of a group's steps on the GPU; see Note [Steps in a CUDA graph]."""
        counts = self._counts = self._counts or {}
        numbers = set(steps)
        if len(numbers) > 1:
            counts.pop(id(group), None)
            return
        count = counts.get(id(group))
        if count is None:
            count = counts[id(group)] = rl.zeros((), dtype=rl.float64, device=device)
        count.fill_(numbers.pop())

    def _step_captured(self, group: Group, params: list[Tensor], grads: list[Tensor]) -> None:
        """Takes a step that a graph will repeat; see Note [Steps in a CUDA graph]."""
        name = type(self).__name__
        if not group.get("capturable"):
            raise RuntimeError(
                f"Attempting CUDA graph capture of step() for an instance of {name} but "
                f"param_groups' capturable is False. Make it with {name}(..., capturable=True)."
            )
        if not self._can_be_captured:
            raise NotImplementedError(
                f"{name}.step: its numbers depend on the count of steps, which a CUDA graph would "
                "repeat. Take the step outside of the graph, or use Adam or SGD."
            )
        states = [self.state.get(param, {}) for param in params]
        count = (self._counts or {}).get(id(group))
        if count is None or not all(states):
            raise RuntimeError(
                f"{name}.step: a capture cannot begin the state of a parameter, nor count steps of "
                "which parameters took different numbers. Take a step of all parameters before."
            )
        count.add_(1 if self._scaling is None else 1 - self._scaling[1])
        self._replayed = self._replayed or {}
        self._replayed[id(group)] = count, states
        self._count = count
        try:
            self._update(group, params, grads, states)
        finally:
            self._count = None

    def _counted_states(
        self, group: Group, params: list[Tensor]
    ) -> tuple[list[State], list[float]]:
        """Counts a step of the parameters and returns their states and counts."""
        all_states = self.state
        states = [all_states[param] for param in params]
        for i, state in enumerate(states):
            if not state:
                states[i] = all_states[params[i]] = self._start(params[i], group)
        if self._counted is not None:
            self._counted += states
        return states, _C._count_steps(states)

    def _without_sparse(
        self, group: Group, params: list[Tensor], grads: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Updates the parameters with sparse gradients and returns the others."""
        if self._scaling is not None:
            raise RuntimeError(
                f"{type(self).__name__}: `fused` does not support sparse gradients under "
                "GradScaler. Leave out fused=True."
            )
        dense: tuple[list[Tensor], list[Tensor]] = ([], [])
        with rl.no_grad():
            for param, grad in zip(params, grads, strict=True):
                if grad.is_sparse:
                    self._update_sparse(group, param, -grad if group["maximize"] else grad)
                else:
                    dense[0].append(param)
                    dense[1].append(grad)
        return dense

    def _update_sparse(self, group: Group, param: Tensor, grad: Tensor) -> None:
        """Updates a parameter along a sparse gradient; most algorithms have no such update."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients{self._advice}")

    def state_dict(self) -> dict[str, Any]:
        self._settle()
        return super().state_dict()

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return super().__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._unsettled = self._counts = self._replayed = None
        super().__setstate__(state)
        for param_state in self.state.values():
            if not isinstance(param_state, dict):  # what a program keeps under a name of its own
                continue
            if "step" in param_state:  # a number in old files; not shared with where it was loaded
                param_state["step"] = no_steps().fill_(float(param_state["step"]))
            for name in self._numbers:
                if name in param_state:
                    param_state[name] = float(param_state[name])

    def _exported(self, state: State) -> State:
        if not self._numbers or not isinstance(state, dict):
            return state
        return {
            name: rl.tensor(float(value), dtype=number_dtype()) if name in self._numbers else value
            for name, value in state.items()
        }


def entries(states: list[State], name: str, used: bool = True) -> list[Tensor]:
    """Returns one entry of all states; none of them if it is not used."""
    return [state[name] for state in states] if used else []


def decayed(group: Group, param: Tensor, grad: Tensor) -> Tensor:
    """Returns the gradient by which a step in ops goes down, with the decay of the weight.

    Where the decay is decoupled, it shrinks the parameter here.
    """
    grad = -grad if group["maximize"] else grad
    if group.get("decoupled_weight_decay"):
        param.mul_(1 - group["lr"] * group["weight_decay"])
        return grad
    return grad + group["weight_decay"] * param.clone()  # the step changes the parameter


def moments(group: Group, state: State, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the running means of the gradient and of its square, in ops, and keeps them."""
    beta1, beta2 = group["betas"]
    mean = beta1 * state["exp_avg"] + (1 - beta1) * grad
    square = beta2 * state["exp_avg_sq"] + (1 - beta2) * grad * grad
    state["exp_avg"], state["exp_avg_sq"] = mean, square
    return mean, square


def no_steps() -> Tensor:
    """Returns the count of steps that a parameter begins with."""
    return rl.tensor(0.0, dtype=number_dtype(), device="cpu")


def number_dtype() -> rl.dtype:
    """Returns the dtype that numbers in the state have in state_dict."""
    return rl.float64 if rl.get_default_dtype() == rl.float64 else rl.float32


def stored(number: float) -> float:
    """Returns a number as state_dict would keep it, so that saving it changes nothing."""
    return rl.tensor(number, dtype=number_dtype()).item()


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    return [value for value in values if isinstance(value, Tensor)]


def _options(group: Group) -> list[Tensor]:
    """Returns the options of a group that are tensors, those in pairs too."""
    found = []
    for name, value in group.items():
        if name != "params":
            found += _tensors(value if isinstance(value, tuple | list) else (value,))
    return found


def _refuse_recorded_options(optimizer: str, group: Group) -> None:
    for name, value in group.items():
        if any(tensor.requires_grad for tensor in _options({name: value})):
            raise NotImplementedError(
                f"{optimizer}: {name} requires grad. A differentiable step is differentiable in "
                "parameters, gradients, state and mostly lr, not in its other options. Detach it."
            )
