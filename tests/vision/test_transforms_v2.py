"""Transforms of samples: what happens to an image happens to its masks, boxes and points."""

import pickle

import numpy as np
import pytest
from PIL import Image

import rushlight as torch
from rushlight.vision import tv_tensors as tv
from rushlight.vision.transforms import v2
from rushlight.vision.transforms.v2 import _utils
from rushlight.vision.transforms.v2 import functional as F

CANVAS = (24, 32)
FORMATS = [format.value for format in tv.BoundingBoxFormat]


def box_at(left: int, top: int, right: int, bottom: int) -> tv.BoundingBoxes:
    return tv.BoundingBoxes([[left, top, right, bottom]], format="XYXY", canvas_size=CANVAS)


def mask_of(box: tv.BoundingBoxes) -> tv.Mask:
    left, top, right, bottom = box[0].tolist()
    mask = torch.zeros(1, *box.canvas_size, dtype=torch.uint8)
    mask[:, top:bottom, left:right] = 1
    return tv.Mask(mask)


def bounds(mask: torch.Tensor) -> list[int]:
    """Left, top, right and bottom of what is set in a mask."""
    _, rows, columns = mask.nonzero().T
    return [int(t) for t in (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)]


GEOMETRY = [
    lambda value: F.horizontal_flip(value),
    lambda value: F.vertical_flip(value),
    lambda value: F.crop(value, 2, 3, 18, 20),
    lambda value: F.center_crop(value, [20, 40]),
    lambda value: F.pad(value, [1, 2, 3, 4]),
    lambda value: F.resize(value, [48, 64]),
    lambda value: F.resized_crop(value, 2, 2, 20, 20, [40, 40]),
    lambda value: F.affine(value, 0, [3, -2], 1.0, [0.0, 0.0]),
    lambda value: F.rotate(value, 180),
    lambda value: F.rotate(value, 90, expand=True),
    lambda value: F.perspective(value, None, None, coefficients=[1, 0, 4, 0, 1, -3, 0, 0]),
    lambda value: F.elastic(value, torch.zeros(1, *CANVAS, 2) + torch.tensor([0.125, 0.25])),
]


@pytest.mark.parametrize("index", range(len(GEOMETRY)))
@pytest.mark.parametrize("format", ["XYXY", "XYWH", "CXCYWH"])
def test_boxes_go_where_their_pixels_go(index, format) -> None:
    box = box_at(8, 6, 18, 14)
    mask = GEOMETRY[index](mask_of(box))
    moved = GEOMETRY[index](F.convert_bounding_box_format(box, new_format=format))
    assert moved.format.value == format
    assert moved.canvas_size == tuple(mask.shape[-2:])
    corners = F.convert_bounding_box_format(moved, new_format="XYXY")[0].tolist()
    # Integers are truncated, and a displacement is no exact number of pixels.
    np.testing.assert_allclose(corners, bounds(mask), atol=int(index == len(GEOMETRY) - 1))


@pytest.mark.parametrize("index", range(len(GEOMETRY)))
def test_points_go_where_their_pixel_goes(index) -> None:
    mask = torch.zeros(1, *CANVAS)
    mask[0, 9, 12] = 1.0
    moved = GEOMETRY[index](tv.Mask(mask))
    left, top, right, bottom = bounds(moved)
    point = GEOMETRY[index](tv.KeyPoints([[12.0, 9.0]], canvas_size=CANVAS))
    assert point.canvas_size == tuple(moved.shape[-2:])
    x, y = point[0].tolist()
    assert left - 1 <= x <= right
    assert top - 1 <= y <= bottom


@pytest.mark.parametrize("center", [None, [3, 20]])
def test_what_is_expanded_has_the_size_of_the_image(center) -> None:
    for height, width in [(24, 32), (7, 11), (30, 5)]:
        boxes = tv.BoundingBoxes([[1.0, 1.0, 4.0, 5.0]], format="XYXY", canvas_size=(height, width))
        points = tv.KeyPoints([[1.0, 2.0]], canvas_size=(height, width))
        for angle in (3, 30, 45, 77.7, 90, 123, 180, 269):
            size = F.rotate(torch.zeros(1, height, width), angle, expand=True, center=center).shape
            for places in (boxes, points):
                turned = F.rotate(places, angle, expand=True, center=center)
                assert turned.canvas_size == tuple(size[1:])


def test_arguments_that_a_functional_has_not_are_refused() -> None:
    with pytest.raises(TypeError, match="color"):
        F.resize(box_at(1, 1, 2, 2), [3, 3], color=1)
    with pytest.raises(TypeError, match="9 arguments"):
        F.crop(box_at(1, 1, 2, 2), 1, 2, 3, 4, 5, 6, 7, 8)


def corners_of(x: float, y: float, width: float, height: float, degrees: float) -> np.ndarray:
    """The corners of a box whose first corner is (x, y), turned counter-clockwise about it."""
    angle = np.deg2rad(degrees)
    along = width * np.array([np.cos(angle), -np.sin(angle)])
    across = height * np.array([np.sin(angle), np.cos(angle)])
    start = np.array([x, y])
    return np.concatenate([start, start + along, start + along + across, start + across])


def test_formats_of_rotated_boxes_say_the_same() -> None:
    box = torch.tensor([[10.0, 12.0, 8.0, 4.0, 30.0]])
    corners = F.convert_bounding_box_format(box, "XYWHR", "XYXYXYXY")
    np.testing.assert_allclose(corners[0].numpy(), corners_of(10, 12, 8, 4, 30), atol=1e-5)
    centered = F.convert_bounding_box_format(box, "XYWHR", "CXCYWHR")
    middle = corners.view(4, 2).mean(0)
    np.testing.assert_allclose(centered[0, :2].numpy(), middle.numpy(), atol=1e-5)


@pytest.mark.parametrize("old", FORMATS)
@pytest.mark.parametrize("new", FORMATS)
def test_formats_convert_there_and_back(old, new) -> None:
    rotated = {"XYWHR", "CXCYWHR", "XYXYXYXY"}
    start = torch.tensor(
        [[5.0, 6.0, 9.0, 8.0]] if old not in rotated else [[5.0, 6.0, 9.0, 8.0, 20.0]]
    )
    if old == "XYXYXYXY":
        start = F.convert_bounding_box_format(start, "XYWHR", old)
    if (old in rotated) != (new in rotated):
        with pytest.raises(ValueError, match="Rotated boxes stay rotated"):
            F.convert_bounding_box_format(start, old, new)
        return
    there = F.convert_bounding_box_format(start, old, new)
    back = F.convert_bounding_box_format(there, new, old)
    np.testing.assert_allclose(back.numpy(), start.numpy(), atol=1e-4)


def test_conversion_in_place_changes_the_tensor() -> None:
    box = torch.tensor([[1, 2, 3, 4]])
    F.convert_bounding_box_format(box, "XYXY", "XYWH", inplace=True)
    assert box.tolist() == [[1, 2, 2, 2]]


@pytest.mark.parametrize("angle", [20.0, -35.0])
def test_rotated_boxes_turn_with_the_image(angle) -> None:
    box = tv.BoundingBoxes([[16.0, 12.0, 8.0, 4.0, 10.0]], format="CXCYWHR", canvas_size=CANVAS)
    turned = F.rotate(box, angle)
    np.testing.assert_allclose(turned[0].numpy(), [16, 12, 8, 4, 10 + angle], atol=1e-3)


def test_images_are_looked_up_between_pixels_by_all_ways() -> None:
    image = torch.arange(12, dtype=torch.float32).view(1, 3, 4).square()
    shift = torch.tensor([0.25, 0.5]).expand(1, 3, 4, 2)  # half a pixel right, three quarters down
    for mode in ("nearest", "bilinear", "bicubic"):
        grid = shift + torch.nn.functional.affine_grid(
            torch.eye(2, 3)[None], [1, 1, 3, 4], align_corners=False
        )
        plain = torch.nn.functional.grid_sample(image[None], grid, mode, align_corners=False)
        torch.testing.assert_close(F.elastic(image, shift, mode), plain[0])
        inside = torch.nn.functional.grid_sample(
            torch.ones_like(image)[None], grid, mode, align_corners=False
        )
        mixed = (
            torch.where(inside < 0.5, 7, plain)
            if mode == "nearest"
            else plain.lerp(torch.tensor(7.0), 1 - inside)
        )
        torch.testing.assert_close(F.elastic(image, shift, mode, fill=7), mixed[0])


def test_boxes_are_held_inside_the_picture() -> None:
    box = tv.BoundingBoxes([[-5, -5, 50, 9]], format="XYXY", canvas_size=CANVAS)
    assert F.clamp_bounding_boxes(box).tolist() == [[0, 0, 32, 9]]
    assert F.clamp_bounding_boxes(box, clamping_mode=None).tolist() == box.tolist()
    points = tv.KeyPoints([[-1, 40]], canvas_size=CANVAS)
    assert F.clamp_keypoints(points).tolist() == [[0, 23]]
    inner = tv.BoundingBoxes([[9.0, 12.0, 6.0, 4.0, 30.0]], format="XYWHR", canvas_size=CANVAS)
    for mode in ("soft", "hard"):
        held = F.clamp_bounding_boxes(inner, clamping_mode=mode)
        np.testing.assert_allclose(held.numpy(), inner.numpy(), atol=1e-3)


SAMPLE = {
    "image": tv.Image(torch.randint(0, 256, (3, *CANVAS), dtype=torch.uint8)),
    "nested": [mask_of(box_at(2, 2, 9, 9)), (box_at(2, 2, 9, 9), "text", None)],
    "other": torch.zeros(3, 5, 5),
}


def test_samples_keep_their_structure_and_what_is_no_picture() -> None:
    out = v2.Compose([v2.RandomHorizontalFlip(p=1.0), v2.Resize([12, 16])])(SAMPLE)
    assert list(out) == ["image", "nested", "other"]
    assert out["image"].shape == (3, 12, 16)
    assert isinstance(out["nested"][1], tuple)
    assert out["nested"][1][0].canvas_size == (12, 16)
    assert out["nested"][1][1:] == ("text", None)
    assert out["other"] is SAMPLE["other"]


def test_one_draw_serves_a_whole_sample() -> None:
    box = box_at(8, 6, 18, 14)
    augment = v2.Compose(
        [v2.RandomResizedCrop(CANVAS, scale=(0.9, 1.0)), v2.RandomHorizontalFlip()]
    )
    for seed in range(8):
        torch.manual_seed(seed)
        mask, moved = augment(mask_of(box), box)
        assert np.abs(np.array(bounds(mask)) - np.array(moved[0].tolist())).max() <= 1


def test_a_plain_tensor_is_the_image_where_there_is_no_other() -> None:
    flip = v2.RandomHorizontalFlip(p=1.0)
    image, label = torch.tensor([[[1, 2]]]), torch.tensor([3, 4])
    out = flip(image, label)
    assert out[0].tolist() == [[[2, 1]]]
    assert out[1] is label
    assert flip(label, tv.Image(image))[0] is label


def test_a_seed_repeats_a_sample() -> None:
    augment = v2.Compose(
        [
            v2.RandomPhotometricDistort(),
            v2.RandomZoomOut(p=1.0),
            v2.RandomIoUCrop(),
            v2.RandomAffine(10),
            v2.RandomPerspective(p=1.0),
            v2.ElasticTransform(),
            v2.RandomShortestSize([20, 30]),
            v2.SanitizeBoundingBoxes(labels_getter=None),
        ]
    )
    outs = []
    for _ in range(2):
        torch.manual_seed(5)
        outs.append(augment(SAMPLE))
    assert torch.equal(outs[0]["image"], outs[1]["image"])
    assert outs[0]["nested"][1][0].tolist() == outs[1]["nested"][1][0].tolist()


def test_sanitizing_drops_boxes_with_their_labels_and_masks() -> None:
    boxes = tv.BoundingBoxes(
        [[0, 0, 5, 5], [3, 3, 3, 9], [0, 0, 40, 5], [4, 4, 6, 6]], format="XYXY", canvas_size=CANVAS
    )
    sample = {
        "boxes": boxes,
        "labels": torch.arange(4),
        "masks": tv.Mask(torch.arange(4).view(4, 1, 1).expand(4, 2, 2)),
        "whole": tv.Mask(torch.zeros(24, 32)),
    }
    out = v2.SanitizeBoundingBoxes(min_area=5)(sample)
    assert out["labels"].tolist() == [0]
    assert out["boxes"].tolist() == [[0, 0, 5, 5]]
    assert out["boxes"].canvas_size == CANVAS
    assert out["masks"].shape == (1, 2, 2)
    assert out["whole"] is sample["whole"]
    points = tv.KeyPoints([[[1, 1], [50, 1]], [[1, 1], [2, 2]]], canvas_size=CANVAS)
    assert v2.SanitizeKeyPoints()(points).tolist() == [[[1, 1], [2, 2]]]


def test_mixing_keeps_the_sum_of_pixels_and_labels() -> None:
    torch.manual_seed(0)
    images = torch.arange(4.0).view(4, 1, 1, 1).expand(4, 3, 8, 8)
    labels = torch.tensor([0, 1, 2, 1])
    for transform in (v2.MixUp(num_classes=3), v2.CutMix(num_classes=3)):
        mixed, shares = transform(images, labels)
        assert mixed.sum().item() == pytest.approx(images.sum().item(), rel=1e-4)
        assert shares.sum(0).tolist() == pytest.approx([1, 2, 1], rel=1e-4)
        # A label has the share that its image has of the pixels.
        expected = torch.nn.functional.one_hot(labels, 3).float()
        kept = 1 - (mixed[1] - 1).abs().mean().item()
        both = expected * kept + expected.roll(1, 0) * (1 - kept)
        np.testing.assert_allclose(shares.numpy(), both.numpy(), atol=1e-4)


def test_every_random_overlap_is_kept() -> None:
    torch.manual_seed(0)
    box = box_at(8, 6, 24, 18)
    image = tv.Image(torch.zeros(3, *CANVAS))
    for _ in range(20):
        crop = v2.RandomIoUCrop(sampler_options=[0.5])
        out_image, out = crop(image, box)
        left, top, right, bottom = out[0].tolist()
        common = (right - left) * (bottom - top)
        window = out_image.shape[-2] * out_image.shape[-1]
        assert common / (window + 16 * 12 - common) >= 0.45


def test_a_crop_that_cannot_be_had_leaves_the_sample() -> None:
    image = tv.Image(torch.zeros(3, *CANVAS))
    none = tv.BoundingBoxes(torch.zeros(0, 4), format="XYXY", canvas_size=CANVAS)
    out, _ = v2.RandomIoUCrop(sampler_options=[0.5], trials=2)(image, none)
    assert out.shape == image.shape


class Marked(tv.TVTensor):
    """A class of the user's own."""


def test_kernels_can_be_registered_for_classes_of_ones_own() -> None:
    @F.register_kernel("horizontal_flip", Marked)
    def flip(marked):
        return marked.as_subclass(torch.Tensor) * -1

    marked = torch.ones(2).as_subclass(Marked)
    assert v2.RandomHorizontalFlip(p=1.0)(marked).tolist() == [-1, -1]
    assert v2.RandomVerticalFlip(p=1.0)(marked) is marked  # has no kernel
    with pytest.raises(TypeError, match="vertical_flip: got Marked"):
        F.vertical_flip(marked)
    for functional, cls in (("no_such", Marked), (F.resize, tv.Image), (F.resize, torch.Tensor)):
        with pytest.raises(ValueError, match="register_kernel"):
            F.register_kernel(functional, cls)


def test_dtypes_are_given_by_type() -> None:
    dtypes = {tv.Image: torch.float32, tv.Mask: torch.int64, "others": None}
    out = v2.ToDtype(dtypes, scale=True)(SAMPLE)
    assert out["image"].dtype == torch.float32
    assert out["image"].max() <= 1
    assert out["nested"][0].dtype == torch.int64
    assert out["nested"][1][0].dtype == SAMPLE["nested"][1][0].dtype
    with pytest.raises(ValueError, match="no dtype for Mask"):
        v2.ToDtype({tv.Image: torch.float32})(SAMPLE)


def test_large_classes_of_masks_come_through() -> None:
    mask = tv.Mask(torch.tensor([[2**40 + 1, 7]]))
    assert F.resize(mask, [1, 4]).tolist() == [[2**40 + 1] * 2 + [7] * 2]


def test_pictures_stay_pictures() -> None:
    picture = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8))
    out, box = v2.RandomHorizontalFlip(p=1.0)(picture, box_at(0, 0, 2, 3))
    np.testing.assert_array_equal(np.asarray(out), np.asarray(picture)[:, ::-1])
    assert box.tolist() == [[30, 0, 32, 3]]
    assert v2.Compose([v2.ToImage(), v2.ToPILImage()])(picture).size == picture.size


def test_videos_are_transformed_frame_by_frame() -> None:
    frames = torch.randint(0, 256, (5, 3, 8, 8), dtype=torch.uint8)
    video = v2.Compose([v2.Resize(4), v2.ColorJitter(0.5)])(tv.Video(frames))
    assert isinstance(video, tv.Video)
    assert video.shape == (5, 3, 4, 4)
    few = v2.UniformTemporalSubsample(3)(tv.Video(frames))
    assert torch.equal(few.as_subclass(torch.Tensor), frames[[0, 2, 4]])


def test_transforms_can_be_sent_to_workers() -> None:
    for transform in (
        v2.SanitizeBoundingBoxes(labels_getter=None),
        v2.MixUp(num_classes=3),
        v2.Compose([v2.RandomErasing(), v2.ToDtype({tv.Image: torch.float32, "others": None})]),
    ):
        assert repr(pickle.loads(pickle.dumps(transform))) == repr(transform)


def test_noise_and_jpeg_change_a_little() -> None:
    torch.manual_seed(0)
    gray = torch.full((3, 64, 64), 0.5)
    noise = v2.GaussianNoise(mean=0.1, sigma=0.05)(gray) - gray
    assert noise.mean().item() == pytest.approx(0.1, abs=0.002)
    assert noise.std().item() == pytest.approx(0.05, abs=0.002)
    image = tv.Image(torch.full((3, 16, 16), 100, dtype=torch.uint8))
    assert (v2.JPEG((50, 60))(image).int() - 100).abs().max() <= 3


@pytest.mark.parametrize("name", ["AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix"])
@pytest.mark.parametrize("policy", list(v2.AutoAugmentPolicy))
def test_augmentations_keep_the_type_and_size(name, policy) -> None:
    torch.manual_seed(0)
    transform = v2.AutoAugment(policy) if name == "AutoAugment" else getattr(v2, name)()
    for value in (SAMPLE["image"], tv.Video(torch.zeros(2, 3, 8, 8, dtype=torch.uint8))):
        for _ in range(6):
            out = transform(value)
            assert type(out) is type(value)
            assert out.shape == value.shape
            assert out.dtype == value.dtype
    with pytest.raises(TypeError, match="BoundingBoxes|Mask"):
        transform(SAMPLE)


def test_libraries_ask_for_what_is_in_samples_where_torchvision_tells_it() -> None:
    image, box = tv.Image(torch.zeros(3, *CANVAS)), box_at(1, 2, 3, 4)
    assert _utils.query_chw([image, 1]) == (3, *CANVAS) and _utils.query_size([box]) == CANVAS
    assert _utils.get_bounding_boxes([image, box]) is box
    assert _utils.has_any([image], tv.Image) and not _utils.has_all([image], tv.Image, tv.Mask)
    assert _utils.check_type(torch.zeros(1), (_utils.is_pure_tensor,))
