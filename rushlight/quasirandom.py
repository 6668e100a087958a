"""Points that fill a cube more evenly than random ones: Sobol's sequence.

The direction numbers (Joe and Kuo 2008) and the arithmetic are SciPy's, which is imported when an
engine is made.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import rushlight as rl
from rushlight import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws points of Sobol's sequence from [0, 1)^dimension, from the first, which is 0.

    Args:
        dimension: the number of coordinates, up to MAXDIM.
        scramble: whether to shuffle the digits of the points at random (Owen 1998), which keeps
            them even and makes means over them unbiased.
        seed: for the shuffling; without it, it is drawn from the default generator.

    Raises:
        ValueError: for another dimension.
        ModuleNotFoundError: if SciPy is not installed.

    Example:
        >>> engine = torch.quasirandom.SobolEngine(dimension=2)
        >>> engine.draw(4).tolist()
        [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        from scipy.stats import qmc

        self.dimension = dimension
        self.scramble = scramble
        self.seed = seed
        if scramble and seed is None:
            seed = int(rl.randint(2**31, ()).item())
        self._sequence: Any = qmc.Sobol(dimension, scramble=scramble, bits=self.MAXBIT, rng=seed)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: rl.dtype | None = None) -> Tensor:
        """Returns the next points.

        Args:
            n: how many.
            out: where they are written.
            dtype: of the result; the default dtype unless given.

        Returns:
            (n, dimension).
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that n is no power of 2
            points = self._sequence.random(n)
        self.num_generated += n
        result = rl.from_numpy(points).to(rl.get_default_dtype() if dtype is None else dtype)
        if out is None:
            return result
        out.resize_(result.shape).copy_(result)
        return out

    def draw_base2(
        self, m: int, out: Tensor | None = None, dtype: rl.dtype | None = None
    ) -> Tensor:
        """Returns the next 2^m points; with those before they must be a power of 2 in number.

        Args:
            m: the exponent.
            out: where they are written.
            dtype: of the result.

        Raises:
            ValueError: if they are not.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> Self:
        """Goes back to the first point."""
        self._sequence.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> Self:
        """Leaves out points.

        Args:
            n: how many.
        """
        self._sequence.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        options = [f"dimension={self.dimension}"]
        if self.scramble:
            options.append("scramble=True")
        if self.seed is not None:
            options.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(options)})"
