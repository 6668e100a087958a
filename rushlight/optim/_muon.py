"""Muon.

Owns momentum whose updates are made orthogonal, for the matrices of a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim._options import check_lr, run_closure
from rushlight.optim.optimizer import Optimizer, ParamsT

_ADJUSTMENTS = (None, "original", "match_rms_adamw", "spectral_unclamped")


class Muon(Optimizer):
    """Muon: momentum of which each update is replaced by the nearest orthogonal matrix.

    For a matrix p of A rows and B columns with gradient g:

        buf    = momentum * buf + (1 - momentum) * g
        update = momentum * buf + (1 - momentum) * g with nesterov, else buf
        p      = p - lr * weight_decay * p
        p      = p - lr * ratio * orthogonal(update)

    orthogonal() is ns_steps of X = a * X + (b * M + c * M @ M) @ X with M = X @ X.T in bfloat16,
    from the update divided by its norm. ratio is sqrt(max(1, A / B)) for "original",
    sqrt(A / B) for "spectral_unclamped", and 0.2 * sqrt(max(A, B)) for "match_rms_adamw", which
    lets it take AdamW's learning rate.

    Source: Jordan et al., Muon: an optimizer for hidden layers in neural networks (2024);
    match_rms_adamw: Liu et al., Muon is scalable for LLM training (2025).

    Args:
        params: matrices, (name, matrix) pairs, or dicts with "params" and options of the group.
            Other parameters are for another optimizer, such as AdamW.
        lr: learning rate.
        weight_decay: share of a parameter, times lr, that each step takes away.
        momentum: share of the buffer that a step keeps.
        nesterov: look ahead along the buffer.
        ns_coefficients: a, b and c.
        eps: least norm that an update is divided by.
        ns_steps: how many iterations make an update orthogonal.
        adjust_lr_fn: "original", "match_rms_adamw", "spectral_unclamped", or None, which is the
            first.

    Raises:
        ValueError: a parameter is not a matrix, or an option is out of range.

    Example:
        >>> weight = torch.nn.Parameter(torch.zeros(2, 2))
        >>> optimizer = torch.optim.Muon([weight], lr=0.1)
        >>> weight.grad = torch.tensor([[3.0, 0.0], [0.0, -2.0]])
        >>> optimizer.step()
        >>> weight.sign().tolist()
        [[-1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor):
            check_lr("Muon", lr)
        for name, value in {
            "Learning rate": lr,
            "momentum": momentum,
            "weight decay": weight_decay,
        }.items():
            if not value >= 0:
                raise ValueError(f"Muon: {name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(
                f"Muon: Adjust learning rate function {adjust_lr_fn} is not supported. "
                f"It must be one of {_ADJUSTMENTS}."
            )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{tuple(param.shape)}. Give the others to another optimizer."
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
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        if grad.is_sparse:
            raise RuntimeError("Muon does not support sparse gradients")
        state, momentum = self.state[param], group["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = rl.zeros_like(grad)
        buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr = float(group["lr"])
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(update, alpha=-lr * _ratio(group["adjust_lr_fn"], *param.shape))


def _orthogonal(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Moves the singular values of a matrix to about 1, by Newton-Schulz iteration in bfloat16."""
    if steps >= 100:
        raise ValueError(
            f"Muon: ns_steps is {steps}. Number of steps must be less than 100 for computational "
            "efficiency."
        )
    if len(coefficients) != 3:
        raise ValueError("Muon: Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    is_tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    if is_tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T  # the smaller of the two products
        x = rl.addmm(x, rl.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if is_tall else x


def _ratio(adjustment: str | None, rows: int, columns: int) -> float:
    """Returns the factor of the learning rate for a matrix of this shape."""
    if adjustment == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    ratio = rows / max(1, columns)
    return math.sqrt(ratio if adjustment == "spectral_unclamped" else max(1, ratio))
