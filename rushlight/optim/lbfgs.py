"""L-BFGS.

Owns the quasi-Newton method and its history; the line search is _line_search.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim._line_search import Point, strong_wolfe
from rushlight.optim._line_search import _cubic_interpolate as _cubic_interpolate
from rushlight.optim._line_search import _strong_wolfe as _strong_wolfe
from rushlight.optim._options import check_lr, run_closure
from rushlight.optim.optimizer import Optimizer, ParamsT

_LEAST_CURVATURE = 1e-10  # of a step that enters the history
_LEAST_DIVISOR = 1e-300  # instead of 0, far below any gradient


class LBFGS(Optimizer):
    """L-BFGS: Newton's method with curvature from the last steps instead of second derivatives.

    A step runs up to max_iter iterations, each of which evaluates the closure at least once. All
    parameters are one vector; there is one group, and it takes history_size + 1 times their memory.

    Source: Nocedal, Updating quasi-Newton matrices with limited storage (1980), the two loops of
    Nocedal and Wright, Numerical optimization (2006), algorithm 7.4.

    Args:
        params: tensors or (name, tensor) pairs.
        lr: length of a step, before the line search.
        max_iter: most iterations of a step.
        max_eval: evaluations after which a step ends; None for 1.25 * max_iter.
        tolerance_grad: largest element of the gradient at which to stop.
        tolerance_change: change of parameters or loss at which to stop.
        history_size: number of remembered steps.
        line_search_fn: None or "strong_wolfe".
        maximize: go up the gradient.

    Example:
        >>> x = torch.nn.Parameter(torch.zeros(2))
        >>> optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((x - torch.tensor([1.0, 2.0])) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item()
        5.0
        >>> [round(value, 4) for value in x.tolist()]
        [1.0, 2.0]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        check_lr("LBFGS", lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups), but got "
                f"{len(self.param_groups)} groups"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if closure is None:
            raise TypeError("LBFGS.step: closure is missing. L-BFGS evaluates the loss anew.")
        (group,) = self.param_groups
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError(
                f"LBFGS: line_search_fn is {group['line_search_fn']!r}, but only 'strong_wolfe' "
                "is supported"
            )
        with rl.no_grad():
            return self._step(group, closure)

    def _step(self, group: dict[str, Any], closure: Callable[[], Any]) -> Any:
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        original_loss = run_closure(closure)
        loss, grad = self._goal(original_loss)
        state["func_evals"] += 1
        evaluations = 1
        least_change = group["tolerance_change"]
        if _largest(grad) <= group["tolerance_grad"]:
            return original_loss

        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            t = self._turn(state, group, grad)
            direction = state["d"]
            state.update(prev_flat_grad=grad.clone(), prev_loss=loss, t=t)
            slope = grad.dot(direction).item()
            if slope > -least_change:
                break

            is_last = iteration == group["max_iter"]
            if group["line_search_fn"] is None:
                self._move(direction, t)
                # The loss at the end is the first that the next step computes.
                count = 0 if is_last else 1
                if not is_last:
                    loss, grad = self._goal(run_closure(closure))
            else:
                point, count = strong_wolfe(
                    self._line(closure, direction),
                    Point(0.0, loss, grad, slope),
                    t,
                    least_change / max(_largest(direction), _LEAST_DIVISOR),
                    most=group["max_eval"] - evaluations,
                )
                t, loss, grad = point.t, point.loss, point.grad
                self._move(direction, t)
            state["t"] = t
            evaluations += count
            state["func_evals"] += count
            if (
                is_last
                or evaluations >= group["max_eval"]
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(direction * t) <= least_change
                or abs(loss - state["prev_loss"]) < least_change
            ):
                break
        return original_loss

    def _turn(self, state: dict[str, Any], group: dict[str, Any], grad: Tensor) -> float:
        """Puts the next direction into the state, and returns how far to go along it at first."""
        lr = float(group["lr"])
        if state["n_iter"] == 1:
            state.update(d=-grad, old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return min(1.0, 1.0 / max(grad.abs().sum().item(), _LEAST_DIVISOR)) * lr
        _remember(state, grad, group["history_size"])
        state["d"] = _direction(state, grad, group["history_size"])
        return lr

    def _line(self, closure: Callable[[], Any], direction: Tensor) -> Callable[[float], Point]:
        """Returns the function that evaluates the loss along a direction from here."""
        params = self.param_groups[0]["params"]
        here = [param.clone() for param in params]

        def evaluate(t: float) -> Point:
            self._move(direction, t)
            loss, grad = self._goal(run_closure(closure))
            for param, value in zip(params, here, strict=True):
                param.copy_(value)
            return Point(t, loss, grad, grad.dot(direction).item())

        return evaluate

    def _goal(self, loss: Any) -> tuple[float, Tensor]:
        """Returns what a step makes small, the loss or minus the loss, and its gradient."""
        is_negative = self.param_groups[0].get("maximize", False)  # older checkpoints have none
        grad = self._flat_grad()
        return (-float(loss), grad.neg_()) if is_negative else (float(loss), grad)

    def _flat_grad(self) -> Tensor:
        """Returns the gradients of all parameters as one new vector."""
        parts = []
        for param in self.param_groups[0]["params"]:
            grad = rl.zeros_like(param) if param.grad is None else param.grad
            grad = grad.to_dense() if grad.is_sparse else grad
            parts.append((rl.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        return rl.cat(parts)

    def _move(self, direction: Tensor, t: float) -> None:
        """Adds t times the parts of a vector to the parameters."""
        offset = 0
        for param in self.param_groups[0]["params"]:
            real = rl.view_as_real(param) if param.is_complex() else param
            real.add_(direction[offset : offset + real.numel()].view(real.shape), alpha=t)
            offset += real.numel()


def _largest(vector: Tensor) -> float:
    return vector.abs().max().item() if vector.numel() else 0.0


def _remember(state: dict[str, Any], grad: Tensor, size: int) -> None:
    """Adds the last step and what it did to the gradient to the history, if it curves upwards."""
    change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = change.dot(step).item()
    if curvature <= _LEAST_CURVATURE:
        return
    if len(state["old_dirs"]) == size:
        for name in ("old_dirs", "old_stps", "ro"):
            state[name].pop(0)
    state["old_dirs"].append(change)
    state["old_stps"].append(step)
    state["ro"].append(1.0 / curvature)
    state["H_diag"] = curvature / change.dot(change).item()


def _direction(state: dict[str, Any], grad: Tensor, size: int) -> Tensor:
    """Returns minus the gradient times the inverse Hessian that the history stands for."""
    history = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
    factors = state.setdefault("al", [None] * size)
    direction = -grad
    for i in range(len(history) - 1, -1, -1):
        change, step, ro = history[i]
        factors[i] = (step.dot(direction) * ro).item()
        direction.add_(change, alpha=-factors[i])
    direction.mul_(state["H_diag"])
    for i, (change, step, ro) in enumerate(history):
        direction.add_(step, alpha=factors[i] - (change.dot(direction) * ro).item())
    return direction
