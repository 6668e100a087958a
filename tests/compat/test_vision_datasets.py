"""The data sets of rushlight.vision against torchvision's, reading the same small files."""

import importlib
import inspect
import os

import numpy as np
import pytest
from vision.datasets.small_data import BUILDERS

import rushlight as rl
from rushlight.vision import datasets
from rushlight.vision.datasets import utils

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision", exc_type=ImportError)
Image = pytest.importorskip("PIL.Image")

_OPTIONAL = {"pcam": "h5py", "coco": "pycocotools"}
# Attributes whose values are made by the libraries: functions, classes, open files, caches.
_OWN = {"loader", "transforms", "transform", "coco", "env", "dbs", "h5py", "video_clips"}
_CLASSES = sorted({*torchvision.datasets.__all__} - {"wrap_dataset_for_transforms_v2"})


@pytest.fixture
def same_ground(monkeypatch):
    """No MD5 is right here, and torchvision takes files in the order in which the disk has them."""
    monkeypatch.setattr(utils, "check_md5", lambda *_: True)
    monkeypatch.setattr(torchvision.datasets.utils, "check_md5", lambda *_: True)
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda *path: sorted(listdir(*path)))


def plain(value):
    if isinstance(value, Image.Image):
        return value.mode, value.size, value.tobytes()
    if isinstance(value, torch.Tensor | rl.Tensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [plain(item) for item in value]
    return value


@pytest.mark.filterwarnings("ignore")
# lmdb opens no database twice in a process.
@pytest.mark.parametrize("name", sorted({*BUILDERS} - {"lsun"}))
def test_samples_and_attributes_are_the_same(name, tmp_path, same_ground) -> None:
    if name in _OPTIONAL:
        pytest.importorskip(_OPTIONAL[name])
    for case in BUILDERS[name](tmp_path):
        ours = getattr(datasets, case.name)(tmp_path, **case.arguments)
        theirs = getattr(torchvision.datasets, case.name)(str(tmp_path), **case.arguments)
        assert len(ours) == len(theirs)
        assert repr(ours) == repr(theirs)
        samples = [[plain(data[n]) for n in range(len(data))] for data in (ours, theirs)]
        if case.name == "SUN397":  # torchvision's order is the disk's
            samples = [sorted(found, key=repr) for found in samples]
        assert samples[0] == samples[1], case
        for attribute, value in vars(theirs).items():
            if attribute.startswith("_") or attribute in _OWN or callable(value):
                continue
            assert str(plain(getattr(ours, attribute))) == str(plain(value)), (case, attribute)


def test_reprs_show_the_transforms(tmp_path) -> None:
    next(BUILDERS["folders"](tmp_path))
    for arguments in ({"transform": len}, {"target_transform": len}, {"transform": _Two()}):
        ours = datasets.ImageFolder(str(tmp_path), **arguments)
        theirs = torchvision.datasets.ImageFolder(str(tmp_path), **arguments)
        assert repr(ours) == repr(theirs)


class _Two:
    def __repr__(self) -> str:
        return "Two(\n    lines\n)"


def wrapped(value):
    """plain, and what kind of tensor it is; the keys of a dict have no order."""
    if isinstance(value, torch.Tensor | rl.Tensor):
        return type(value).__name__, str(getattr(value, "format", "")), plain(value)
    if isinstance(value, dict):
        return {key: wrapped(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [wrapped(item) for item in value]
    return plain(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("keys", [None, "all"])
@pytest.mark.parametrize(
    "name",
    [
        "celeba",
        "cifar",
        "cityscapes",
        "coco",
        "folders",
        "kitti",
        "pets",
        "sbd",
        "voc",
        "wider_face",
    ],
)
def test_wrapped_targets_are_the_same(name, keys, tmp_path, same_ground) -> None:
    if name in _OPTIONAL:
        pytest.importorskip(_OPTIONAL[name])
    for case in BUILDERS[name](tmp_path):
        if case.arguments.get("target_type") == []:
            continue  # None stays None here; torchvision makes it an empty tuple
        results = []
        for library in (datasets, torchvision.datasets):
            data = getattr(library, case.name)(str(tmp_path), **case.arguments)
            try:
                found = library.wrap_dataset_for_transforms_v2(data, keys)
                assert isinstance(found, type(data))
                results.append([wrapped(found[index]) for index in range(len(found))])
            except (RuntimeError, ValueError, TypeError, KeyError) as error:
                results.append(type(error))
        assert results[0] == results[1], case


def test_all_public_names_are_there() -> None:
    missing = set(torchvision.datasets.__all__) - set(datasets.__all__)
    assert not missing
    for module in ("utils", "folder", "vision", "video_utils", "samplers", "mnist", "imagenet"):
        theirs = importlib.import_module(f"torchvision.datasets.{module}")
        ours = importlib.import_module(f"rushlight.vision.datasets.{module}")
        named = {
            name
            for name, value in vars(theirs).items()
            if inspect.isfunction(value) and value.__module__ == theirs.__name__
        }
        private = {name for name in named if name.startswith("_")}
        left_out = {"accimage_loader", "get_int"}
        assert not named - private - left_out - set(vars(ours))


@pytest.mark.parametrize("name", _CLASSES)
def test_arguments_are_the_same(name) -> None:
    def described(cls):
        return [
            (one.name, one.kind, getattr(one.default, "__name__", one.default))
            for one in inspect.signature(cls).parameters.values()
        ]

    assert described(getattr(datasets, name)) == described(getattr(torchvision.datasets, name))


@pytest.mark.parametrize("name", _CLASSES)
def test_public_class_attributes_are_the_same(name) -> None:
    ours, theirs = getattr(datasets, name), getattr(torchvision.datasets, name)
    for attribute, value in inspect.getmembers(theirs):
        if attribute.startswith("_") or callable(value) or isinstance(value, property):
            continue
        if name == "Cityscapes" and attribute == "classes":
            assert [tuple(one) for one in ours.classes] == [tuple(one) for one in value]
        else:
            assert getattr(ours, attribute) == value, attribute


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("verify_str_arg", ("x", "split", ("a", "b"))),
        ("verify_str_arg", (3, "split")),
        ("verify_str_arg", (3,)),
        ("verify_str_arg", ("x", "split", ("a",), "no such split")),
        ("extract_archive", ("/tmp/nothing.rar", "/tmp")),
    ],
)
def test_errors_are_of_the_same_class(function, arguments) -> None:
    with pytest.raises((ValueError, RuntimeError)) as theirs:
        getattr(torchvision.datasets.utils, function)(*arguments)
    with pytest.raises((ValueError, RuntimeError)) as ours:
        getattr(utils, function)(*arguments)
    assert type(ours.value) is type(theirs.value)
    if function == "verify_str_arg":
        assert str(ours.value) == str(theirs.value)


@pytest.mark.filterwarnings("ignore:There aren't enough frames")
def test_clips_of_videos_are_the_same() -> None:
    from torchvision.datasets.video_utils import VideoClips as Theirs

    from rushlight.vision.datasets.video_utils import VideoClips as Ours

    counts, rates = (10, 3, 25), (30.0, 24.0, 25.0)

    def known(library):
        return {
            "video_paths": ["a", "b", "c"],
            "video_pts": [library.arange(count) for count in counts],
            "video_fps": list(rates),
        }

    for rate in (None, 12, 7.5):
        for length, step in ((2, 1), (3, 4)):
            ours = Ours(["a"], length, step, rate, known(rl))
            theirs = Theirs(["a"], length, step, rate, known(torch))
            assert [c.tolist() for c in ours.clips] == [c.tolist() for c in theirs.clips]
            assert len(ours) == len(theirs)
            locations = [ours.get_clip_location(n) for n in range(len(ours))]
            assert locations == [theirs.get_clip_location(n) for n in range(len(theirs))]
            few = ours.subset([2, 0])
            assert [len(c) for c in few.clips] == [len(c) for c in theirs.subset([2, 0]).clips]
            _compare_samplers(ours, theirs)


def _compare_samplers(ours, theirs) -> None:
    from torchvision.datasets import samplers as their_samplers

    from rushlight.vision.datasets import samplers

    name = "UniformClipSampler"
    mine = getattr(samplers, name)(ours, 3)
    other = getattr(their_samplers, name)(theirs, 3)
    assert len(mine) == len(other)
    assert list(mine) == list(other)
    mine = samplers.RandomClipSampler(ours, 2)
    other = their_samplers.RandomClipSampler(theirs, 2)
    assert len(mine) == len(other)
    videos = [
        sorted(data.get_clip_location(n)[0] for n in found)
        for data, found in ((ours, mine), (theirs, other))
    ]
    assert videos[0] == videos[1]


def test_groups_are_dealt_the_same() -> None:
    from torchvision.datasets.samplers import DistributedSampler as Theirs

    from rushlight.vision.datasets.samplers import DistributedSampler as Ours

    for group in (1, 2, 7):
        dealt = []
        for rank in range(4):
            ours, theirs = (
                cls(range(14), num_replicas=4, rank=rank, group_size=group)
                for cls in (Ours, Theirs)
            )
            assert len(ours) == len(theirs)
            assert list(ours) == list(theirs)
            shuffled = Ours(range(14), num_replicas=4, rank=rank, shuffle=True, group_size=group)
            shuffled.set_epoch(5)
            dealt += list(shuffled)
        assert set(dealt) == set(range(14))
        assert len(dealt) == 4 * len(ours)
