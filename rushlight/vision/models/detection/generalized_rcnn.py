"""Detectors of two stages: proposals first, then what they are."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn
from rushlight.vision.models.detection._detector import Detector, Target, one_map_as_dict

__all__ = ["GeneralizedRCNN"]


class GeneralizedRCNN(Detector):
    """A backbone, a network that proposes boxes, and heads that say what is in them.

    Args:
        backbone: maps of images.
        rpn: proposals, as RegionProposalNetwork makes them.
        roi_heads: detections, as RoIHeads makes them.
        transform: what is done with images before and with detections after.
    """

    def __init__(
        self, backbone: nn.Module, rpn: nn.Module, roi_heads: nn.Module, transform: Any
    ) -> None:
        super().__init__()
        self.transform = transform
        self.backbone = backbone
        self.rpn = rpn
        self.roi_heads = roi_heads

    def forward(
        self, images: list[Tensor], targets: list[Target] | None = None
    ) -> dict[str, Tensor] | list[Target]:
        """Returns losses by name while training, and else the detections of each image.

        Args:
            images: (C, H, W) each, of numbers from 0 to 1.
            targets: for each image a dict of "boxes" (L, 4) in pixels, "labels" (L,), int64, and
                what the heads need besides: "masks" (L, H, W) or "keypoints" (L, K, 3).

        Returns:
            The losses, or for each image a dict of "boxes" (L, 4), "labels" (L,), "scores" (L,),
            and "masks" (L, 1, H, W), from 0 to 1, or "keypoints" (L, K, 3) with "keypoints_scores".

        Raises:
            AssertionError: if targets are missing, or boxes have another form.
            KeyError, ValueError: if a key of the targets is missing.
            TypeError: if something has another dtype.
        """
        sizes, batch, targets = self._prepare(images, targets)
        features = one_map_as_dict(self.backbone(batch.tensors))
        proposals, proposal_losses = self.rpn(batch, features, targets)
        found, losses = self.roi_heads(features, proposals, batch.image_sizes, targets)
        if self.training:
            return losses | proposal_losses
        return self.transform.postprocess(found, batch.image_sizes, sizes)
