"""An optimizer whose processes learn apart from each other, and meet now and then."""

# ruff: noqa: N999 (PyTorch's name)

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight.distributed.algorithms.model_averaging.averagers import ModelAverager
from rushlight.optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Steps with another optimizer, then lets an averager average the parameters.

    Lin, Stich, Patel, Jaggi, "Don't Use Large Mini-Batches, Use Local SGD", 2018,
    https://arxiv.org/abs/1808.07217.

    Args:
        optim: the optimizer of this process.
        averager: when and over which processes parameters are averaged. Its warmup_steps are the
            start_localSGD_iter of the hook that averages gradients until then.

    Example:
        >>> import rushlight.distributed as dist
        >>> from rushlight.distributed.algorithms.model_averaging import averagers
        >>> from rushlight.distributed.optim import PostLocalSGDOptimizer
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> averager = averagers.PeriodicModelAverager(period=4, warmup_steps=100)
        >>> optimizer = PostLocalSGDOptimizer(torch.optim.SGD([weight], lr=0.5), averager)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight.tolist()
        [0.5, 0.5]
        >>> dist.destroy_process_group()
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim = optim
        self.param_groups = optim.param_groups
        self.averager = averager

    @property
    def state(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The state of the optimizer."""
        return self.optim.state

    @property
    def defaults(self) -> Any:
        """The defaults of the optimizer."""
        return self.optim.defaults

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """Returns the optimizer's, and as "step" how often the averager was called."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads what state_dict returned; without "step" it warns, and the averager begins anew."""
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step "
                "counter to 0.",
                stacklevel=2,
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Does a step of the optimizer and of the averager, and returns the closure's loss."""
        loss = self.optim.step(closure)
        self.averager.average_parameters(self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """See Optimizer."""
        self.optim.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """See Optimizer."""
        self.optim.add_param_group(param_group)
