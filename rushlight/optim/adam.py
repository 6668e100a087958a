"""Adam.

Owns the options and the state of Adam; the arithmetic is one fused op over a whole group.
Invariant: the step count of a parameter is a Python int in `state`, and a float32 scalar tensor in
state_dict, as PyTorch has it.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.optim.optimizer import (
    Optimizer,
    check_at_least_zero,
    check_implementation,
    check_lr,
    params_with_grad,
    run_closure,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight.optim.optimizer import Params


class Adam(Optimizer):
    """Adam: gradient descent on running means of the gradient and of its square.

    For a parameter p with gradient g (-g with maximize), in step t = 1, 2, ...:

        g     = g + weight_decay * p              with decoupled_weight_decay instead:
                                                  p = p - lr * weight_decay * p
        m     = beta1 * m + (1 - beta1) * g
        v     = beta2 * v + (1 - beta2) * g**2
        m_hat = m / (1 - beta1**t)
        v_hat = v / (1 - beta2**t)                with amsgrad: max(v so far) / (1 - beta2**t)
        p     = p - lr * m_hat / (sqrt(v_hat) + eps)

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 1; amsgrad:
    Reddi et al., On the convergence of Adam and beyond (2018).

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        betas: decay of the means of the gradient and of its square.
        eps: keeps the denominator away from zero.
        weight_decay: factor of the L2 penalty.
        amsgrad: divide by the largest mean square so far.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        maximize: go up the gradient.
        capturable: as foreach; any step can be part of a graph.
        differentiable: only False is available.
        fused: as foreach.
        decoupled_weight_decay: shrink the parameter itself, which makes it AdamW.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adam([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.5, 0.5]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        name = type(self).__name__
        check_lr(name, lr)
        check_at_least_zero(name, epsilon=eps, weight_decay=weight_decay)
        check_implementation(name, foreach, fused, differentiable)
        for i, beta in enumerate(betas):
            if not 0 <= beta < 1:
                raise ValueError(
                    f"{name}: Invalid beta parameter at index {i}: {beta}. "
                    "It must be at least 0 and less than 1."
                )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for param_state in self.state.values():
            if "step" in param_state:
                param_state["step"] = int(param_state["step"])

    def state_dict(self) -> dict[str, Any]:
        result = super().state_dict()
        result["state"] = {
            key: {**value, "step": rl.tensor(float(value["step"]), dtype=rl.float32)}
            if "step" in value
            else value
            for key, value in result["state"].items()
        }
        return result

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = run_closure(closure)
        for group in self.param_groups:
            amsgrad = group["amsgrad"]
            # Parameters that once had no gradient lag behind: they are updated with their own step.
            by_step: dict[int, tuple[list[Tensor], ...]] = {}
            for param, grad in zip(*params_with_grad(group), strict=True):
                state = self.state[param] or self._start(param, amsgrad)
                step = state["step"] = state["step"] + 1
                if step not in by_step:
                    by_step[step] = ([], [], [], [], [])
                params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs = by_step[step]
                params.append(param)
                grads.append(grad)
                exp_avgs.append(state["exp_avg"])
                exp_avg_sqs.append(state["exp_avg_sq"])
                if amsgrad:
                    max_exp_avg_sqs.append(state["max_exp_avg_sq"])
            beta1, beta2 = group["betas"]
            for step, lists in by_step.items():
                _C._fused_adam_(
                    *lists,
                    float(group["lr"]),
                    float(beta1),
                    float(beta2),
                    float(group["eps"]),
                    float(group["weight_decay"]),
                    group["decoupled_weight_decay"],
                    amsgrad,
                    group["maximize"],
                    float(step),
                )
        return loss

    def _start(self, param: Tensor, amsgrad: bool) -> dict[str, Any]:
        state = self.state[param]
        state["step"] = 0
        state["exp_avg"] = rl.zeros_like(param)
        state["exp_avg_sq"] = rl.zeros_like(param)
        if amsgrad:
            state["max_exp_avg_sq"] = rl.zeros_like(param)
        return state
