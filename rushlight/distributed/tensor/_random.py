"""Random ops on DTensors: all ranks draw the numbers of the mesh's first rank.

So copies stay alike whatever the ranks' seeds are, and a program draws what it would draw in one
process. The other ranks' generators stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rushlight as rl
from rushlight import distributed as dist
from rushlight.distributed.device_mesh import DeviceMesh

__all__ = ["RANDOM", "first_rank_numbers"]

RANDOM = frozenset(
    {
        "_standard_gamma",
        "alpha_dropout",
        "bernoulli",
        "bernoulli_",
        "binomial",
        "cauchy_",
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "exponential_",
        "feature_alpha_dropout",
        "geometric_",
        "gumbel_softmax",
        "log_normal_",
        "multinomial",
        "native_dropout",
        "normal",
        "normal_",
        "poisson",
        "rand_like",
        "randint_like",
        "randn_like",
        "random_",
        "rrelu",
        "scaled_dot_product_attention",
        "uniform_",
    }
)


@contextmanager
def first_rank_numbers(mesh: DeviceMesh) -> Iterator[None]:
    """Gives this rank's generator the state of the first rank's inside a with block."""
    generators = rl.cuda if mesh.device_type == "cuda" else rl.random
    own = generators.get_rng_state()
    state = own.clone()
    for m in range(mesh.ndim):
        dist.broadcast(state, group=mesh.get_group(m), group_src=0)
    generators.set_rng_state(state)
    try:
        yield
    finally:
        if any(mesh.get_coordinate() or ()):
            generators.set_rng_state(own)
