"""Transforms that combine others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight.nn import ModuleList
from rushlight.vision.transforms.v2._transform import Transform, check_probability


def _listed(transforms: Any) -> str:
    return "\n".join(f"    {transform}" for transform in transforms)


class _Container(Transform):
    """Base class: transforms are called with what the container is called with."""

    _takes: tuple[type, ...] = (Sequence,)

    def __init__(self, transforms: Any) -> None:
        super().__init__()
        if not isinstance(transforms, self._takes):
            raise TypeError(
                f"{type(self).__name__}: got {type(transforms).__name__}. "
                "transforms must be a sequence of callables."
            )
        if not transforms:
            raise ValueError(f"{type(self).__name__}: there are no transforms. Pass at least one.")
        self.transforms = transforms

    def _in_turn(self, inputs: tuple[Any, ...], transforms: Any) -> Any:
        several = len(inputs) > 1
        for transform in transforms:
            outputs = transform(*inputs)
            inputs = outputs if several else (outputs,)
        return inputs if several else inputs[0]


class Compose(_Container):
    """Transforms one after the other.

    Args:
        transforms: the transforms.

    Raises:
        TypeError: if they are no sequence.
        ValueError: if there are none.

    Example:
        >>> transform = v2.Compose([v2.RandomHorizontalFlip(p=1.0), v2.ToDtype(torch.float32)])
        >>> transform(torch.tensor([[[1, 2]]]))
        tensor([[[2., 1.]]])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        super().__init__(transforms)

    def forward(self, *inputs: Any) -> Any:
        return self._in_turn(inputs, self.transforms)

    def extra_repr(self) -> str:
        return _listed(self.transforms)


class RandomApply(_Container):
    """Transforms one after the other with a probability, else none of them.

    Args:
        transforms: the transforms, a sequence or a ModuleList.
        p: the probability.

    Raises:
        TypeError: if they are no sequence.
        ValueError: if there are none, or p is no probability.
    """

    _takes = (Sequence, ModuleList)

    def __init__(
        self, transforms: Sequence[Callable[..., Any]] | ModuleList, p: float = 0.5
    ) -> None:
        super().__init__(transforms)
        check_probability(p)
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        done = rl.rand(1).item() < self.p
        return self._in_turn(inputs, self.transforms if done else ())

    def extra_repr(self) -> str:
        return _listed(self.transforms)


class RandomChoice(_Container):
    """One of the transforms.

    Args:
        transforms: the transforms.
        p: their weights, by default equal ones.

    Raises:
        TypeError: if they are no sequence.
        ValueError: if there are none, or not as many as weights.
    """

    def __init__(
        self, transforms: Sequence[Callable[..., Any]], p: Sequence[float] | None = None
    ) -> None:
        super().__init__(transforms)
        weights = [1.0] * len(transforms) if p is None else p
        if len(weights) != len(transforms):
            raise ValueError(
                f"RandomChoice: there are {len(weights)} weights for {len(transforms)} transforms. "
                "Give one for each."
            )
        total = sum(weights)
        self.p = [weight / total for weight in weights]

    def forward(self, *inputs: Any) -> Any:
        return self.transforms[int(rl.multinomial(rl.tensor(self.p), 1))](*inputs)


class RandomOrder(_Container):
    """All transforms in a random order.

    Args:
        transforms: the transforms.

    Raises:
        TypeError: if they are no sequence.
        ValueError: if there are none.
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        super().__init__(transforms)

    def forward(self, *inputs: Any) -> Any:
        order = rl.randperm(len(self.transforms)).tolist()
        return self._in_turn(inputs, [self.transforms[index] for index in order])
