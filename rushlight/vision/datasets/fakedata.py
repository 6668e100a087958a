"""Images of noise, to try a program without any files."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.vision.datasets.vision import Transform, VisionDataset

__all__ = ["FakeData"]


class FakeData(VisionDataset):
    """Random images with random classes, the same ones every time.

    Args:
        size: number of samples.
        image_size: channels, height and width.
        num_classes: number of classes.
        transform: function of the PIL image.
        target_transform: function of the class, a 0-d int64 tensor.
        random_offset: added to the index of a sample, which is the seed that makes it.

    Example:
        >>> data = torch.vision.datasets.FakeData(size=2, image_size=(3, 4, 6))
        >>> image, target = data[0]
        >>> len(data), image.size, 0 <= target < 10
        (2, (6, 4), True)
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Transform = None,
        target_transform: Transform = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size = size
        self.num_classes = num_classes
        self.image_size = image_size
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        from rushlight.vision.transforms import ToPILImage

        generator = rl.Generator().manual_seed(index + self.random_offset)
        pixels = rl.randn(*self.image_size, generator=generator)
        target = rl.randint(0, self.num_classes, size=(1,), generator=generator)[0]
        picture, target = self._transformed(ToPILImage()(pixels), target)
        return picture, target.item()

    def __len__(self) -> int:
        return self.size
