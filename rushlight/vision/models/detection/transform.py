"""What detectors do with images before and with detections after: sizes, batches, normalization."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models.detection.image_list import ImageList
from rushlight.vision.models.detection.masks import paste_masks_in_image

__all__ = ["GeneralizedRCNNTransform", "resize_boxes", "resize_keypoints"]

Target = dict[str, Tensor]


class GeneralizedRCNNTransform(nn.Module):
    """Normalizes images and resizes them and their targets, and moves detections back.

    Args:
        min_size: the length that the shorter side gets; of several, one is drawn while training,
            and the last one is taken else.
        max_size: what the longer side may have at most.
        image_mean: for each channel, what is taken off.
        image_std: for each channel, what is divided by.
        size_divisible: batches have sizes that this divides.
        fixed_size: (width, height) of all images, in place of min_size and max_size.
        _skip_resize: whether images keep their sizes while training.
    """

    def __init__(
        self,
        min_size: int | tuple[int, ...] | list[int],
        max_size: int,
        image_mean: list[float],
        image_std: list[float],
        size_divisible: int = 32,
        fixed_size: tuple[int, int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.min_size = tuple(min_size) if isinstance(min_size, (list, tuple)) else (min_size,)
        self.max_size = max_size
        self.image_mean = image_mean
        self.image_std = image_std
        self.size_divisible = size_divisible
        self.fixed_size = fixed_size
        self._skip_resize = kwargs.pop("_skip_resize", False)

    def forward(
        self, images: list[Tensor], targets: list[Target] | None = None
    ) -> tuple[ImageList, list[Target] | None]:
        """Returns the images as a batch, and copies of the targets that fit them.

        Raises:
            ValueError: if an image is not (C, H, W).
            TypeError: if an image is not of floats.
        """
        if targets is not None:
            targets = [dict(target) for target in targets]
        resized = []
        for i, image in enumerate(images):
            if image.dim() != 3:
                raise ValueError(
                    "GeneralizedRCNNTransform: images is expected to be a list of 3d tensors of "
                    f"shape [C, H, W], got {tuple(image.shape)}."
                )
            target = None if targets is None else targets[i]
            image, target = self.resize(self.normalize(image), target)
            resized.append(image)
            if targets is not None and target is not None:
                targets[i] = target
        sizes = [(image.shape[-2], image.shape[-1]) for image in resized]
        return ImageList(self.batch_images(resized, self.size_divisible), sizes), targets

    def normalize(self, image: Tensor) -> Tensor:
        """Returns (image - mean) / std."""
        if not image.is_floating_point():
            raise TypeError(
                "GeneralizedRCNNTransform: Expected input images to be of floating type (in range "
                f"[0, 1]), but found type {image.dtype} instead."
            )
        mean, std = (
            rl.tensor(value, dtype=image.dtype, device=image.device)[:, None, None]
            for value in (self.image_mean, self.image_std)
        )
        return (image - mean) / std

    def torch_choice(self, k: tuple[int, ...]) -> int:
        """Returns one of some numbers, drawn at random."""
        return k[int(rl.empty(1).uniform_(0.0, float(len(k))).item())]

    def resize(self, image: Tensor, target: Target | None = None) -> tuple[Tensor, Target | None]:
        """Returns an image (C, H, W) of the size it should have, and its target."""
        old = image.shape[-2:]
        if self.training and self._skip_resize:
            return image, target
        how = self._new_size(old)
        image = F.interpolate(image[None], mode="bilinear", align_corners=False, **how)[0]
        if target is None:
            return image, None
        new = image.shape[-2:]
        target["boxes"] = resize_boxes(target["boxes"], old, new)
        if "masks" in target:
            masks = F.interpolate(target["masks"][:, None].float(), **how)
            target["masks"] = masks[:, 0].byte()
        if "keypoints" in target:
            target["keypoints"] = resize_keypoints(target["keypoints"], old, new)
        return image, target

    def _new_size(self, size: Any) -> dict[str, Any]:
        """What interpolate is told."""
        if self.fixed_size is not None:
            width, height = self.fixed_size
            return {"size": [height, width]}
        shortest = self.torch_choice(self.min_size) if self.training else self.min_size[-1]
        scale = min(shortest / min(size), self.max_size / max(size))
        return {"scale_factor": scale, "recompute_scale_factor": True}

    def batch_images(self, images: list[Tensor], size_divisible: int = 32) -> Tensor:
        """Returns images in the top left corners of one batch of zeros."""
        height, width = (
            math.ceil(max(image.shape[d] for image in images) / size_divisible) * size_divisible
            for d in (1, 2)
        )
        batch = images[0].new_zeros((len(images), images[0].shape[0], height, width))
        for image, place in zip(images, batch, strict=True):
            place[:, : image.shape[1], : image.shape[2]].copy_(image)
        return batch

    def postprocess(
        self,
        result: list[Target],
        image_shapes: list[tuple[int, int]],
        original_image_sizes: list[tuple[int, int]],
    ) -> list[Target]:
        """Returns detections in the coordinates of the images that were given."""
        if self.training:
            return result
        sizes = zip(image_shapes, original_image_sizes, strict=True)
        for found, (here, there) in zip(result, sizes, strict=True):
            found["boxes"] = resize_boxes(found["boxes"], here, there)
            if "masks" in found:
                found["masks"] = paste_masks_in_image(found["masks"], found["boxes"], there)
            if "keypoints" in found:
                found["keypoints"] = resize_keypoints(found["keypoints"], here, there)
        return result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n"
            f"    Normalize(mean={self.image_mean}, std={self.image_std})\n"
            f"    Resize(min_size={self.min_size}, max_size={self.max_size}, mode='bilinear')\n)"
        )


def _ratios(original_size: Any, new_size: Any, like: Tensor) -> Tensor:
    """By how much x and y grow."""
    growth = [new / old for new, old in zip(new_size, original_size, strict=True)]
    dtype = like.dtype if like.is_floating_point() else rl.float32
    return rl.tensor(growth[::-1], dtype=dtype, device=like.device)


def resize_boxes(boxes: Tensor, original_size: Any, new_size: Any) -> Tensor:
    """Returns the boxes (N, 4) of an image (height, width) that gets another size."""
    return boxes * _ratios(original_size, new_size, boxes).repeat(2)


def resize_keypoints(keypoints: Tensor, original_size: Any, new_size: Any) -> Tensor:
    """Returns the keypoints (N, K, 3) of x, y, visibility of an image that gets another size."""
    ratios = _ratios(original_size, new_size, keypoints)
    return keypoints * F.pad(ratios, (0, 1), value=1.0)
