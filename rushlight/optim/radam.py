"""RAdam.

Owns the options and the state of RAdam; the arithmetic is one fused op over a whole group.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, _later
from rushlight.optim._fused import FusedOptimizer, entries, no_steps
from rushlight.optim._options import (
    check_at_least_zero,
    check_betas,
    check_implementation,
    check_lr,
)
from rushlight.optim.optimizer import ParamsT


class RAdam(FusedOptimizer):
    """RAdam: Adam that trusts its mean square only when it averages enough gradients.

    For a parameter p with gradient g (-g with maximize), in step t = 1, 2, ...:

        g     = g + weight_decay * p              with decoupled_weight_decay instead:
                                                  p = p - lr * weight_decay * p
        m     = beta1 * m + (1 - beta1) * g
        v     = beta2 * v + (1 - beta2) * g**2
        limit = 2 / (1 - beta2) - 1
        rho   = limit - 2 * t * beta2**t / (1 - beta2**t)
        p     = p - lr * m / (1 - beta1**t) * scale

    where scale is 1 as long as rho <= 5, and then
    sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)) * sqrt(1 - beta2**t)
    / (sqrt(v) + eps).

    Source: Liu et al., On the variance of the adaptive learning rate and beyond (2020),
    algorithm 2.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        betas: decay of the means of the gradient and of its square.
        eps: keeps the denominator away from zero.
        weight_decay: factor of the L2 penalty.
        decoupled_weight_decay: shrink the parameter itself, as AdamW does.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        maximize: go up the gradient.
        capturable: no effect; a step cannot be captured into a CUDA graph.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.RAdam([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.5, 0.5]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("RAdam", lr)
        check_at_least_zero("RAdam", epsilon=eps, weight_decay=weight_decay)
        check_betas("RAdam", betas)
        check_implementation("RAdam", foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": no_steps(),
            "exp_avg": rl.zeros_like(param),
            "exp_avg_sq": rl.zeros_like(param),
        }

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        beta1, beta2 = group["betas"]
        _C._fused_radam_(
            params,
            grads,
            entries(states, "exp_avg"),
            entries(states, "exp_avg_sq"),
            float(group["lr"]),
            float(beta1),
            float(beta2),
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
            float(states[0]["step"]),
            group["differentiable"],
        )


__getattr__ = _later.imports(__name__, (), {"_functional": "radam"}, "rushlight.optim")
