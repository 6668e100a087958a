"""Tensors of samples know what they are, and forget it in arithmetic."""

import copy
import pickle

import numpy as np
import pytest
from PIL import Image

import rushlight as torch
from rushlight.utils.data import DataLoader
from rushlight.vision import tv_tensors as tv
from rushlight.vision.transforms import v2

BOXES = tv.BoundingBoxes([[1.0, 2.0, 3.0, 4.0]], format="XYXY", canvas_size=(5, 6))


def test_results_are_plain_but_copies_are_not() -> None:
    for value in (BOXES, tv.Image(torch.ones(3, 2, 2)), tv.Mask(torch.ones(2, 2))):
        cls = type(value)
        assert type(value + 1) is type(value[0]) is type(value.sum()) is torch.Tensor
        assert type(value.float()) is torch.Tensor or value.dtype == torch.float32
        for kept in (value.clone(), value.detach(), value.to(torch.float64), value.to("cpu")):
            assert type(kept) is cls
    assert BOXES.to(torch.float64).canvas_size == (5, 6)
    assert BOXES.clone().format is tv.BoundingBoxFormat.XYXY


def test_the_choice_of_results_holds_in_its_block() -> None:
    with tv.set_return_type("TVTensor"):
        assert (BOXES + 1).canvas_size == (5, 6)
        assert [type(part) for part in BOXES.unbind(0)] == [tv.BoundingBoxes]
    assert type(BOXES + 1) is torch.Tensor


def test_copies_and_pickles_know_what_the_original_knows() -> None:
    for twin in (copy.deepcopy(BOXES), copy.copy(BOXES), pickle.loads(pickle.dumps(BOXES))):
        assert type(twin) is tv.BoundingBoxes
        assert twin.tolist() == BOXES.tolist()
        assert (twin.format, twin.canvas_size, twin.clamping_mode) == (BOXES.format, (5, 6), "soft")


def test_wrapping_takes_over_what_is_not_given() -> None:
    wrapped = tv.wrap(torch.zeros(2, 4), like=BOXES, canvas_size=(7, 8))
    assert (wrapped.format, wrapped.canvas_size) == (BOXES.format, (7, 8))


def test_pictures_become_images_and_masks() -> None:
    picture = Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    assert tv.Image(picture).tolist() == tv.Mask(picture).tolist() == [[[0, 1, 2], [3, 4, 5]]]


def test_shapes_are_completed() -> None:
    assert tv.Image(torch.zeros(2, 3)).shape == (1, 2, 3)
    assert tv.BoundingBoxes([1, 2, 3, 4], format="XYXY", canvas_size=(5, 6)).shape == (1, 4)
    assert tv.KeyPoints([1, 2], canvas_size=(5, 6)).shape == (1, 2)
    with pytest.raises(ValueError, match="Video: got 3 dimensions"):
        tv.Video(torch.zeros(3, 2, 2))


class Samples(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int):
        image = tv.Image(torch.full((3, 4, 4), index, dtype=torch.uint8))
        boxes = tv.BoundingBoxes([[0, 0, 2, index]], format="XYXY", canvas_size=(4, 4))
        return v2.RandomHorizontalFlip(p=1.0)({"image": image, "boxes": boxes})


def test_workers_of_a_loader_send_them() -> None:
    loader = DataLoader(Samples(), batch_size=2, num_workers=1, collate_fn=list)
    batches = list(loader)
    sample = batches[1][1]
    assert type(sample["image"]) is tv.Image
    assert sample["boxes"].tolist() == [[2, 0, 4, 3]]
    assert sample["boxes"].canvas_size == (4, 4)
