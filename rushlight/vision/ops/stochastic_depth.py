"""Stochastic depth: residual branches that are left out at random in training."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor, nn

__all__ = ["StochasticDepth", "stochastic_depth"]

__fx_wrapped__ = {"stochastic_depth"}  # torch.fx records it as one node


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """Returns input with rows zeroed at random and the others scaled by 1 / (1 - p).

    Huang et al. 2016, Deep Networks with Stochastic Depth. The scale keeps the expected value.

    Args:
        input: (N, ...), the result of a residual branch.
        p: probability that a row is zeroed.
        mode: "row" decides for each of the N rows, "batch" once for all of them.
        training: False returns input.

    Raises:
        ValueError: if p is no probability, or mode is another word.

    Example:
        >>> stochastic_depth(torch.ones(2, 2), 1.0, "row")
        tensor([[0., 0.],
                [0., 0.]])
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0.0:
        return input
    rows = input.shape[0] if mode == "row" else 1
    noise = rl.empty((rows, *[1] * (input.ndim - 1)), dtype=input.dtype, device=input.device)
    noise.bernoulli_(1.0 - p)
    if p < 1.0:
        noise.div_(1.0 - p)
    return input * noise


class StochasticDepth(nn.Module):
    """A residual branch left out at random in training; the arguments are stochastic_depth's.

    Example:
        >>> StochasticDepth(0.2, "row").eval()(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p = p
        self.mode = mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, mode={self.mode})"
