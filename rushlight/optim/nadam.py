"""NAdam.

Owns the options and the state of NAdam; the arithmetic is one fused op over a whole group.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, _later
from rushlight.optim._fused import FusedOptimizer, decayed, entries, moments, no_steps, stored
from rushlight.optim._options import (
    check_at_least_zero,
    check_betas,
    check_implementation,
    check_lr,
)
from rushlight.optim.optimizer import ParamsT


class NAdam(FusedOptimizer):
    """NAdam: Adam with Nesterov's look ahead, on a schedule of momentum.

    For a parameter p with gradient g (-g with maximize), in step t = 1, 2, ...:

        g    = g + weight_decay * p               with decoupled_weight_decay instead:
                                                  p = p - lr * weight_decay * p
        mu_t = beta1 * (1 - 0.96**(t * momentum_decay) / 2)
        m    = beta1 * m + (1 - beta1) * g
        v    = beta2 * v + (1 - beta2) * g**2
        look = mu_{t+1} * m / (1 - mu_1 * ... * mu_{t+1}) + (1 - mu_t) * g / (1 - mu_1 * ... * mu_t)
        p    = p - lr * look / (sqrt(v / (1 - beta2**t)) + eps)

    Source: Dozat, Incorporating Nesterov momentum into Adam (2016).

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        betas: decay of the means of the gradient and of its square.
        eps: keeps the denominator away from zero.
        weight_decay: factor of the L2 penalty.
        momentum_decay: how fast mu_t comes near beta1.
        decoupled_weight_decay: shrink the parameter itself, as AdamW does.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        maximize: go up the gradient.
        capturable: no effect; a step cannot be captured into a CUDA graph.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.NAdam([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.471774, 0.471774]
    """

    _numbers = ("mu_product",)
    _has_ops = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("NAdam", lr)
        check_at_least_zero(
            "NAdam", epsilon=eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        check_betas("NAdam", betas)
        check_implementation("NAdam", foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": no_steps(),
            "mu_product": 1.0,
            "exp_avg": rl.zeros_like(param),
            "exp_avg_sq": rl.zeros_like(param),
        }

    def _mus(self, group: dict[str, Any], step: float) -> tuple[Any, Any]:
        """Returns the momentum of a step and of the next one."""
        beta1, decay = group["betas"][0], group["momentum_decay"]
        return tuple(beta1 * (1 - 0.5 * 0.96 ** (count * decay)) for count in (step, step + 1))

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        beta1, beta2 = group["betas"]
        step = float(states[0]["step"])
        mu, mu_next = map(float, self._mus(group, step))
        mu_product = stored(states[0]["mu_product"] * stored(mu))
        for state in states:
            state["mu_product"] = mu_product
        _C._fused_nadam_(
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
            mu,
            mu_next,
            mu_product,
            step,
            group["differentiable"],
        )

    def _update_in_ops(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        (state,), (step,) = self._counted_states(group, [param])
        lr, (_, beta2) = group["lr"], group["betas"]
        grad = decayed(group, param, grad)
        mean, square = moments(group, state, grad)
        spread = (square / (1 - beta2**step)).sqrt() + group["eps"]
        mu, mu_next = self._mus(group, step)
        product = state["mu_product"] = state["mu_product"] * mu
        toward = (1 - mu) / (1 - product) * grad + mu_next / (1 - product * mu_next) * mean
        param.sub_(lr * toward / spread)


__getattr__ = _later.imports(__name__, (), {"_functional": "nadam"}, "rushlight.optim")
