"""Files that are damaged, missing or hostile: errors name them, and no code in them is run."""

import bz2
import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from vision.datasets.small_data import BUILDERS
from vision.datasets.small_data.arrays import old_pickle
from vision.datasets.small_data.motion import motion_png
from vision.datasets.small_data.writing import colored, gray, idx, picture, text

import rushlight as torch
from rushlight.vision import datasets
from rushlight.vision.datasets import _optical_flow, _png, utils
from rushlight.vision.datasets.folder import pil_loader
from rushlight.vision.datasets.mnist import read_sn3_pascalvincent_tensor

ROOTLESS = ("FakeData", "VisionDataset", "wrap_dataset_for_transforms_v2")


@pytest.mark.parametrize("name", [name for name in datasets.__all__ if name not in ROOTLESS])
def test_an_empty_folder_is_told(name, tmp_path) -> None:
    captions, annotations = {"ann_file": "nothing.txt"}, {"annFile": "nothing.json"}
    clips = {"annotation_path": ".", "frames_per_clip": 2}
    needed = {
        "EMNIST": {"split": "letters"},
        "PhotoTour": {"name": "liberty"},
        "DatasetFolder": {"loader": pil_loader, "extensions": (".png",)},
        "SEMEION": {"download": False},
        "SBU": {"download": False},
        **dict.fromkeys(("Flickr8k", "Flickr30k"), captions),
        **dict.fromkeys(("CocoDetection", "CocoCaptions"), annotations),
        **dict.fromkeys(("HMDB51", "UCF101"), clips),
        "Kinetics": {"frames_per_clip": 2},
    }
    # Without lmdb that is what is told, with it the error is its own.
    kinds = Exception if name.startswith("LSUN") else (RuntimeError, FileNotFoundError)
    with pytest.raises(kinds, match=r"."):
        getattr(datasets, name)(str(tmp_path), **needed.get(name, {}))
    assert not list(tmp_path.iterdir())


# Numbers


def test_idx_files_are_as_long_as_they_say(tmp_path) -> None:
    path = tmp_path / "images"
    idx(path, gray(3))
    whole = path.read_bytes()
    assert read_sn3_pascalvincent_tensor(str(path)).shape == (3, 28, 28)
    for kind, dtype in ((9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")):
        values = np.arange(-3, 3).astype(dtype)
        idx(path, values, kind)
        found = read_sn3_pascalvincent_tensor(str(path))
        assert found.tolist() == values.tolist()
        assert found.numpy().dtype == np.dtype(dtype).newbyteorder("=")
    huge = whole[:4] + struct.pack(">3I", *[2**32 - 1] * 3) + whole[16:]
    for damaged in (b"", whole[:3], whole[:10], whole[:-1], whole + b"\0", huge, b"\1" + whole[1:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=str(path)):
            read_sn3_pascalvincent_tensor(str(path))
    for header in (b"\0\0\x08\0", b"\0\0\x08\4" + bytes(16), b"\0\0\x0a\1" + bytes(4)):
        path.write_bytes(header)
        with pytest.raises(ValueError, match=str(path)):
            read_sn3_pascalvincent_tensor(str(path))


def test_mnist_has_a_label_for_each_picture(tmp_path) -> None:
    next(BUILDERS["mnist"](tmp_path))
    idx(tmp_path / "MNIST" / "raw" / "train-labels-idx1-ubyte", np.arange(2, dtype=np.uint8))
    with pytest.raises(ValueError, match="has 3 images, but .* has 2 labels"):
        datasets.MNIST(tmp_path)
    idx(tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="should have 3 dimensions"):
        datasets.MNIST(tmp_path)


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/rushlight-evil",)


def test_cifar_runs_no_code_of_its_files(tmp_path, without_md5) -> None:
    next(BUILDERS["cifar"](tmp_path))
    path = tmp_path / "cifar-10-batches-py" / "data_batch_2"
    good = path.read_bytes()
    short = old_pickle({"labels": [1], "data": colored(2, 32).reshape(2, 3072)})
    other = old_pickle({"labels": [1], "data": np.zeros((1, 7), np.uint8)})
    floats = pickle.dumps({"labels": [1], "data": np.zeros((1, 3072), np.float32)}, 2)
    for damaged in (
        pickle.dumps({"data": Evil(), "labels": []}, 2),
        pickle.dumps({"data": np.array([Evil()], dtype=object), "labels": [1]}, 2),
        b"cos\nsystem\n(S'id'\ntR.",
        good[:-5],
        good[: len(good) // 2],
        b"",
        b"]" * 10,
        pickle.dumps([1, 2], 2),
        short,
        other,
        floats,
    ):
        path.write_bytes(damaged)
        with pytest.raises(pickle.UnpicklingError, match="data_batch_2"):
            datasets.CIFAR10(tmp_path)
    assert not os.path.exists("/tmp/rushlight-evil")


def test_arrays_of_objects_are_not_loaded(tmp_path) -> None:
    path = tmp_path / "MovingMNIST" / "mnist_test_seq.npy"
    path.parent.mkdir()
    np.save(path, np.array([Evil()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="mnist_test_seq.npy is damaged"):
        datasets.MovingMNIST(tmp_path)


DAMAGED_TEXTS = {
    "usps": ("usps.bz2", "USPS"),
    "fer2013": ("fer2013/icml_face_data.csv", "FER2013"),
    "lfw": ("lfw-py/people.txt", "LFWPeople"),
    "wider_face": ("widerface/wider_face_split/wider_face_train_bbx_gt.txt", "WIDERFace"),
    "celeba": ("celeba/list_bbox_celeba.txt", "CelebA"),
    "svhn": ("train_32x32.mat", "SVHN"),
    "stl10": ("stl10_binary/train_X.bin", "STL10"),
    "stanford_cars": ("stanford_cars/devkit/cars_train_annos.mat", "StanfordCars"),
    "flickr": ("30k.token", "Flickr30k"),
}


@pytest.mark.parametrize("name", DAMAGED_TEXTS)
def test_damaged_tables_are_named(name, tmp_path, without_md5) -> None:
    file, cls = DAMAGED_TEXTS[name]
    cases = [case for case in BUILDERS[name](tmp_path) if case.name == cls]
    path = tmp_path / file
    content = (
        b"emotion, Usage, pixels\n3,Training,1 2\n"
        if name == "fer2013"
        else b"1\nx y z w\nno numbers\n\n"
    )
    path.write_bytes(bz2.compress(content) if file.endswith("bz2") else content)
    with pytest.raises((ValueError, RuntimeError), match=path.name):
        getattr(datasets, cls)(tmp_path, **cases[0].arguments)


# Pictures


def test_damaged_pictures_are_named(tmp_path) -> None:
    path = tmp_path / "a.png"
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (60, 50, 3), dtype=np.uint8)).save(path)
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:80] + b"\0" * 99 + whole[179:], b"", b"text"):
        path.write_bytes(damaged)
        with pytest.raises((OSError, SyntaxError), match="a.png"):
            pil_loader(path)
    with pytest.raises(FileNotFoundError, match="none.png"):
        pil_loader(tmp_path / "none.png")


def test_damaged_motion_is_named(tmp_path) -> None:
    for name, read in (
        ("a.flo", _optical_flow.read_flo),
        ("a.pfm", _optical_flow.read_pfm),
        ("a.png", _png.read_png16),
    ):
        path = tmp_path / name
        if name == "a.flo":
            path.write_bytes(b"PIEH" + struct.pack("<ii", 2, 3) + bytes(48))
        elif name == "a.pfm":
            path.write_bytes(b"PF\n2 3\n-1.0\n" + bytes(72))
        else:
            motion_png(path, 0)
        whole = path.read_bytes()
        read(path)
        huge = whole.replace(struct.pack("<ii", 2, 3), struct.pack("<ii", 2**31 - 1, 2**31 - 1))
        huge = huge.replace(b"2 3\n", b"99999999 99999999\n")
        huge = huge.replace(struct.pack(">II", 6, 7), struct.pack(">II", 2**31 - 1, 2**31 - 1))
        for damaged in (huge, whole[:-60], whole[:9], b"", b"x" * 100):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=name):
                read(path)
    picture(path, 3)
    with pytest.raises(ValueError, match="not a plain PNG of three 16-bit channels"):
        read(path)


# Folders


def test_folders_without_pictures_are_told(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        datasets.ImageFolder(tmp_path)
    picture(tmp_path / "cat" / "a.png", 1)
    text(tmp_path / "dog" / "notes.txt", "")
    text(tmp_path / "ant" / "notes.txt", "")
    with pytest.raises(FileNotFoundError, match=r"for the classes ant, dog\. Supported .* \.jpg,"):
        datasets.ImageFolder(tmp_path)
    found = datasets.ImageFolder(tmp_path, allow_empty=True)
    assert found.classes == ["ant", "cat", "dog"]
    assert found.targets == [1]
    for arguments in ({}, {"extensions": (".png",), "is_valid_file": str.isascii}):
        with pytest.raises(ValueError, match="cannot be None or not None at the same time"):
            datasets.DatasetFolder(tmp_path, pil_loader, **arguments)
    with pytest.raises(ValueError, match="at least one entry"):
        datasets.folder.make_dataset(tmp_path, {}, ".png")
    with pytest.raises(ValueError, match="Only transforms or transform/target_transform"):
        datasets.VisionDataset(tmp_path, transforms=max, transform=max)


def test_archives_of_devkits_do_not_leave_half_folders(tmp_path, monkeypatch) -> None:
    import io
    import tarfile

    from rushlight.vision.datasets import imagenet

    monkeypatch.setattr(utils, "check_md5", lambda *_: True)

    def tar(entries):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, data in entries.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return file.getvalue()

    (tmp_path / "ILSVRC2012_img_train.tar").write_bytes(
        tar({"n01.tar": tar({"a.JPEG": b"x"}), "n02.tar": b"damaged"})
    )
    with pytest.raises(RuntimeError, match=r"n02.tar is damaged"):
        imagenet.parse_train_archive(tmp_path)
    assert not (tmp_path / "train").exists()
    (tmp_path / "ILSVRC2012_img_train.tar").write_bytes(
        tar({"n01.tar": tar({"a.JPEG": b"x"}), "n02.tar": tar({"b.JPEG": b"y"})})
    )
    imagenet.parse_train_archive(tmp_path)
    found = sorted(str(p.relative_to(tmp_path)) for p in (tmp_path / "train").rglob("*.JPEG"))
    assert found == ["train/n01/a.JPEG", "train/n02/b.JPEG"]
    (tmp_path / "ILSVRC2012_img_val.tar").write_bytes(tar({"2.JPEG": b"x", "1.JPEG": b"y"}))
    imagenet.parse_val_archive(tmp_path, wnids=["n02", "n01"])
    assert (tmp_path / "val" / "n02" / "1.JPEG").read_bytes() == b"y"
    assert (tmp_path / "val" / "n01" / "2.JPEG").read_bytes() == b"x"


def test_the_package_imports_nothing_until_it_is_needed() -> None:
    program = (
        "import sys, rushlight.vision.datasets as d\n"
        "assert 'PIL' not in sys.modules and 'numpy' not in sys.modules\n"
        "d.Food101; assert 'scipy' not in sys.modules and 'rushlight.vision.datasets.mnist' not in "
        "sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ})
    assert set(datasets.__all__) < set(dir(datasets))
    assert not hasattr(datasets, "CIFAR11")


def test_random_pictures_are_the_same_every_time() -> None:
    pytest.importorskip("rushlight.vision.transforms")
    data = datasets.FakeData(3, (3, 5, 6), num_classes=4)
    state = torch.get_rng_state()
    first, second = [data[n] for n in range(3)], [data[n] for n in range(3)]
    assert torch.equal(state, torch.get_rng_state())
    assert [x.tobytes() for x, _ in first] == [x.tobytes() for x, _ in second]
    assert [y for _, y in first] == [y for _, y in second]
    assert first[0][0].tobytes() != first[1][0].tobytes()
    with pytest.raises(IndexError):
        data[3]
