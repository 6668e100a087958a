"""What segmentation models are made of: a backbone, a classifier of its pixels, an enlargement."""

from __future__ import annotations

from collections import OrderedDict

from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._utils import IntermediateLayerGetter
from rushlight.vision.models.resnet import ResNet


class _SimpleSegmentationModel(nn.Module):
    """Classifies the pixels of a backbone's map, and enlarges the scores to the input's size.

    Args:
        backbone: gives a dict with "out", and "aux" for the second classifier.
        classifier: scores (N, classes, h, w) of "out".
        aux_classifier: the same of "aux", whose loss helps the layers below to learn.

    Returns:
        From forward, a dict of "out", and of "aux" if there is a second classifier, each of scores
        (N, classes, H, W).
    """

    def __init__(
        self,
        backbone: nn.Module,
        classifier: nn.Module,
        aux_classifier: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = classifier
        self.aux_classifier = aux_classifier

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        features = self.backbone(x)
        classifiers = {"out": self.classifier, "aux": self.aux_classifier}
        return OrderedDict(
            (name, enlarged(classifier(features[name]), x))
            for name, classifier in classifiers.items()
            if classifier is not None
        )


def enlarged(scores: Tensor, like: Tensor) -> Tensor:
    """Returns maps bilinearly resized to the height and width of another tensor."""
    return F.interpolate(scores, size=like.shape[-2:], mode="bilinear", align_corners=False)


def resnet_body(backbone: ResNet, aux_loss: bool | None) -> IntermediateLayerGetter:
    """Returns the layers of a ResNet up to the last map, "out", with that before it as "aux"."""
    layers = {"layer4": "out", "layer3": "aux"} if aux_loss else {"layer4": "out"}
    return IntermediateLayerGetter(backbone, layers)
