"""Numbers for the tests of kernels, the same on every device."""

from __future__ import annotations

from typing import Any

import rushlight as rl


def random(*sizes: int, dtype: Any = rl.float32, seed: int = 0) -> Any:
    generator = rl.Generator().manual_seed(seed)
    return rl.randn(sizes, generator=generator, dtype=rl.float64).to(dtype)
