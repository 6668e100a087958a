"""RMSprop.

Owns the options and the state of RMSprop; the arithmetic is one fused op over a whole group.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, _later
from rushlight.optim._fused import FusedOptimizer, entries, no_steps
from rushlight.optim._options import check_at_least_zero, check_implementation, check_lr
from rushlight.optim.optimizer import ParamsT


class RMSprop(FusedOptimizer):
    """RMSprop: gradient descent divided by the root of a running mean of the squared gradient.

    For a parameter p with gradient g (-g with maximize):

        g   = g + weight_decay * p
        v   = alpha * v + (1 - alpha) * g**2
        m   = alpha * m + (1 - alpha) * g         with centered, else 0
        buf = momentum * buf + g / (sqrt(v - m**2) + eps)
        p   = p - lr * buf

    Source: Tieleman and Hinton, Lecture 6.5 of Neural networks for machine learning (2012);
    centered: Graves, Generating sequences with recurrent neural networks (2013).

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        alpha: decay of the running means.
        eps: keeps the denominator away from zero.
        weight_decay: factor of the L2 penalty.
        momentum: share of the buffer that a step keeps; 0 keeps no buffer.
        centered: divide by an estimate of the deviation, not of the root mean square.
        capturable: count the steps on the GPU, so that a CUDA graph can hold them.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        maximize: go up the gradient.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.RMSprop([weight], lr=0.1, alpha=0.75, eps=0)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.8, 0.8]
    """

    _by_count = False
    _can_be_captured = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("RMSprop", lr)
        check_at_least_zero(
            "RMSprop", epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        check_implementation("RMSprop", foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": no_steps(), "square_avg": rl.zeros_like(param)}
        if group["momentum"]:
            state["momentum_buffer"] = rl.zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = rl.zeros_like(param)
        return state

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        _C._fused_rmsprop_(
            params,
            grads,
            entries(states, "square_avg"),
            entries(states, "momentum_buffer", group["momentum"] != 0),
            entries(states, "grad_avg", group["centered"]),
            float(group["lr"]),
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            group["momentum"],
            group["centered"],
            group["maximize"],
            group["differentiable"],
        )


__getattr__ = _later.imports(__name__, (), {"_functional": "rmsprop"}, "rushlight.optim")
