"""The base class of all data sets of images, and what their transforms are put together to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rushlight.utils.data import Dataset

# What the arguments of data sets are.
AnyPath = str | Path
Transform = Callable[..., Any] | None
Loader = Callable[..., Any]

__all__ = ["StandardTransform", "VisionDataset"]


class VisionDataset(Dataset):
    """Base class of data sets of images: a folder, and transforms for samples and targets.

    A subclass defines __getitem__ and __len__.

    Args:
        root: folder of the files.
        transforms: function of a sample and its target that returns both.
        transform: function of the sample alone.
        target_transform: function of the target alone.

    Raises:
        ValueError: if there are both `transforms` and one of the others.

    Example:
        >>> class Squares(torch.vision.datasets.VisionDataset):
        ...     def __len__(self):
        ...         return 4
        ...     def __getitem__(self, index):
        ...         return self._transformed(index, index**2)
        >>> squares = Squares("data", target_transform=lambda target: -target)
        >>> squares[3]
        (3, -9)
    """

    _repr_indent = 4
    # Lines of the repr with the names of attributes in braces.
    _repr_format = ""

    def __init__(
        self,
        root: str | Path | None = None,
        transforms: Callable[..., Any] | None = None,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
    ) -> None:
        if isinstance(root, str):
            root = os.path.expanduser(root)
        elif isinstance(root, Path):
            root = root.expanduser()
        self.root: Any = root
        if transform is not None or target_transform is not None:
            if transforms is not None:
                raise ValueError(
                    f"{type(self).__name__}: Only transforms or transform/target_transform can be "
                    "passed as argument"
                )
            transforms = StandardTransform(transform, target_transform)
        self.transform = transform
        self.target_transform = target_transform
        self.transforms = transforms

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__")

    def __repr__(self) -> str:
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if getattr(self, "transforms", None) is not None:
            body.append(repr(self.transforms))
        indent = " " * self._repr_indent
        return "\n".join([f"Dataset {type(self).__name__}", *(indent + line for line in body)])

    def extra_repr(self) -> str:
        """Returns further lines for the repr."""
        return self._repr_format.format(**vars(self))

    def _transformed(self, sample: Any, target: Any) -> tuple[Any, Any]:
        """The sample and its target after transform and target_transform."""
        return StandardTransform(self.transform, self.target_transform)(sample, target)

    def _transformed_together(self, sample: Any, target: Any) -> tuple[Any, Any]:
        """The sample and its target after transforms, which may treat them as one."""
        return (sample, target) if self.transforms is None else self.transforms(sample, target)


class StandardTransform:
    """One function of a sample and its target from one of each, either of which may be None."""

    def __init__(
        self,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
    ) -> None:
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self) -> str:
        body = [type(self).__name__]
        for head, function in (
            ("Transform: ", self.transform),
            ("Target transform: ", self.target_transform),
        ):
            if function is not None:
                first, *others = repr(function).splitlines()
                body += [head + first, *(" " * len(head) + line for line in others)]
        return "\n".join(body)
