"""Checks of numbers that quantize a tensor."""

from __future__ import annotations

import math

from rushlight import Tensor

__all__: list[str] = []


def _per_token_quant_qparam_dim_check(input: Tensor, scales: Tensor, zero_points: Tensor) -> None:
    """Checks that each token, which is a row along the last dim, has a scale and a zero point.

    Raises:
        AssertionError: if it has not.
    """
    tokens = math.prod(input.shape[:-1])
    for name, numbers in (("scales", scales), ("zero_points", zero_points)):
        if numbers.numel() != tokens:
            raise AssertionError(
                f"num_tokens: {tokens} {name}: {tuple(numbers.shape)}. Give one for each token."
            )
