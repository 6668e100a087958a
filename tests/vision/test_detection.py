"""Detectors and segmentation models on small images: losses, detections, mistakes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.vision import models
from rushlight.vision.models import detection, segmentation
from rushlight.vision.models.detection import anchor_utils, keypoints, masks
from rushlight.vision.models.detection._utils import (
    BalancedPositiveNegativeSampler,
    BoxCoder,
    BoxLinearCoder,
    Matcher,
    SSDMatcher,
)
from rushlight.vision.models.detection.image_list import ImageList
from rushlight.vision.models.detection.transform import GeneralizedRCNNTransform
from rushlight.vision.ops import MultiScaleRoIAlign
from rushlight.vision.ops.feature_pyramid_network import LastLevelP6P7

SIZES = ((48, 40), (40, 56))


def images() -> list[Any]:
    torch.manual_seed(0)
    return [torch.rand(3, *size) for size in SIZES]


def targets() -> list[dict[str, Any]]:
    every = torch.tensor([[4.0, 4.0, 30.0, 36.0], [12.0, 20.0, 36.0, 38.0]])
    made = []
    for (height, width), count in zip(SIZES, (2, 1), strict=True):
        boxes = every[:count]
        filled = torch.zeros(count, height, width, dtype=torch.uint8)
        for mask, (x1, y1, x2, y2) in zip(filled, boxes.int().tolist(), strict=True):
            mask[y1:y2, x1:x2] = 1
        points = torch.ones(count, 3, 3)
        points[:, :, :2] = (boxes[:, None, :2] + boxes[:, None, 2:]) / 2
        labels = torch.tensor([1, 2])[:count]
        made.append({"boxes": boxes, "labels": labels, "masks": filled, "keypoints": points})
    return made


class Pyramid(nn.Module):
    """Maps of 1 / 4 and 1 / 8 of the image."""

    out_channels = 16

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 5, stride=4, padding=2), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, stride=2, padding=1), nn.ReLU())

    def forward(self, x: Any) -> dict[str, Any]:
        first = self.first(x)
        return {"0": first, "1": self.second(first)}


def anchors(sizes: tuple[tuple[int, ...], ...], ratios: tuple[float, ...] = (1.0,)) -> Any:
    return anchor_utils.AnchorGenerator(sizes, (ratios,) * len(sizes))


def make(kind: str) -> nn.Module:
    """A detector so small that a step takes milliseconds."""
    torch.manual_seed(1)
    options: dict[str, Any] = {"min_size": 40, "max_size": 64}
    if kind == "SSD":
        boxes = anchor_utils.DefaultBoxGenerator([[2], [2]])
        backbone = Pyramid()
        backbone.out_channels = [16, 16]
        return detection.SSD(backbone, boxes, (48, 48), 3)
    if kind == "RetinaNet":
        made = anchors(((16,), (32,)), (0.5, 1.0))
        return detection.RetinaNet(Pyramid(), 3, anchor_generator=made, **options)
    if kind == "FCOS":
        head = fcos_head(16)
        made = anchors(((4,), (8,)))
        return detection.FCOS(Pyramid(), 3, anchor_generator=made, head=head, **options)
    pool = MultiScaleRoIAlign(["0", "1"], 4, 2)
    options |= {
        "rpn_anchor_generator": anchors(((16,), (32,)), (0.5, 1.0)),
        "box_roi_pool": pool,
        "box_head": nn.Sequential(nn.Flatten(), nn.Linear(16 * 16, 32), nn.ReLU()),
        "box_predictor": detection.faster_rcnn.FastRCNNPredictor(32, 3),
        "rpn_post_nms_top_n_train": 50,
        "box_score_thresh": 0.0,
    }
    if kind == "MaskRCNN":
        options["mask_roi_pool"] = MultiScaleRoIAlign(["0", "1"], 4, 2)
        options["mask_head"] = detection.mask_rcnn.MaskRCNNHeads(16, (8,), 1)
        options["mask_predictor"] = detection.mask_rcnn.MaskRCNNPredictor(8, 8, 3)
    if kind == "KeypointRCNN":
        options["keypoint_roi_pool"] = MultiScaleRoIAlign(["0", "1"], 4, 2)
        options["keypoint_head"] = detection.keypoint_rcnn.KeypointRCNNHeads(16, (8,))
        options["keypoint_predictor"] = detection.keypoint_rcnn.KeypointRCNNPredictor(8, 3)
    return getattr(detection, kind)(Pyramid(), **options)


def fcos_head(channels: int) -> nn.Module:
    head = detection.fcos.FCOSHead(32, 1, 3, 1)
    norm = nn.BatchNorm2d
    head.classification_head = detection.fcos.FCOSClassificationHead(
        channels, 1, 3, 1, norm_layer=norm
    )
    head.regression_head = detection.fcos.FCOSRegressionHead(channels, 1, 1, norm_layer=norm)
    return head


KINDS = ["FasterRCNN", "MaskRCNN", "KeypointRCNN", "RetinaNet", "FCOS", "SSD"]


@pytest.mark.parametrize("kind", KINDS)
def test_losses_fall_and_detections_lie_in_the_image(kind: str) -> None:
    model = make(kind).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = []
    for _ in range(10):
        losses = model(images(), targets())
        assert all(torch.isfinite(loss) for loss in losses.values())
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        history.append(total.item())
    assert min(history[-3:]) < 0.9 * history[0]

    found = model.eval()(images())
    assert len(found) == 2
    for of_image, (height, width) in zip(found, SIZES, strict=True):
        boxes, scores, labels = (of_image[key] for key in ("boxes", "scores", "labels"))
        assert len(boxes) == len(scores) == len(labels)
        assert bool((boxes >= -1e-4).all())
        assert bool((boxes <= torch.tensor([width, height, width, height]) + 1e-3).all())
        assert bool((boxes[:, 2:] >= boxes[:, :2]).all())
        assert scores.tolist() == sorted(scores.tolist(), reverse=True)
        assert set(labels.tolist()) <= {0, 1, 2}
        if kind == "MaskRCNN":
            assert of_image["masks"].shape == (len(boxes), 1, height, width)
            assert of_image["masks"].min() >= 0 and of_image["masks"].max() <= 1
        if kind == "KeypointRCNN":
            assert of_image["keypoints"].shape == (len(boxes), 3, 3)
            assert of_image["keypoints_scores"].shape == (len(boxes), 3)


@pytest.mark.parametrize("kind", KINDS)
def test_images_without_targets(kind: str) -> None:
    model = make(kind).train()
    wanted = targets()
    wanted[1] = {key: value[:0] for key, value in wanted[1].items()}
    losses = model(images(), wanted)
    assert all(torch.isfinite(loss) for loss in losses.values())
    none = [{key: value[:0] for key, value in target.items()} for target in targets()]
    losses = model(images(), none)
    assert all(torch.isfinite(loss) for loss in losses.values())
    sum(losses.values()).backward()


def test_detectors_can_be_copied_and_pickled() -> None:
    model = make("MaskRCNN").eval()
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    first, second = model(images()), again(images())
    assert torch.equal(first[0]["boxes"], second[0]["boxes"])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t: None, AssertionError, "targets should not be none"),
        (lambda t: t[:1], AssertionError, "2 images, but 1 targets"),
        (lambda t: [{"labels": x["labels"]} for x in t], KeyError, "boxes"),
        (lambda t: [{"boxes": x["boxes"]} for x in t], KeyError, "labels key"),
        (lambda t: [x | {"boxes": x["boxes"][:, :3]} for x in t], AssertionError, r"\[N, 4\]"),
        (lambda t: [x | {"boxes": [1, 2]} for x in t], AssertionError, "of type Tensor"),
        (lambda t: [x | {"boxes": x["boxes"] * 0} for x in t], AssertionError, "positive height"),
        (lambda t: [x | {"labels": x["labels"].int()} for x in t], TypeError, "int64"),
    ],
)
def test_wrong_targets_say_what_is_wrong(change: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make("FasterRCNN").train()(images(), change(targets()))


def test_masks_and_images_are_checked() -> None:
    wanted = [{k: v for k, v in t.items() if k != "masks"} for t in targets()]
    with pytest.raises(ValueError, match="masks key"):
        make("MaskRCNN").train()(images(), wanted)
    with pytest.raises(TypeError, match="floating type"):
        make("FasterRCNN").eval()([image.long() for image in images()])
    with pytest.raises(ValueError, match="3d tensors"):
        make("FasterRCNN").eval()([image[0] for image in images()])


def test_constructors_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="out_channels"):
        detection.FasterRCNN(nn.ReLU(), 2)
    with pytest.raises(ValueError, match="should not be None"):
        detection.FasterRCNN(Pyramid())
    with pytest.raises(ValueError, match="should be None"):
        detection.FasterRCNN(Pyramid(), 2, box_predictor=nn.Identity())
    for kind in ("RetinaNet", "FCOS"):
        with pytest.raises(TypeError, match="AnchorGenerator"):
            getattr(detection, kind)(Pyramid(), 2, anchor_generator=3)
    with pytest.raises(AssertionError, match="should be 1"):
        detection.FCOS(Pyramid(), 2, anchor_generator=anchors(((4, 8), (8, 16))))
    with pytest.raises(AssertionError, match="match between the number"):
        anchors(((4,), (8,))).grid_anchors([(2, 2)], [(4, 4)])


# Parts, against NumPy


def test_anchors_are_of_the_sizes_and_ratios() -> None:
    generator = anchor_utils.AnchorGenerator(((32, 64),), ((0.5, 2.0),))
    at_zero = generator.cell_anchors[0].numpy()
    size = at_zero[:, 2:] - at_zero[:, :2]
    np.testing.assert_allclose(size.prod(1) ** 0.5, [32, 64, 32, 64], rtol=0.04)
    np.testing.assert_allclose(size[:, 1] / size[:, 0], [0.5, 0.5, 2, 2], rtol=0.06)
    every = generator(
        ImageList(torch.zeros(2, 3, 30, 40), [(30, 40)] * 2), [torch.zeros(2, 1, 3, 2)]
    )
    assert len(every) == 2 and every[0].shape == (3 * 2 * 4, 4)
    np.testing.assert_allclose(every[0][4:8].numpy() - at_zero, [[20, 0, 20, 0]] * 4)
    np.testing.assert_allclose(every[0][8:12].numpy() - at_zero, [[0, 10, 0, 10]] * 4)


def test_default_boxes_fill_the_image() -> None:
    generator = anchor_utils.DefaultBoxGenerator([[2], [2]], clip=True)
    maps = [torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, 1, 1)]
    boxes = generator(ImageList(torch.zeros(1, 3, 100, 200), [(100, 200)]), maps)[0].numpy()
    assert boxes.shape == (4 * (16 + 1), 4)
    centers = (boxes[:, :2] + boxes[:, 2:]) / 2
    np.testing.assert_allclose(centers[-1], [100, 50], atol=1e-3)
    np.testing.assert_allclose(centers[4], [75, 12.5], atol=1e-3)
    ratio = (boxes[2, 2] - boxes[2, 0]) / (boxes[2, 3] - boxes[2, 1])
    assert ratio == pytest.approx(2 * 200 / 100, rel=1e-4)


def test_coders_undo_themselves() -> None:
    generator = np.random.default_rng(0)

    def boxes(count: int) -> Any:
        corner = generator.uniform(0, 50, (count, 2))
        return torch.from_numpy(
            np.c_[corner, corner + generator.uniform(3, 40, (count, 2))]
        ).float()

    here, there = boxes(9), boxes(9)
    coder = BoxCoder((10.0, 10.0, 5.0, 5.0))
    codes = coder.encode([there[:4], there[4:]], [here[:4], here[4:]])
    assert [len(c) for c in codes] == [4, 5]
    again = coder.decode(torch.cat(codes), [here[:4], here[4:]])[:, 0]
    np.testing.assert_allclose(again.numpy(), there.numpy(), atol=1e-4)
    for normalize in (False, True):
        linear = BoxLinearCoder(normalize)
        again = linear.decode(linear.encode(here, there), here)
        np.testing.assert_allclose(again.numpy(), there.numpy(), atol=1e-4)
    huge = coder.decode_single(torch.full((1, 4), 1e4), here[:1])
    assert bool(torch.isfinite(huge).all())


def test_matchers() -> None:
    quality = torch.tensor([[0.9, 0.1, 0.45, 0.3], [0.2, 0.05, 0.4, 0.35]])
    assert Matcher(0.5, 0.4)(quality).tolist() == [0, -1, -2, -1]
    assert Matcher(0.5, 0.4, True)(quality).tolist() == [0, -1, 0, -1]
    assert SSDMatcher(0.5)(quality).tolist() == [0, -1, 1, -1]
    with pytest.raises(ValueError, match="ground-truth"):
        Matcher(0.5, 0.4)(quality[:0])
    with pytest.raises(AssertionError, match="low_threshold"):
        Matcher(0.4, 0.5)


def test_the_sampler_keeps_its_share() -> None:
    labels = torch.tensor([1] * 30 + [0] * 50 + [-1] * 20)
    (positive,), (negative,) = BalancedPositiveNegativeSampler(20, 0.25)([labels])
    assert (positive.sum().item(), negative.sum().item()) == (5, 15)
    assert bool((labels[positive.bool()] == 1).all()) and bool((labels[negative.bool()] == 0).all())


def test_the_transform_resizes_and_undoes_it() -> None:
    transform = GeneralizedRCNNTransform(60, 100, [0.0] * 3, [1.0] * 3).eval()
    batch, found = transform(images(), targets())
    assert batch.image_sizes == [(72, 60), (60, 84)]
    assert batch.tensors.shape == (2, 3, 96, 96)
    assert bool((batch.tensors[0, :, 72:] == 0).all())
    assert found[0]["masks"].shape == (2, 72, 60)
    back = transform.postprocess(
        [{"boxes": t["boxes"]} for t in found], batch.image_sizes, list(SIZES)
    )
    for mine, target in zip(back, targets(), strict=True):
        np.testing.assert_allclose(mine["boxes"].numpy(), target["boxes"].numpy(), atol=1e-4)


def test_masks_are_pasted_where_the_box_is() -> None:
    box = torch.tensor([[2.0, 4.0, 12.0, 10.0], [-5.0, -5.0, 3.0, 3.0]])
    pasted = masks.paste_masks_in_image(torch.ones(2, 1, 28, 28), box, (16, 20)).numpy()
    assert pasted.shape == (2, 1, 16, 20)
    assert pasted[0, 0, 5:9, 3:11].min() == 1.0
    outside = pasted[0, 0].copy()
    outside[3:12, 1:14] = 0
    assert outside.max() == 0.0
    assert pasted[1, 0, :2, :2].min() == 1.0


def test_keypoints_come_back_from_heatmaps() -> None:
    boxes = torch.tensor([[10.0, 20.0, 66.0, 76.0]])
    points = torch.tensor(
        [[[31.0, 41.0, 1.0], [66.0, 76.0, 1.0], [0.0, 0.0, 1.0], [31.0, 41.0, 0.0]]]
    )
    pixels, valid = keypoints.keypoints_to_heatmap(points, boxes, 56)
    assert valid.tolist() == [[1, 1, 0, 0]]
    assert pixels[0, :2].tolist() == [21 * 56 + 21, 55 * 56 + 55]
    maps = torch.zeros(1, 1, 56, 56)
    maps[0, 0, 21, 21] = 1.0
    found, scores = keypoints.heatmaps_to_keypoints(maps, boxes)
    np.testing.assert_allclose(found[0, 0].numpy(), [31.5, 41.5, 1.0], atol=1e-4)
    assert scores[0, 0].item() == pytest.approx(1.0, abs=1e-3)


# Builders


def test_builders_of_all_models_on_meta() -> None:
    names = models.list_models(module=detection) + models.list_models(module=segmentation)
    assert len(names) == 18
    with torch.device("meta"):
        for name in names:
            model = models.get_model(name, weights_backbone=None)
            assert isinstance(model, nn.Module)
    weights = models.get_model_weights("fasterrcnn_resnet50_fpn").DEFAULT
    assert len(weights.meta["categories"]) == 91
    with torch.device("meta"), pytest.raises(ValueError, match="num_classes"):
        models.get_model("fasterrcnn_resnet50_fpn", weights="DEFAULT", num_classes=2)


def test_frozen_layers() -> None:
    with torch.device("meta"):
        for layers in range(6):
            backbone = detection.backbone_utils.resnet_fpn_backbone(
                backbone_name="resnet18", weights=None, trainable_layers=layers
            )
            learns = {
                n.split(".")[1]
                for n, p in backbone.body.named_parameters(prefix="b")
                if p.requires_grad
            }
            last = ["layer4", "layer3", "layer2", "layer1", "conv1"][:layers]
            assert learns == set(last)
        with pytest.raises(ValueError, match="Trainable layers"):
            detection.backbone_utils.resnet_fpn_backbone(
                backbone_name="resnet18", weights=None, trainable_layers=6
            )
        with pytest.warns(UserWarning, match="'backbone_name' and 'weights' as positional"):
            detection.backbone_utils.resnet_fpn_backbone("resnet18", None, trainable_layers=2)
        with pytest.warns(UserWarning, match="deprecated"):
            detection.backbone_utils.mobilenet_backbone(
                backbone_name="mobilenet_v2", pretrained=False, fpn=True
            )
        with pytest.warns(UserWarning, match="no effect"):
            detection.retinanet_resnet50_fpn(weights_backbone=None, trainable_backbone_layers=2)
    extra = LastLevelP6P7(8, 8)
    assert extra.use_P5


def test_segmentation_gives_scores_of_the_size_of_the_image() -> None:
    torch.manual_seed(0)
    model = segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=4).eval()
    assert model(torch.rand(2, 3, 33, 41))["out"].shape == (2, 4, 33, 41)
    with pytest.raises(NotImplementedError, match="auxiliary"):
        segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, aux_loss=True)
