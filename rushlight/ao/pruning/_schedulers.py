"""Schedulers: how large a part of weights is hidden in each epoch."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.ao.pruning._sparsifiers import BaseSparsifier

__all__ = ["BaseScheduler", "CubicSL", "LambdaSL"]


class BaseScheduler:
    """What schedulers share; a subclass has get_sl, which returns a level for each weight.

    Args:
        sparsifier: the sparsifier, after its prepare().
        last_epoch: the last epoch that ran, -1 for none.
        verbose: prints each new level.
    """

    def __init__(
        self, sparsifier: BaseSparsifier, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self._attach(sparsifier)
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch, self.verbose = last_epoch, verbose
        if not hasattr(sparsifier.step, "_with_counter"):
            self.sparsifier.step = _counting(sparsifier)
        self.sparsifier._step_count = 0
        self._step_count = 0
        self._get_sl_called_within_step = False
        self.step()

    def _attach(self, sparsifier: Any) -> None:
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(
                f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier"
            )
        self.sparsifier: Any = sparsifier

    def state_dict(self) -> dict[str, Any]:
        """Returns all but the sparsifier."""
        return {key: value for key, value in vars(self).items() if key != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict returned."""
        vars(self).update(state_dict)

    def get_last_sl(self) -> list[float]:
        """Returns the present levels."""
        return self._last_sl

    def get_sl(self) -> list[float]:
        """Returns the levels of the epoch self.last_epoch; step() calls it."""
        raise NotImplementedError

    def _check_step(self) -> None:
        if not self._get_sl_called_within_step:
            warnings.warn(
                "To get the last sparsity level computed by the scheduler, please use "
                "`get_last_sl()`.",
                stacklevel=3,
            )

    def print_sl(self, is_verbose: bool, group: int, sl: float, epoch: int | None = None) -> None:
        """Prints a new level."""
        if is_verbose:
            start = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{start} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch: int | None = None) -> None:
        """Sets the levels of the next epoch; call it after sparsifier.step()."""
        if self._step_count == 1 and self.sparsifier._step_count < 1:
            warnings.warn(
                "Detected call of `scheduler.step()` before `sparsifier.step()`. You have to make "
                "sure you run the sparsifier.step() BEFORE any calls to the scheduler.step().",
                stacklevel=2,
            )
        self._step_count += 1
        self._get_sl_called_within_step = True
        self.last_epoch += 1
        levels = self.get_sl()
        self._get_sl_called_within_step = False
        for number, (group, level) in enumerate(zip(self.sparsifier.groups, levels, strict=True)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, number, level, epoch)
        self._last_sl = list(levels)
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var: Any) -> list[Any]:
        count = len(self.sparsifier.groups)
        if not isinstance(var, list | tuple):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)


def _counting(sparsifier: BaseSparsifier) -> Callable[..., None]:
    """The sparsifier's step, which also counts how often it is called."""
    reference, step = weakref.ref(sparsifier), type(sparsifier).step

    @functools.wraps(step)
    def call(*args: Any, **kwargs: Any) -> None:
        owner: Any = reference()
        owner._step_count += 1
        step(owner, *args, **kwargs)

    call.__dict__["_with_counter"] = True
    return call


class LambdaSL(BaseScheduler):
    """The first level of each weight, times a function of the epoch.

    Args:
        sparsifier: the sparsifier, after its prepare().
        sl_lambda: the function, or one for each weight.
        last_epoch: the last epoch that ran, -1 for none.
        verbose: prints each new level.

    Example:
        >>> sparsifier = torch.ao.pruning.WeightNormSparsifier(0.8)
        >>> sparsifier.prepare(torch.nn.Sequential(torch.nn.Linear(4, 4)), None)
        >>> scheduler = torch.ao.pruning.LambdaSL(sparsifier, lambda epoch: epoch / 4)
        >>> sparsifier.step()
        >>> scheduler.step()
        >>> scheduler.get_last_sl()
        [0.2]
    """

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        sl_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self._attach(sparsifier)
        self.sl_lambdas = self._make_sure_a_list(sl_lambda)
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        """Returns the levels of the epoch self.last_epoch."""
        self._check_step()
        pairs = zip(self.sl_lambdas, self.base_sl, strict=True)
        return [level * function(self.last_epoch) for function, level in pairs]


class CubicSL(BaseScheduler):
    """From a first level to that of the sparsifier along a cubic curve, fast and then slowly.

    s_t = s_f + (s_0 - s_f) * (1 - (t - t_0) / (n * delta_t))^3. Zhu and Gupta, "To prune, or not to
    prune", 2017. Each argument but the first may be a list with one for each weight.

    Args:
        sparsifier: the sparsifier, after its prepare().
        init_sl: the first level, s_0.
        init_t: the epoch in which it begins, t_0.
        delta_t: epochs between steps.
        total_t: the number of steps, n.
        initially_zero: that the level is 0, not init_sl, before init_t.
        last_epoch: the last epoch that ran, -1 for none.
        verbose: prints each new level.
    """

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        init_sl: Any = 0.0,
        init_t: Any = 0,
        delta_t: Any = 10,
        total_t: Any = 100,
        initially_zero: Any = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self._attach(sparsifier)
        self.init_sl, self.init_t = map(self._make_sure_a_list, (init_sl, init_t))
        self.delta_t, self.total_t = map(self._make_sure_a_list, (delta_t, total_t))
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(
        s_0: float, s_f: float, t: int, t_0: int, dt: int, n: int, initially_zero: bool = False
    ) -> float:
        """Returns the level of an epoch t."""
        if initially_zero and t < t_0:
            return 0
        level = s_f + (s_0 - s_f) * (1.0 - (t - t_0) / (dt * n)) ** 3
        return max(s_0, min(s_f, level))

    def get_sl(self) -> list[float]:
        """Returns the levels of the epoch self.last_epoch."""
        self._check_step()
        settings = zip(
            self.init_sl, self.base_sl, self.init_t, self.delta_t, self.total_t,
            self.initially_zero, strict=True,
        )  # fmt: skip
        return [
            self.sparsity_compute_fn(first, last, self.last_epoch, start, every, count, is_zero)
            for first, last, start, every, count, is_zero in settings
        ]
