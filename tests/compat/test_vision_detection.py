"""Detectors and segmentation models against torchvision: names, losses, gradients, detections."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.vision import models

pytorch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision", exc_type=ImportError)
theirs = torchvision.models

pytestmark = pytest.mark.filterwarnings("ignore")

DETECTORS = [
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
    "fcos_resnet50_fpn",
    "keypointrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn_v2",
    "retinanet_resnet50_fpn",
    "retinanet_resnet50_fpn_v2",
    "ssd300_vgg16",
    "ssdlite320_mobilenet_v3_large",
]
SEGMENTERS = [
    "deeplabv3_mobilenet_v3_large",
    "deeplabv3_resnet50",
    "deeplabv3_resnet101",
    "fcn_resnet50",
    "fcn_resnet101",
    "lraspp_mobilenet_v3_large",
]
PARTS = [(name, "detection") for name in DETECTORS] + [
    (name, "segmentation") for name in SEGMENTERS
]


def shapes(
    library: Any, module: Any, name: str, **kwargs: Any
) -> list[tuple[str, tuple[int, ...]]]:
    with library.device("meta"):
        model = getattr(module, name)(weights=None, weights_backbone=None, **kwargs)
    return [(key, tuple(value.shape)) for key, value in model.state_dict().items()]


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_state_dicts_have_the_same_keys(name: str, part: str) -> None:
    kwargs = {"aux_loss": True} if part == "segmentation" and "lraspp" not in name else {}
    reference = shapes(pytorch, getattr(theirs, part), name, **kwargs)
    assert shapes(torch, getattr(models, part), name, **kwargs) == reference


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_builders_take_the_same_arguments(name: str, part: str) -> None:
    ours, reference = (
        list(inspect.signature(getattr(getattr(m, part), name)).parameters.values())
        for m in (models, theirs)
    )
    assert [p.name for p in ours] == [p.name for p in reference]
    assert [p.kind for p in ours] == [p.kind for p in reference]
    defaults = {p.name: str(p.default) for p in reference}
    for p in ours:
        if p.name not in ("num_classes",):  # ours is the number that None means
            assert str(p.default) == defaults[p.name], p.name
    enums = [w for w in dir(getattr(theirs, part)) if w.endswith("_Weights")]
    for enum in enums:
        mine = getattr(getattr(models, part), enum)
        other = getattr(getattr(theirs, part), enum)
        assert {w.name: w.url for w in mine} == {w.name: w.url for w in other}
        assert mine.DEFAULT.name == other.DEFAULT.name
        assert mine.DEFAULT.meta["categories"] == list(other.DEFAULT.meta["categories"])


CLASSES = {
    "detection": ["FasterRCNN", "FCOS", "RetinaNet"],
    "segmentation": ["FCN", "DeepLabV3", "LRASPP"],
}


@pytest.mark.parametrize(("part", "name"), [(p, n) for p, names in CLASSES.items() for n in names])
def test_constructors_take_the_same_arguments(part: str, name: str) -> None:
    ours, reference = (
        inspect.signature(getattr(getattr(m, part), name)).parameters for m in (models, theirs)
    )
    assert list(ours) == list(reference)
    for key, p in ours.items():
        assert p.default == reference[key].default, key


GENERATOR = np.random.default_rng(7)
IMAGES = [GENERATOR.uniform(size=size) for size in ((3, 90, 70), (3, 64, 110))]


def targets(library: Any) -> list[dict[str, Any]]:
    every = np.array([[10, 10, 50, 60], [30, 5, 60, 45], [2, 20, 22, 38]], dtype=np.float64)
    made = []
    for image, boxes in zip(IMAGES, (every, every[:2]), strict=True):
        masks = np.zeros((len(boxes), *image.shape[1:]), dtype=np.uint8)
        for mask, (x1, y1, x2, y2) in zip(masks, boxes.astype(int), strict=True):
            mask[y1:y2, x1:x2] = 1
        points = np.ones((len(boxes), 4, 3), dtype=np.float32)
        # Nowhere near the edge of a pixel of a heatmap, where roundings decide.
        points[..., :2] = boxes[:, None, :2] + 0.4 + np.arange(4)[:, None] * [5.3, 3.1]
        labels = np.array([1, 2, 1])[: len(boxes)]
        arrays = {"boxes": boxes, "labels": labels, "masks": masks, "keypoints": points}
        made.append({key: library.from_numpy(value.copy()) for key, value in arrays.items()})
    return made


def make(m: Any, library: Any, kind: str) -> Any:
    """A detector with a small backbone. It learns from all boxes, so that nothing is drawn."""
    d = m.detection
    utils = __import__(f"{d.__name__}.backbone_utils", fromlist=["x"])
    if kind in ("ssd300", "ssdlite320"):
        name = {"ssd300": "ssd300_vgg16", "ssdlite320": "ssdlite320_mobilenet_v3_large"}[kind]
        return getattr(d, name)(weights=None, weights_backbone=None, num_classes=3)
    options: dict[str, Any] = {"min_size": 96, "max_size": 200}
    if kind in ("RetinaNet", "FCOS"):
        fpn = __import__(
            m.__name__.replace("models", "ops") + ".feature_pyramid_network", fromlist="x"
        )
        backbone = utils.resnet_fpn_backbone(
            backbone_name="resnet18",
            weights=None,
            norm_layer=library.nn.BatchNorm2d,
            trainable_layers=5,
            returned_layers=[2, 3, 4],
            extra_blocks=fpn.LastLevelP6P7(256, 256),
        )
        return getattr(d, kind)(backbone, 3, score_thresh=0.01, **options)
    backbone = utils.resnet_fpn_backbone(
        backbone_name="resnet18",
        weights=None,
        norm_layer=library.nn.BatchNorm2d,
        trainable_layers=5,
    )
    options |= {"rpn_batch_size_per_image": 10**6, "rpn_positive_fraction": 1.0}
    options |= {"box_batch_size_per_image": 10**6, "box_positive_fraction": 1.0}
    options |= {"rpn_post_nms_top_n_train": 60, "box_detections_per_img": 30}
    if kind == "KeypointRCNN":
        options["num_keypoints"] = 4
    return getattr(d, kind)(backbone, 3, **options)


# Factors of the last layers, so that scores are neither all alike nor all 0 or 1.
SPREAD = {"ssd300": 0.1, "ssdlite320": 3.0}


def pair(kind: str) -> tuple[Any, Any]:
    """Both libraries' model with the same weights, and norms that suit the images."""
    pytorch.manual_seed(3)
    reference = make(theirs, pytorch, kind).double()
    norms = [n for n in reference.modules() if isinstance(n, pytorch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
    reference.train()
    with pytorch.no_grad():
        batch, _ = reference.transform([pytorch.from_numpy(image) for image in IMAGES])
        reference.backbone(batch.tensors)
        for name, parameter in reference.named_parameters():
            if parameter.dim() > 1 and any(
                k in name for k in ("cls", "bbox", "score", "module_list")
            ):
                parameter.mul_(SPREAD.get(kind, 10.0))
    ours = make(models, torch, kind).double()
    state = reference.state_dict()
    ours.load_state_dict({key: torch.from_numpy(value.numpy()) for key, value in state.items()})
    return ours, reference


KINDS = ["FasterRCNN", "MaskRCNN", "KeypointRCNN", "RetinaNet", "FCOS", "ssd300", "ssdlite320"]


@pytest.mark.parametrize("kind", KINDS)
def test_detectors_agree(kind: str) -> None:
    ours, reference = pair(kind)
    ours.eval()
    reference.eval()
    with torch.no_grad(), pytorch.no_grad():
        found = ours([torch.from_numpy(image) for image in IMAGES])
        expected = reference([pytorch.from_numpy(image) for image in IMAGES])
    for mine, other in zip(found, expected, strict=True):
        assert list(mine) == list(other)
        count = len(other["scores"])
        assert count > 0
        assert abs(len(mine["scores"]) - count) <= count * 0.02 + 1
        # Scores that are almost the same may change places: each detection has its like.
        boxes, scores = (mine[k].numpy() for k in ("boxes", "scores"))
        same = 0
        for box, score, label in zip(other["boxes"], other["scores"], other["labels"], strict=True):
            near = np.abs(boxes - box.numpy()).max(1) < 0.05
            near &= np.abs(scores - score.item()) < 2e-3
            same += bool((near & (mine["labels"].numpy() == label.item())).any())
        assert same >= 0.9 * count
        for key in ("masks", "keypoints"):
            if key in other:
                assert tuple(mine[key].shape)[1:] == tuple(other[key].shape)[1:]
    for model in (ours, reference):
        model.train()
        for module in model.modules():
            if "BatchNorm" in type(module).__name__:
                module.eval()
        model.transform.min_size = model.transform.min_size[-1:]
    mine = ours([torch.from_numpy(image) for image in IMAGES], targets(torch))
    other = reference([pytorch.from_numpy(image) for image in IMAGES], targets(pytorch))
    assert set(mine) == set(other)
    for key, value in other.items():
        assert mine[key].item() == pytest.approx(value.item(), rel=2e-3, abs=1e-5), key
    sum(mine.values()).backward()
    sum(other.values()).backward()
    gradients = dict(ours.named_parameters())
    for name, parameter in reference.named_parameters():
        if parameter.grad is None:
            assert gradients[name].grad is None
            continue
        # A relu may turn at a rounding, so single elements may differ.
        expected_grad = parameter.grad.numpy()
        off = np.linalg.norm(gradients[name].grad.numpy() - expected_grad)
        assert off <= 0.1 * np.linalg.norm(expected_grad) + 1e-4, name


@pytest.mark.parametrize(
    "name", ["fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]
)
def test_segmentation_agrees(name: str) -> None:
    kwargs: dict[str, Any] = {"weights": None, "weights_backbone": None, "num_classes": 5}
    if "lraspp" not in name:
        kwargs["aux_loss"] = True
    reference = getattr(theirs.segmentation, name)(**kwargs).eval()
    ours = getattr(models.segmentation, name)(**kwargs).eval()
    state = reference.state_dict()
    ours.load_state_dict({key: torch.from_numpy(value.numpy()) for key, value in state.items()})
    image = GENERATOR.normal(size=(1, 3, 57, 65)).astype(np.float32)
    with torch.no_grad(), pytorch.no_grad():
        found, expected = ours(torch.from_numpy(image)), reference(pytorch.from_numpy(image))
    assert list(found) == list(expected)
    for key, value in expected.items():
        scale = value.abs().max().item()
        np.testing.assert_allclose(found[key].numpy(), value.numpy(), atol=1e-4 * scale)


def wrong_targets() -> dict[str, Any]:
    def change(**values: Any) -> Any:
        def changed(library: Any) -> Any:
            made = targets(library)
            for key, value in values.items():
                made[0][key] = value(library, made[0][key])
            return made

        return changed

    return {
        "none": lambda library: None,
        "shape": change(boxes=lambda library, b: b[:, :3]),
        "no tensor": change(boxes=lambda library, b: [[0, 0, 1, 1]]),
        "flat box": change(boxes=lambda library, b: library.zeros(3, 4)),
        "int32 labels": change(labels=lambda library, k: k.int()),
        "missing": lambda library: [{"boxes": t["boxes"]} for t in targets(library)],
    }


@pytest.mark.parametrize("mistake", list(wrong_targets()))
def test_wrong_targets_raise_the_same_classes(mistake: str) -> None:
    raised = []
    for m, library in ((theirs, pytorch), (models, torch)):
        model = make(m, library, "MaskRCNN").train()
        images = [library.from_numpy(image) for image in IMAGES]
        try:
            model(images, wrong_targets()[mistake](library))
        except Exception as error:
            raised.append(type(error))
    assert len(raised) == 2 and raised[0] is raised[1]


def test_wrong_images_raise_the_same_classes() -> None:
    for change in (lambda i: i[0], lambda i: i.long(), lambda i: i[0, 0]):
        raised = []
        for m, library in ((theirs, pytorch), (models, torch)):
            model = make(m, library, "FasterRCNN").eval()
            try:
                model([change(library.from_numpy(image)) for image in IMAGES])
            except Exception as error:
                raised.append(type(error))
        assert len(raised) == 2 and raised[0] is raised[1]
