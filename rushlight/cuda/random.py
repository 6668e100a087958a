"""The random numbers of the GPU: the names of PyTorch's torch.cuda for the one default generator.

One generator serves all devices, because the same seed gives the same numbers on each of them: a
draw on a GPU moves it as a draw on the CPU does. To seed it here is to seed it everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight import Tensor
from rushlight.cuda._device import device_count
from rushlight.random import default_generator

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def manual_seed(seed: int) -> None:
    """Sets the seed of random numbers, as rushlight.manual_seed does; without a GPU too.

    Args:
        seed: integer from -2**63 to 2**64 - 1.

    Example:
        >>> torch.cuda.manual_seed(7)
        >>> torch.initial_seed()
        7
    """
    default_generator.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Does what manual_seed does: all devices have one generator.

    Args:
        seed: integer from -2**63 to 2**64 - 1.
    """
    manual_seed(seed)


def seed() -> None:
    """Sets a seed that the operating system chose."""
    default_generator.seed()


def seed_all() -> None:
    """Sets a seed that the operating system chose."""
    default_generator.seed()


def initial_seed() -> int:
    """Returns the seed that was set last."""
    return default_generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Returns the state of the default generator, as a tensor of bytes on the CPU.

    Args:
        device: accepted for PyTorch's sake; one generator serves all devices.
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Sets the state of the default generator.

    Args:
        new_state: what get_rng_state returned.
        device: accepted for PyTorch's sake; one generator serves all devices.

    Example:
        >>> state = torch.cuda.get_rng_state()
        >>> first = torch.rand(2)
        >>> torch.cuda.set_rng_state(state)
        >>> torch.equal(first, torch.rand(2))
        True
    """
    default_generator.set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """Returns the state of the default generator once for each GPU."""
    return [get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Sets the state of the default generator to the last of several.

    Args:
        new_states: what get_rng_state_all returned.
    """
    for state in new_states:
        set_rng_state(state)
