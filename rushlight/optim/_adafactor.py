"""Adafactor.

Owns a cheaper relative of Adam: of squared gradients it keeps means of rows and columns only.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim._fused import FusedOptimizer, no_steps
from rushlight.optim._options import check_lr
from rushlight.optim.optimizer import ParamsT


class Adafactor(FusedOptimizer):
    """Adafactor: Adam's scaling by the mean square of gradients, from its rows and columns alone.

    For a matrix p with gradient g (-g with maximize), in step t = 1, 2, ...:

        rest = t**beta2_decay
        rate = max(eps[1], rms(p)) * min(lr, 1 / sqrt(t))
        p    = p - lr * weight_decay * p
        R    = (1 - rest) * R + rest * mean of g**2 in each row
        C    = (1 - rest) * C + rest * mean of g**2 in each column
        V    = R @ C / max(mean(R), eps[0])
        U    = g / max(sqrt(V), eps[0])
        p    = p - rate * U / max(1, rms(U) / d)

    A vector keeps V itself, the running mean of g**2; a tensor of more dims is many matrices.

    Source: Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory cost (2018),
    with lr as the largest relative step and eps[0] where PyTorch has it.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: largest step relative to the size of the parameter, and factor of the weight decay.
        beta2_decay: power of t that gives the weight of a new gradient.
        eps: least root mean square of the gradient, None for the machine epsilon of its dtype; and
            least size of a parameter.
        d: largest root mean square of an update.
        weight_decay: share of a parameter, times lr, that each step takes away.
        foreach: accepted for PyTorch's sake; parameters are updated one by one.
        maximize: go up the gradient.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2, 2))
        >>> optimizer = torch.optim.Adafactor([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight.tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """

    _by_count = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor):
            check_lr("Adafactor", lr)
        for name, value in {
            "Learning rate": lr,
            "epsilon1": 0 if eps[0] is None else eps[0],
            "epsilon2": eps[1],
            "weight_decay": weight_decay,
        }.items():
            if not value >= 0:
                raise ValueError(f"Adafactor: {name} should be >= 0 but is: {value}")
        if not beta2_decay <= 0:
            raise ValueError(f"Adafactor: beta2_decay should be <= 0 but is: {beta2_decay}")
        if not d >= 1:
            raise ValueError(f"Adafactor: Clipping threshold d should be >= 1 but is: {d}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        shape = tuple(param.shape)
        if len(shape) < 2:
            return {"step": no_steps(), "variance": rl.zeros_like(param)}
        return {
            "step": no_steps(),
            "row_var": param.new_zeros((*shape[:-1], 1)),
            "col_var": param.new_zeros((*shape[:-2], 1, shape[-1])),
        }

    def _update(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        lr = float(group["lr"])
        with rl.no_grad():
            for param, grad, state in zip(params, grads, states, strict=True):
                step = float(state["step"])
                least = group["eps"][0]
                if least is None:
                    least = rl.finfo(param.dtype).eps
                rate = max(group["eps"][1], _rms(param)) * min(lr, step**-0.5)
                if group["weight_decay"]:
                    param.mul_(1 - lr * group["weight_decay"])
                variance = _advance(state, grad, step ** group["beta2_decay"], least)
                change = variance.clamp_(min=least * least).rsqrt_().mul_(grad)
                rate /= max(1.0, _rms(change) / group["d"])
                param.add_(change, alpha=rate if group["maximize"] else -rate)


def _rms(tensor: Tensor) -> float:
    return tensor.norm(2).item() / max(1, tensor.numel()) ** 0.5


def _advance(state: dict[str, Any], grad: Tensor, rest: float, least: float) -> Tensor:
    """Moves the means towards a gradient's squares and returns their estimate for each element."""
    if grad.dim() < 2:
        return state["variance"].lerp_(grad * grad, rest).clone()
    rows, columns = state["row_var"], state["col_var"]
    rows.lerp_(grad.norm(dim=-1, keepdim=True).square_().div_(max(1, grad.size(-1))), rest)
    columns.lerp_(grad.norm(dim=-2, keepdim=True).square_().div_(max(1, grad.size(-2))), rest)
    return (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=least))
