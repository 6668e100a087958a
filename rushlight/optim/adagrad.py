"""Adagrad.

Owns the options and the state of Adagrad; the arithmetic is one fused op over a whole group.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, _later
from rushlight.optim._fused import FusedOptimizer, entries, no_steps
from rushlight.optim._options import check_at_least_zero, check_implementation, check_lr
from rushlight.optim._sparse import values_at, with_values
from rushlight.optim.optimizer import ParamsT


class Adagrad(FusedOptimizer):
    """Adagrad: gradient descent divided by the root of the sum of all squared gradients.

    For a parameter p with gradient g (-g with maximize), in step t = 1, 2, ...:

        g   = g + weight_decay * p
        sum = sum + g**2
        p   = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(sum) + eps)

    A sparse gradient changes only the elements that it has.

    Source: Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and
    stochastic optimization (2011).

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        lr_decay: how fast the learning rate falls with the number of steps.
        weight_decay: factor of the L2 penalty.
        initial_accumulator_value: where the sum starts.
        eps: keeps the denominator away from zero.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        maximize: go up the gradient.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.
        fused: as foreach; with it, GradScaler does not wait for the GPU to learn whether it leaves
            the step out.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adagrad([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> [round(value, 6) for value in weight.tolist()]
        [0.5, 0.5]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr("Adagrad", lr)
        check_at_least_zero(
            "Adagrad",
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        check_implementation("Adagrad", foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param] = self._start(param, group)

    def share_memory(self) -> None:
        """Moves the sums to shared memory, for processes that train one model together."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        value = group["initial_accumulator_value"]
        value = complex(value, value) if param.is_complex() else value
        return {"step": no_steps(), "sum": rl.full_like(param, value)}

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        _C._fused_adagrad_(
            params,
            grads,
            entries(states, "sum"),
            float(group["lr"]),
            group["lr_decay"],
            group["weight_decay"],
            group["eps"],
            group["maximize"],
            float(states[0]["step"]),
            group["differentiable"],
            self._scaling,
        )

    def _update_sparse(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        if group["weight_decay"]:
            raise RuntimeError(
                "Adagrad: weight_decay option is not compatible with sparse gradients, because it "
                "changes all elements. Set it to 0."
            )
        (state,), (step,) = self._counted_states(group, [param])
        rate = float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        grad = grad.coalesce()
        values = grad.values()
        state["sum"].add_(with_values(grad, values * values))
        root = values_at(state["sum"], grad).sqrt_().add_(group["eps"])
        param.add_(with_values(grad, values / root), alpha=-rate)


__getattr__ = _later.imports(__name__, (), {"_functional": "adagrad"}, "rushlight.optim")
