"""AdamW.

Owns the defaults that make Adam AdamW, nothing else.
"""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight.optim.adam import Adam, adam
from rushlight.optim.optimizer import ParamsT


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters instead of entering the gradient.

    Before Adam's update, p = p - lr * weight_decay * p.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019), algorithm 2, with
    the schedule multiplier in lr, as in PyTorch.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        betas: decay of the means of the gradient and of its square.
        eps: keeps the denominator away from zero.
        weight_decay: share of a parameter, times lr, that each step takes away.
        amsgrad: divide by the largest mean square so far.
        maximize: go up the gradient.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        capturable: count the steps on the GPU, so that a CUDA graph can hold them.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.
        fused: as foreach; with it, GradScaler does not wait for the GPU to learn whether it leaves
            the step out.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.AdamW([weight], lr=0.5, weight_decay=0.1)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.45, 0.45]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # also where Adam's state was loaded


def adamw(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Takes a step of AdamW with state that the program keeps, in place; see adam.adam."""
    adam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        foreach,
        capturable,
        differentiable,
        fused,
        grad_scale,
        found_inf,
        has_complex,
        decoupled_weight_decay=True,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )
