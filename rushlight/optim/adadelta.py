"""Adadelta.

Owns the options and the state of Adadelta; the arithmetic is one fused op over a whole group.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, _later
from rushlight.optim._fused import FusedOptimizer, entries, no_steps
from rushlight.optim._options import check_at_least_zero, check_implementation, check_lr
from rushlight.optim.optimizer import ParamsT


class Adadelta(FusedOptimizer):
    """Adadelta: steps in the proportion of recent changes to recent gradients.

    For a parameter p with gradient g (-g with maximize):

        g      = g + weight_decay * p
        v      = rho * v + (1 - rho) * g**2
        change = sqrt(u + eps) / sqrt(v + eps) * g
        u      = rho * u + (1 - rho) * change**2
        p      = p - lr * change

    Source: Zeiler, ADADELTA: an adaptive learning rate method (2012), algorithm 1.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: factor of the change.
        rho: decay of the running means of squared gradients and squared changes.
        eps: starts the changes, and keeps the denominator away from zero.
        weight_decay: factor of the L2 penalty.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        capturable: count the steps on the GPU, so that a CUDA graph can hold them.
        maximize: go up the gradient.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adadelta([weight], rho=0.75, eps=1.0)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.105573, 0.105573]
    """

    _by_count = False
    _can_be_captured = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("Adadelta", lr)
        if not 0 <= rho <= 1:
            raise ValueError(f"Adadelta: Invalid rho value: {rho}. It must be in [0, 1].")
        check_at_least_zero("Adadelta", epsilon=eps, weight_decay=weight_decay)
        check_implementation("Adadelta", foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": no_steps(),
            "square_avg": rl.zeros_like(param),
            "acc_delta": rl.zeros_like(param),
        }

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        _C._fused_adadelta_(
            params,
            grads,
            entries(states, "square_avg"),
            entries(states, "acc_delta"),
            float(group["lr"]),
            group["rho"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
            group["differentiable"],
        )


__getattr__ = _later.imports(__name__, (), {"_functional": "adadelta"}, "rushlight.optim")
