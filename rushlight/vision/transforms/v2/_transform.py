"""Transform, the base class: from a nested sample to the values it holds and back.

A transform draws its parameters once for a sample, then does the same to each value by its type.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight.nn import Module
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision._pillow import is_pil_image
from rushlight.vision.transforms._functional.registry import find_kernel, is_pure_tensor
from rushlight.vision.transforms.v2._samples import check_type, has_any, sample_of
from rushlight.vision.tv_tensors import Image, Video


class Transform(Module):
    """Base class of transforms of nested samples.

    A subclass defines transform, and make_params if what it does is random. It is called with any
    number of values, nested in lists, tuples and dicts. Images, videos, masks, boxes and points are
    transformed, other values passed on. A plain tensor is taken for an image if it is the first
    one and no other value is an image or a video.

    Example:
        >>> class Darker(v2.Transform):
        ...     def make_params(self, flat_inputs):
        ...         return {"factor": 0.5}
        ...     def transform(self, inpt, params):
        ...         return inpt * params["factor"] if isinstance(inpt, tv_tensors.Image) else inpt
        >>> Darker()({"image": tv_tensors.Image(torch.ones(1, 1, 1)), "name": "white"})
        {'image': tensor([[[0.5000]]]), 'name': 'white'}
    """

    _transformed_types: tuple[type | Callable[[Any], bool], ...] = (rl.Tensor, is_pil_image)

    def __init__(self) -> None:
        super().__init__()

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Refuse samples that the transform is not made for; by default none."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw what transform gets as params, once for a sample.

        Args:
            flat_inputs: the values that will be transformed.
        """
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Transform one value of a sample."""
        raise NotImplementedError

    def _call_kernel(
        self, functional: Callable[..., Any], inpt: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """What a functional makes of a value; a value that it has no kernel for stays as it is."""
        kernel = find_kernel(functional, type(inpt))
        return inpt if kernel is None else kernel(inpt, *args, **kwargs)

    def forward(self, *inputs: Any) -> Any:
        sample = sample_of(inputs)
        flat_inputs, spec = tree_flatten(sample)
        self.check_inputs(flat_inputs)
        return self._transformed(flat_inputs, spec)

    def _transformed(self, flat_inputs: list[Any], spec: Any) -> Any:
        needed = self._needs_transform_list(flat_inputs)
        pairs = list(zip(flat_inputs, needed, strict=True))
        params = self.make_params([value for value, needs in pairs if needs])
        outputs = [self.transform(value, params) if needs else value for value, needs in pairs]
        return tree_unflatten(outputs, spec)

    def _needs_transform_list(self, flat_inputs: list[Any]) -> list[bool]:
        takes_plain = not has_any(flat_inputs, Image, Video, is_pil_image)
        needed = []
        for value in flat_inputs:
            needs = check_type(value, self._transformed_types)
            if needs and is_pure_tensor(value):
                needs, takes_plain = takes_plain, False
            needed.append(needs)
        return needed

    def extra_repr(self) -> str:
        shown = (bool, int, float, str, tuple, list, enum.Enum)
        return ", ".join(
            f"{name}={value}"
            for name, value in self.__dict__.items()
            if not name.startswith("_") and name != "training" and isinstance(value, shown)
        )


class RandomApplyTransform(Transform):
    """Base class of the transforms that are done with a probability.

    Args:
        p: the probability.

    Raises:
        ValueError: if it is none.
    """

    def __init__(self, p: float = 0.5) -> None:
        check_probability(p)
        super().__init__()
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        sample = sample_of(inputs)
        flat_inputs, spec = tree_flatten(sample)
        self.check_inputs(flat_inputs)
        if rl.rand(1).item() >= self.p:
            return sample
        return self._transformed(flat_inputs, spec)


def check_probability(p: float) -> None:
    """Refuse what is no probability."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p: got {p}. A probability is in [0, 1].")
