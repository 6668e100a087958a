"""Each data set reads its files: the pictures, the targets, and how many there are."""

import numpy as np
import pytest
from PIL import Image
from vision.datasets.small_data import BUILDERS

import rushlight as torch
from rushlight.vision import datasets
from rushlight.vision.datasets import utils

_OPTIONAL = {"pcam": "h5py", "lsun": "lmdb", "coco": "pycocotools"}


@pytest.fixture
def without_md5(monkeypatch):
    monkeypatch.setattr(utils, "check_md5", lambda *_: True)


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
def test_samples_are_those_on_disk(name, tmp_path, without_md5) -> None:
    if name in _OPTIONAL:
        pytest.importorskip(_OPTIONAL[name])
    for case in BUILDERS[name](tmp_path):
        data = getattr(datasets, case.name)(tmp_path, **case.arguments)
        found = [data[index] for index in range(len(data))]
        assert [parts(case.name, plain(sample)) for sample in found] == case.expected, case
        first = repr(data).splitlines()[:2]
        assert first == [f"Dataset {case.name}", f"    Number of datapoints: {len(data)}"]
