"""Rprop.

Owns the options and the state of Rprop; the arithmetic is one fused op over a whole group.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, _later
from rushlight.optim._fused import FusedOptimizer, entries, no_steps
from rushlight.optim._options import check_implementation, check_lr
from rushlight.optim.optimizer import ParamsT


class Rprop(FusedOptimizer):
    """Resilient backpropagation: steps that depend on the signs of gradients only.

    For each element of a parameter p with gradient g (-g with maximize), of the same sign as the
    one before or not:

        size = size * etas[1]                     same sign; at most step_sizes[1]
        size = size * etas[0] and g = 0           other sign; at least step_sizes[0]
        p    = p - size * sign(g)

    Source: Riedmiller and Braun, A direct adaptive method for faster backpropagation learning
    (1993). It is for gradients of the whole data set.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: size of the first step.
        etas: factors of the size where the sign changes and where it stays.
        step_sizes: least and largest size.
        capturable: count the steps on the GPU, so that a CUDA graph can hold them.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        maximize: go up the gradient.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Rprop([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.5, 0.5]
    """

    _by_count = False
    _can_be_captured = True
    _proportional_to_lr = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("Rprop", lr)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(
                f"Rprop: Invalid eta values: {etas[0]}, {etas[1]}. "
                "The first must be between 0 and 1, the second greater than 1."
            )
        check_implementation("Rprop", foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        lr = float(group["lr"])
        size = complex(lr, lr) if param.is_complex() else lr
        return {
            "step": no_steps(),
            "prev": rl.zeros_like(param),
            "step_size": rl.full_like(param, size),
        }

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        eta_minus, eta_plus = group["etas"]
        step_min, step_max = group["step_sizes"]
        _C._fused_rprop_(
            params,
            grads,
            entries(states, "prev"),
            entries(states, "step_size"),
            eta_minus,
            eta_plus,
            step_min,
            step_max,
            group["maximize"],
            group["differentiable"],
        )


__getattr__ = _later.imports(__name__, (), {"_functional": "rprop"}, "rushlight.optim")
