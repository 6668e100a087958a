"""Adam.

Owns the options and the state of Adam; the arithmetic is one fused op over a whole group.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.optim._fused import FusedOptimizer, decayed, entries, moments, no_steps
from rushlight.optim._options import (
    check_at_least_zero,
    check_betas,
    check_counts,
    check_implementation,
    check_lr,
    check_tensor_options,
    refuse_scaling,
)
from rushlight.optim.optimizer import ParamsT


class Adam(FusedOptimizer):
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
        capturable: count the steps on the GPU, so that a CUDA graph can hold them.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.
        fused: as foreach; with it, GradScaler does not wait for the GPU to learn whether it leaves
            the step out.
        decoupled_weight_decay: shrink the parameter itself, which makes it AdamW.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adam([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.5, 0.5]
    """

    _advice = ", please consider SparseAdam instead"
    _can_be_captured = True
    _has_ops = True

    def __init__(
        self,
        params: ParamsT,
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
        check_betas(name, betas)
        check_tensor_options(name, foreach and not capturable, lr, betas)
        check_implementation(name, foreach, fused, differentiable)
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

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {
            "step": no_steps(),
            "exp_avg": rl.zeros_like(param),
            "exp_avg_sq": rl.zeros_like(param),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = rl.zeros_like(param)
        return state

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        beta1, beta2 = group["betas"]
        amsgrad = group["amsgrad"]
        if self._count is not None:
            self._update_captured(group, params, grads, states, self._count)
            return
        _C._fused_adam_(
            params,
            grads,
            entries(states, "exp_avg"),
            entries(states, "exp_avg_sq"),
            entries(states, "max_exp_avg_sq", amsgrad),
            float(group["lr"]),
            float(beta1),
            float(beta2),
            float(group["eps"]),
            float(group["weight_decay"]),
            group["decoupled_weight_decay"],
            amsgrad,
            group["maximize"],
            float(states[0]["step"]),
            group["differentiable"],
            self._scaling,
        )

    def _update_in_ops(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        (state,), (step,) = self._counted_states(group, [param])
        (beta1, beta2), lr = group["betas"], group["lr"]
        mean, square = moments(group, state, decayed(group, param, grad))
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"] = rl.maximum(state["max_exp_avg_sq"], square)
        spread = square.sqrt() / (1 - beta2**step) ** 0.5 + group["eps"]
        param.sub_(lr / (1 - beta1**step) * mean / spread)

    def _update_captured(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        count: Tensor,
    ) -> None:
        """Takes a step whose numbers the GPU computes from its count of steps."""
        lr = group["lr"]
        if isinstance(lr, rl.Tensor) and lr.is_cuda:
            lr = lr.to(rl.float64)
        beta1, beta2 = (float(beta) for beta in group["betas"])
        shrinks = group["decoupled_weight_decay"]
        rate = lr / (1 - beta1**count)
        root = (1 - beta2**count).sqrt()
        shrink = rl.ones_like(count) - (lr * float(group["weight_decay"]) if shrinks else 0)
        _C._captured_adam_(
            params,
            grads,
            entries(states, "exp_avg"),
            entries(states, "exp_avg_sq"),
            entries(states, "max_exp_avg_sq", group["amsgrad"]),
            rl.stack((rate, root, shrink)),
            beta1,
            beta2,
            float(group["eps"]),
            float(group["weight_decay"]),
            shrinks,
            group["amsgrad"],
            group["maximize"],
            self._scaling,
        )


def adam(
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
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Takes a step of Adam with state that the program keeps, in place.

    Args:
        params: the parameters.
        grads: their gradients.
        exp_avgs, exp_avg_sqs: for each the means of its gradient and of the square.
        max_exp_avg_sqs: for each the largest mean square so far, with amsgrad.
        state_steps: for each the number of steps before this one, in a tensor of one element.
        foreach, capturable, fused, has_complex: accepted for PyTorch's sake.
        grad_scale, found_inf: must be None.
        differentiable, decoupled_weight_decay, amsgrad, lr, weight_decay, eps, maximize: those of
            the class Adam.
        beta1, beta2: its betas.

    Raises:
        RuntimeError: if the steps are not tensors.
        NotImplementedError: if grad_scale or found_inf is given.

    Example:
        >>> weight, mean, square, step = torch.ones(4, 2).mul_(torch.tensor([[1.0], [0], [0], [0]]))
        >>> torch.optim.adam.adam(
        ...     [weight], [torch.ones(2)], [mean], [square], [], [step[:1]], amsgrad=False,
        ...     beta1=0.9, beta2=0.999, lr=0.5, weight_decay=0, eps=1e-8, maximize=False)
        >>> [round(value, 6) for value in weight.tolist()]
        [0.5, 0.5]
    """
    refuse_scaling("adam", grad_scale, found_inf)
    check_counts("adam", state_steps)
    alike: dict[float, list[int]] = {}
    for i, step in enumerate(state_steps):
        step += 1
        alike.setdefault(float(step), []).append(i)
    for count, chosen in alike.items():
        _C._fused_adam_(
            [params[i] for i in chosen],
            [grads[i] for i in chosen],
            [exp_avgs[i] for i in chosen],
            [exp_avg_sqs[i] for i in chosen],
            [max_exp_avg_sqs[i] for i in chosen] if amsgrad else [],
            float(lr),
            float(beta1),
            float(beta2),
            eps,
            weight_decay,
            decoupled_weight_decay,
            amsgrad,
            maximize,
            count,
            differentiable,
        )
