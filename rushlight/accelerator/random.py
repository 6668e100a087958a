"""The seed and the state of the random numbers of the GPU, which are those of the CPU, too."""

from rushlight.cuda.random import get_rng_state, get_rng_state_all, initial_seed

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed"]
