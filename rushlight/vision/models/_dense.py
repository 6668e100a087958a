"""The decorator of the builders of segmentation models and detectors.

Such a builder takes weights of the whole model, or only of its backbone. A file of a family says
how a model is made of these; what all builders do with weights is here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Optional, TypeVar

from rushlight import nn
from rushlight.vision.models._api import WeightsEnum, register_model
from rushlight.vision.models._utils import _ovewrite_value_param, handle_legacy_interface

__all__ = ["dense_builder", "stages"]

M = TypeVar("M", bound=nn.Module)


def dense_builder(
    weights_enum: type[WeightsEnum],
    backbone_enum: type[WeightsEnum],
    *,
    num_classes: int,
    layers: tuple[int, int] | None = None,
    exact_norm: bool = False,
    legacy_backbone: str = "IMAGENET1K_V1",
) -> Callable[[Callable[..., M]], Callable[..., M]]:
    """Makes a registered builder of a function that makes a model of a backbone.

    The builder takes weights besides the function's arguments. The function is called with them all
    as they are to be, and with is_trained, whether anything will have been trained.

    Args:
        weights_enum: the weights of the whole.
        backbone_enum: those of the backbone.
        num_classes: how many there are when nothing says so.
        layers: of a detector, how many of the backbone's layers may be trained, and how many are.
        exact_norm: whether the weights COCO_V1 were trained with batch norm without an eps.
        legacy_backbone: name of the weights that pretrained_backbone=True meant.
    """
    legacy = weights_enum.__members__.get("COCO_V1", next(iter(weights_enum)))

    def decorate(make: Callable[..., M]) -> Callable[..., M]:
        parameters = inspect.signature(make).parameters

        @functools.wraps(make)
        def build(*, weights: Any = None, **kwargs: Any) -> M:
            weights = weights_enum.verify(weights)
            given = kwargs.get("weights_backbone", parameters["weights_backbone"].default)
            kwargs["weights_backbone"] = backbone_enum.verify(given)
            if weights is not None:
                kwargs["weights_backbone"] = None
                _fit_to_weights(kwargs, parameters.keys(), weights)
            elif kwargs.get("num_classes") is None:
                kwargs["num_classes"] = num_classes
            is_trained = weights is not None or kwargs["weights_backbone"] is not None
            if layers is not None:
                from rushlight.vision.models.detection.backbone_utils import (
                    _validate_trainable_layers,
                )

                kwargs["trainable_backbone_layers"] = _validate_trainable_layers(
                    is_trained, kwargs.get("trainable_backbone_layers"), *layers
                )
            model = make(is_trained=is_trained, **kwargs)
            if weights is not None:
                progress = kwargs.get("progress", True)
                model.load_state_dict(weights.get_state_dict(progress=progress, check_hash=True))
                if exact_norm and weights == legacy:
                    from rushlight.vision.models.detection._utils import overwrite_eps

                    overwrite_eps(model, 0.0)
            return model

        weights = inspect.Parameter(
            "weights",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Optional[weights_enum],  # noqa: UP045
        )
        shown = [p for name, p in parameters.items() if name != "is_trained"]
        build.__signature__ = inspect.Signature([weights, *shown])  # pyright: ignore[reportAttributeAccessIssue]
        take_old_arguments = handle_legacy_interface(
            weights=("pretrained", legacy),
            weights_backbone=("pretrained_backbone", backbone_enum[legacy_backbone]),
        )
        return register_model()(take_old_arguments(build))

    return decorate


def stages(features: nn.Sequential) -> list[int]:
    """Returns which blocks of a MobileNet begin a stage: the first, those that halve, the last."""
    strided = [i for i, block in enumerate(features) if getattr(block, "_is_cn", False)]
    return [0, *strided, len(features) - 1]


def _fit_to_weights(kwargs: dict[str, Any], names: Any, weights: WeightsEnum) -> None:
    """Sets the arguments that the weights ask for, unless other values were given."""
    wanted: dict[str, Any] = {"num_classes": len(weights.meta["categories"])}
    if "num_keypoints" in names:
        wanted["num_keypoints"] = len(weights.meta["keypoint_names"])
    if "aux_loss" in names:
        wanted["aux_loss"] = True
    for name, value in wanted.items():
        kwargs[name] = _ovewrite_value_param(name, kwargs.get(name), value)
