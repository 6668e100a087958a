"""SparseAdam.

Owns Adam for sparse gradients: it touches only the elements that a gradient has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim._options import check_betas, check_lr, run_closure
from rushlight.optim._sparse import values_at, with_values
from rushlight.optim.optimizer import Optimizer, ParamsT


class SparseAdam(Optimizer):
    """Adam that updates only the elements of parameters and means that a sparse gradient has.

    For those elements it is Adam's step; the others keep their value and their means, whatever the
    number of the step. It serves dense parameters with sparse gradients, such as those of
    nn.Embedding(sparse=True).

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 1, masked.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        betas: decay of the means of the gradient and of its square.
        eps: keeps the denominator away from zero.
        maximize: go up the gradient.

    Raises:
        ValueError: a parameter is sparse or complex.
        RuntimeError: in step, a gradient is dense.

    Example:
        >>> table = torch.nn.Parameter(torch.ones(3, 2))
        >>> optimizer = torch.optim.SparseAdam([table], lr=0.5)
        >>> table.grad = torch.sparse_coo_tensor([[1]], [[2.0, -2.0]], (3, 2))
        >>> optimizer.step()
        >>> table.round(decimals=4).tolist()
        [[1.0, 1.0], [0.5, 1.5], [1.0, 1.0]]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_lr("SparseAdam", lr)
        if not lr > 0:
            raise ValueError(f"SparseAdam: Invalid learning rate: {lr}. It must be positive.")
        if not eps > 0:
            raise ValueError(f"SparseAdam: Invalid epsilon value: {eps}. It must be positive.")
        check_betas("SparseAdam", betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [
            ([i, j], param)
            for i, group in enumerate(self.param_groups)
            for j, param in enumerate(group["params"])
        ]
        sparse = [place for place, param in places if param.is_sparse]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        is_complex = [place for place, param in places if param.is_complex()]
        if is_complex:
            raise ValueError(
                f"Complex params at indices {is_complex}: SparseAdam does not support complex "
                "parameters"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = run_closure(closure)
        with rl.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._update(group, param, param.grad)
        return loss

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"] = rl.zeros_like(param)
            state["exp_avg_sq"] = rl.zeros_like(param)
        state["step"] += 1
        grad = (-grad if group["maximize"] else grad).coalesce()
        values = grad.values()
        if values.numel() == 0:
            return
        beta1, beta2 = (float(beta) for beta in group["betas"])
        mean = _advance(state["exp_avg"], grad, values, 1 - beta1)
        square = _advance(state["exp_avg_sq"], grad, values * values, 1 - beta2)
        step = state["step"]
        rate = float(group["lr"]) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        change = mean / square.sqrt_().add_(group["eps"])
        param.add_(with_values(grad, change), alpha=-rate)


def _advance(mean: Tensor, grad: Tensor, values: Tensor, weight: float) -> Tensor:
    """Moves a running mean towards new values where a gradient has entries; returns it there."""
    old = values_at(mean, grad)
    change = (values - old).mul_(weight)
    mean.add_(with_values(grad, change))
    return old.add_(change)
