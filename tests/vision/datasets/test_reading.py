"""Each data set reads its files: the pictures, the targets, and how many there are."""

import pickle

import numpy as np
import pytest
from PIL import Image
from vision.datasets.small_data import BUILDERS

import rushlight as torch
from rushlight.vision import datasets

_OPTIONAL = {"pcam": "h5py", "lsun": "lmdb", "coco": "pycocotools"}


def plain(value):
    """A target as numbers, lists and dicts; a picture as its red."""
    if isinstance(value, Image.Image):
        pixel = value.getpixel((0, 0))
        return pixel[0] if isinstance(pixel, tuple) else pixel
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def parts(name, sample):
    """The picture or pictures of a sample, and all else in it."""
    if name in ("MovingMNIST", "PhotoTour"):
        return None, sample
    if name == "LFWPairs":
        return sample[:2], sample[2]
    if len(sample) > 2:
        return sample[:2], sample[2:]
    return tuple(sample)


@pytest.mark.parametrize("name", BUILDERS)
def test_samples_are_those_on_disk(name, tmp_path, without_md5, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path.parent)
    if name in _OPTIONAL:
        pytest.importorskip(_OPTIONAL[name])
    for case in BUILDERS[name](tmp_path):
        data = getattr(datasets, case.name)(tmp_path.name, **case.arguments)
        found = [data[index] for index in range(len(data))]
        assert [parts(case.name, plain(sample)) for sample in found] == case.expected, case
        if name != "lsun":  # which no process opens twice; as it goes to other processes
            again = pickle.loads(pickle.dumps(data))
            assert plain(again[len(again) - 1]) == plain(found[-1])
        first = repr(data).splitlines()[:2]
        assert first == [f"Dataset {case.name}", f"    Number of datapoints: {len(data)}"]


def test_data_may_be_exchanged(tmp_path) -> None:
    next(BUILDERS["mnist"](tmp_path))
    data = datasets.MNIST(tmp_path, target_transform=lambda digit: -digit)
    wide = torch.arange(2 * 4 * 6).reshape(2, 6, 4).to(torch.uint8).transpose(1, 2)
    data.data, data.targets = wide, torch.tensor([8, 9])
    picture, target = data[1]
    assert (picture.size, target) == ((6, 4), -9)
    assert np.asarray(picture).tolist() == wide[1].tolist()
    data.transform = lambda picture: picture.size
    assert data[0] == ((6, 4), -8)
    with pytest.warns(UserWarning, match="train_labels has been renamed targets"):
        assert data.train_labels is data.targets


def test_old_files_of_torchvision_are_read(tmp_path) -> None:
    folder = tmp_path / "MNIST" / "processed"
    folder.mkdir(parents=True)
    for name, label in (("training.pt", 3), ("test.pt", 4)):
        pictures = torch.full((1, 28, 28), label, dtype=torch.uint8)
        torch.save((pictures, torch.tensor([label])), folder / name)
    assert plain(datasets.MNIST(tmp_path)[0]) == [3, 3]
    assert plain(datasets.MNIST(str(tmp_path), train=False)[0]) == [4, 4]
