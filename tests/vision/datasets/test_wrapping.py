"""Data sets whose targets say what they are, for transforms.v2."""

import pickle

import pytest
from vision.datasets.small_data import BUILDERS

import rushlight as torch
from rushlight.vision import datasets, tv_tensors
from rushlight.vision.datasets import utils, wrap_dataset_for_transforms_v2


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Makes a data set from the first case of a builder with its class, and other arguments."""
    monkeypatch.setattr(utils, "check_md5", lambda *_: True)

    def make(builder, cls, **arguments):
        list(BUILDERS[builder](tmp_path))
        return getattr(datasets, cls)(str(tmp_path), **arguments)

    return make


def test_boxes_are_boxes(build) -> None:
    data = wrap_dataset_for_transforms_v2(build("voc", "VOCDetection"))
    assert isinstance(data, datasets.VOCDetection)
    _, target = data[1]
    assert sorted(target) == ["boxes", "labels"]
    assert isinstance(target["boxes"], tv_tensors.BoundingBoxes)
    assert (target["boxes"].tolist(), target["boxes"].canvas_size) == ([[1, 2, 3, 4]], (4, 5))
    assert target["labels"].tolist() == [12]
    data = wrap_dataset_for_transforms_v2(build("wider_face", "WIDERFace"), ["bbox", "pose"])
    _, target = data[0]
    assert target["bbox"].tolist() == [[1, 2, 4, 6], [9, 8, 16, 14]]
    assert sorted(target) == ["bbox", "pose"]


def test_masks_are_masks(build) -> None:
    picture, mask = wrap_dataset_for_transforms_v2(build("voc", "VOCSegmentation"))[0]
    assert picture.size == (5, 4)
    assert isinstance(mask, tv_tensors.Mask)
    assert mask.unique().tolist() == [6]
    data = build("pets", "OxfordIIITPet", target_types=["category", "segmentation"])
    _, (label, mask) = wrap_dataset_for_transforms_v2(data)[0]
    assert (label, type(mask)) == (1, tv_tensors.Mask)


def test_transforms_come_after(build) -> None:
    seen = []

    def note(picture, target):
        seen.append(type(target))
        return picture.size, target

    data = wrap_dataset_for_transforms_v2(build("voc", "VOCSegmentation", transforms=note))
    assert data[0][0] == (5, 4)
    assert seen == [tv_tensors.Mask]
    assert data.masks == data._dataset.masks
    assert len(data) == 2


def test_it_can_go_to_other_processes(build) -> None:
    data = wrap_dataset_for_transforms_v2(build("kitti", "Kitti", transform=repr), "all")
    again = pickle.loads(pickle.dumps(data))
    assert type(again).__name__ == "WrappedKitti"
    assert again[1][1]["boxes"].tolist() == data[1][1]["boxes"].tolist()
    assert isinstance(again[1][0], str)
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=1)
    assert [sorted(target) for _, target in loader] == [sorted(data[0][1])] * 2


def test_what_has_no_meaning_is_refused(build, tmp_path) -> None:
    with pytest.raises(TypeError, match="subclasses of"):
        wrap_dataset_for_transforms_v2([1, 2])
    with pytest.raises(TypeError, match="No wrapper exists for dataset class Food101"):
        wrap_dataset_for_transforms_v2(build("food101", "Food101"))
    data = build("voc", "VOCDetection")
    with pytest.raises(ValueError, match=r"keys \['color'\] are not available"):
        wrap_dataset_for_transforms_v2(data, ["color"])
    with pytest.raises(ValueError, match="can be None, 'all'"):
        wrap_dataset_for_transforms_v2(data, [1])
    with pytest.raises(ValueError, match="only supported for"):
        wrap_dataset_for_transforms_v2(build("folders", "ImageFolder"), "all")
    with pytest.raises(RuntimeError, match="mode='boundaries'"):
        wrap_dataset_for_transforms_v2(build("sbd", "SBDataset"))
