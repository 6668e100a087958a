"""Adamax.

Owns the options and the state of Adamax; the arithmetic is one fused op over a whole group.
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


class Adamax(FusedOptimizer):
    """Adamax: Adam with the largest recent gradient in place of the root mean square.

    For a parameter p with gradient g (-g with maximize), in step t = 1, 2, ...:

        g = g + weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        u = max(beta2 * u, abs(g) + eps)
        p = p - lr / (1 - beta1**t) * m / u

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 2.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        betas: decay of the mean of the gradient and of its largest magnitude.
        eps: keeps the denominator away from zero.
        weight_decay: factor of the L2 penalty.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        maximize: go up the gradient.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.
        capturable: no effect; a step cannot be captured into a CUDA graph.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adamax([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.5, 0.5]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr("Adamax", lr)
        check_at_least_zero("Adamax", epsilon=eps, weight_decay=weight_decay)
        check_betas("Adamax", betas)
        check_implementation("Adamax", foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": no_steps(),
            "exp_avg": rl.zeros_like(param),
            "exp_inf": rl.zeros_like(param),
        }

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        beta1, beta2 = group["betas"]
        _C._fused_adamax_(
            params,
            grads,
            entries(states, "exp_avg"),
            entries(states, "exp_inf"),
            float(group["lr"]),
            float(beta1),
            float(beta2),
            group["eps"],
            group["weight_decay"],
            group["maximize"],
            float(states[0]["step"]),
            group["differentiable"],
        )


__getattr__ = _later.imports(__name__, (), {"_functional": "adamax"}, "rushlight.optim")
