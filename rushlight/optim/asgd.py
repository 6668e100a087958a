"""Averaged stochastic gradient descent.

Owns the options and the state of ASGD; the arithmetic is one fused op over a whole group.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, _later
from rushlight.optim._fused import FusedOptimizer, entries, no_steps, stored
from rushlight.optim._options import check_at_least_zero, check_implementation, check_lr
from rushlight.optim.optimizer import ParamsT


class ASGD(FusedOptimizer):
    """Averaged stochastic gradient descent: SGD whose state holds the mean of the parameters.

    For a parameter p with gradient g (-g with maximize), in step t = 1, 2, ...:

        g   = g + weight_decay * p
        p   = (1 - lambd * eta) * p - eta * g
        ax  = ax + mu * (p - ax)                  in state[p]["ax"]; p itself while mu is 1
        eta = lr / (1 + lambd * lr * t)**alpha    of the next step; lr in the first
        mu  = 1 / max(1, t - t0)                  likewise; 1 in the first

    Source: Polyak and Juditsky, Acceleration of stochastic approximation by averaging (1992), with
    the schedule of Bottou's SGD code.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        lambd: factor of the shrinking term.
        alpha: power of the decay of eta.
        t0: step from which on parameters are averaged.
        weight_decay: factor of the L2 penalty.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        maximize: go up the gradient.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.
        capturable: no effect; a step cannot be captured into a CUDA graph.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.ASGD([weight], lr=0.5, lambd=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.25, 0.25]
    """

    _numbers = ("eta", "mu")
    _proportional_to_lr = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr("ASGD", lr)
        check_at_least_zero("ASGD", weight_decay=weight_decay)
        check_implementation("ASGD", foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        eta = stored(float(group["lr"]))
        return {"step": no_steps(), "eta": eta, "mu": 1.0, "ax": rl.zeros_like(param)}

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        first, lr, lambd = states[0], float(group["lr"]), group["lambd"]
        _C._fused_asgd_(
            params,
            grads,
            entries(states, "ax"),
            first["eta"],
            lambd,
            group["weight_decay"],
            first["mu"],
            group["maximize"],
            group["differentiable"],
        )
        step = float(first["step"])
        eta = stored(lr / (1 + lambd * lr * step) ** group["alpha"])
        mu = stored(1 / max(1, step - group["t0"]))
        for state in states:
            state["eta"], state["mu"] = eta, mu


__getattr__ = _later.imports(__name__, (), {"_functional": "asgd"}, "rushlight.optim")
