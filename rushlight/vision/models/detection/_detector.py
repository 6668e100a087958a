"""What all detectors do with images and targets, and the base of those with a single stage."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from rushlight import Tensor, nn
from rushlight.vision.models.detection.image_list import ImageList
from rushlight.vision.models.detection.transform import GeneralizedRCNNTransform

__all__ = ["Detector", "SingleStageDetector", "check_anchor_generator", "check_backbone"]

Target = dict[str, Tensor]
Sizes = list[tuple[int, int]]


def check_backbone(backbone: nn.Module, op: str) -> None:
    """Refuses a backbone that does not say its number of channels."""
    if not hasattr(backbone, "out_channels"):
        raise ValueError(
            f"{op}: backbone should contain an attribute out_channels specifying the number of "
            "output channels (assumed to be the same for all the levels)."
        )


def check_anchor_generator(generator: Any, kinds: type | tuple[type, ...], op: str) -> None:
    """Refuses what makes no anchors."""
    if generator is not None and not isinstance(generator, kinds):
        raise TypeError(
            f"{op}: anchor_generator should be of type AnchorGenerator or None instead of "
            f"{type(generator)}."
        )


class Detector(nn.Module):
    """Finds things in images of any sizes: the checks of its arguments, and its transform."""

    transform: GeneralizedRCNNTransform

    def _check_targets(self, images: list[Tensor], targets: Any) -> None:
        name = type(self).__name__
        if targets is None:
            raise AssertionError(f"{name}: targets should not be none when in training mode.")
        if len(targets) != len(images):
            raise AssertionError(
                f"{name}: there are {len(images)} images, but {len(targets)} targets."
            )
        for target in targets:
            boxes = target["boxes"]
            if not isinstance(boxes, Tensor):
                raise AssertionError(
                    f"{name}: Expected target boxes to be of type Tensor, got {type(boxes)}."
                )
            if boxes.dim() != 2 or boxes.shape[-1] != 4:
                raise AssertionError(
                    f"{name}: Expected target boxes to be a tensor of shape [N, 4], got "
                    f"{tuple(boxes.shape)}."
                )

    def _check_boxes(self, targets: list[Target]) -> None:
        """Refuses boxes without an area, which nothing can be learned from."""
        for i, target in enumerate(targets):
            boxes = target["boxes"]
            flat = (boxes[:, 2:] <= boxes[:, :2]).any(dim=1)
            if flat.any():
                box = boxes[flat][0].tolist()
                raise AssertionError(
                    f"{type(self).__name__}: All bounding boxes should have positive height and "
                    f"width. Found invalid box {box} for target at index {i}."
                )

    def _prepare(
        self, images: list[Tensor], targets: list[Target] | None
    ) -> tuple[Sizes, ImageList, list[Target] | None]:
        """The sizes of the images as they were given, the images as a batch, and the targets."""
        if self.training:
            self._check_targets(images, targets)
        sizes = []
        for image in images:
            if image.dim() < 2:
                raise AssertionError(
                    f"{type(self).__name__}: expecting the last two dimensions of the Tensor to be "
                    f"H and W instead got {tuple(image.shape)}."
                )
            sizes.append((image.shape[-2], image.shape[-1]))
        batch, targets = self.transform(images, targets)
        if targets is not None:
            self._check_boxes(targets)
        return sizes, batch, targets


class SingleStageDetector(Detector):
    """Finds things by what a head says of each anchor at once.

    A subclass says what its loss is, and how the head's numbers become detections.
    """

    backbone: nn.Module
    head: nn.Module
    anchor_generator: nn.Module

    def compute_loss(
        self,
        targets: list[Target],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        num_anchors_per_level: list[int],
    ) -> dict[str, Tensor]:
        """Returns losses by name."""
        raise NotImplementedError

    def postprocess_detections(
        self,
        head_outputs: dict[str, list[Tensor]],
        anchors: list[list[Tensor]],
        image_shapes: Sizes,
    ) -> list[Target]:
        """Returns the detections of each image.

        Args:
            head_outputs: (N, anchors of the map, numbers) for each map.
            anchors: for each image, those of each map.
            image_shapes: (height, width) of each image.
        """
        raise NotImplementedError

    def forward(
        self, images: list[Tensor], targets: list[Target] | None = None
    ) -> dict[str, Tensor] | list[Target]:
        """Returns losses by name while training, and else the detections of each image.

        Args:
            images: (C, H, W) each, of numbers from 0 to 1.
            targets: for each image a dict of "boxes" (L, 4) in pixels and "labels" (L,), int64.

        Returns:
            The losses, or for each image a dict of "boxes" (L, 4), "scores" (L,), "labels" (L,).

        Raises:
            AssertionError: if targets are missing or have another form.
        """
        sizes, batch, targets = self._prepare(images, targets)
        features = self.backbone(batch.tensors)
        maps = [features] if isinstance(features, Tensor) else list(features.values())
        head_outputs = self.head(maps)
        anchors = self.anchor_generator(batch, maps)
        counts = self._anchors_per_level(maps, anchors[0])
        if self.training:
            assert targets is not None
            return self.compute_loss(targets, head_outputs, anchors, counts)
        split = {name: list(out.split(counts, 1)) for name, out in head_outputs.items()}
        levels = [list(of_image.split(counts)) for of_image in anchors]
        detections = self.postprocess_detections(split, levels, batch.image_sizes)
        return self.transform.postprocess(detections, batch.image_sizes, sizes)

    def _anchors_per_level(self, maps: list[Tensor], anchors: Tensor) -> list[int]:
        per_place = self.anchor_generator.num_anchors_per_location()
        if len(per_place) != len(maps):
            per_place = [len(anchors) // sum(m.shape[2] * m.shape[3] for m in maps)] * len(maps)
        return [m.shape[2] * m.shape[3] * a for m, a in zip(maps, per_place, strict=True)]


def one_map_as_dict(features: Any) -> dict[str, Tensor]:
    """Returns the maps of a backbone by name; a backbone may give only one."""
    return OrderedDict([("0", features)]) if isinstance(features, Tensor) else features
