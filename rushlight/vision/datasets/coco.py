"""COCO: photographs of everyday scenes with outlines of objects, or with captions.

Owns nothing of the format: pycocotools reads it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rushlight.vision.datasets.folder import read_image
from rushlight.vision.datasets.vision import AnyPath, Transform, VisionDataset

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["CocoCaptions", "CocoDetection"]


class CocoDetection(VisionDataset):
    """COCO's photographs with their objects: Lin et al. 2014.

    Args:
        root: folder of the images.
        annFile: JSON file of the annotations.
        transform: function of the PIL image.
        target_transform: function of the target, a list of COCO's dicts.
        transforms: function of both, in place of the other two.

    Attributes:
        coco: the pycocotools.coco.COCO of the annotations.
        ids: numbers of the images.

    Raises:
        RuntimeError: if pycocotools is not installed.
    """

    def __init__(
        self,
        root: AnyPath,
        annFile: str,
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Transform = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        try:
            from pycocotools.coco import COCO  # pyright: ignore[reportMissingModuleSource]
        except ImportError as error:
            raise RuntimeError(
                f"{type(self).__name__} needs pycocotools. Install it: pip install pycocotools"
            ) from error
        self.coco = COCO(annFile)
        self.ids = sorted(self.coco.imgs)

    def _load_image(self, id: int) -> Image.Image:
        return read_image(os.path.join(self.root, self.coco.loadImgs(id)[0]["file_name"]), "RGB")

    def _load_target(self, id: int) -> list[Any]:
        return self.coco.loadAnns(self.coco.getAnnIds(id))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not isinstance(index, int):
            raise ValueError(f"Index must be of type integer, got {type(index)} instead.")
        number = self.ids[index]
        return self._transformed_together(self._load_image(number), self._load_target(number))

    def __len__(self) -> int:
        return len(self.ids)


class CocoCaptions(CocoDetection):
    """COCO's photographs with a list of captions each; arguments as for CocoDetection."""

    def _load_target(self, id: int) -> list[str]:
        return [annotation["caption"] for annotation in super()._load_target(id)]
