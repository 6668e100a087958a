"""Data sets in arrays: MNIST's relatives, CIFAR and others."""

import bz2
import pickle
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from vision.datasets.small_data.writing import Case, builder, colored, gray, idx, mat, text


@builder
def mnist(root: Path) -> Iterator[Case]:
    for name in ("MNIST", "FashionMNIST", "KMNIST"):
        for part, count in (("train", 3), ("t10k", 2)):
            raw = root / name / "raw"
            idx(raw / f"{part}-images-idx3-ubyte", gray(count))
            idx(raw / f"{part}-labels-idx1-ubyte", np.arange(count, dtype=np.uint8) + 4)
        yield Case(name, {}, [(0, 4), (1, 5), (2, 6)])
        yield Case(name, {"train": False}, [(0, 4), (1, 5)])


@builder
def emnist(root: Path) -> Iterator[Case]:
    for split in ("byclass", "bymerge", "balanced", "letters", "digits", "mnist"):
        for part in ("train", "test"):
            stem = root / "EMNIST" / "raw" / f"emnist-{split}-{part}"
            idx(stem.with_name(f"{stem.name}-images-idx3-ubyte"), gray(2))
            idx(stem.with_name(f"{stem.name}-labels-idx1-ubyte"), np.array([3, 1], np.uint8))
        yield Case("EMNIST", {"split": split}, [(0, 3), (1, 1)])
        yield Case("EMNIST", {"split": split, "train": False}, [(0, 3), (1, 1)])


@builder
def qmnist(root: Path) -> Iterator[Case]:
    raw = root / "QMNIST" / "raw"
    labels = (np.arange(16).reshape(2, 8) * 100000).astype(">i4")
    for stem in ("qmnist-train", "qmnist-test", "xnist"):
        idx(raw / f"{stem}-images-idx3-ubyte", gray(2))
        idx(raw / f"{stem}-labels-idx2-int", labels, kind=12)
    for what in (None, "train", "test", "test10k", "nist"):
        yield Case("QMNIST", {"what": what}, [(0, 0), (1, 800000)])
    yield Case("QMNIST", {"compat": False}, [(n, labels[n].tolist()) for n in range(2)])


def old_pickle(content: dict[str, Any]) -> bytes:
    """A pickle as Python 2 wrote them, whose array is CIFAR's: texts are byte strings."""

    def short(value: str) -> bytes:
        return b"U" + bytes([len(value)]) + value.encode("latin-1")

    def item(value: Any) -> bytes:
        if isinstance(value, str):
            return short(value)
        if isinstance(value, int):
            return b"K" + bytes([value])
        if isinstance(value, list):
            return b"](" + b"".join(map(item, value)) + b"e"
        data = value.tobytes()
        dtype = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR"
        dtype += b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        shape = b"(" + b"".join(b"M" + struct.pack("<H", n) for n in value.shape) + b"t"
        array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
        body = b"T" + struct.pack("<I", len(data)) + data
        return array + b"(K\x01" + shape + dtype + b"\x89" + body + b"tb"

    items = b"".join(short(key) + item(value) for key, value in content.items())
    return b"\x80\x02}(" + items + b"u."


@builder
def cifar(root: Path) -> Iterator[Case]:
    for name, folder, files, key in (
        ("CIFAR10", "cifar-10-batches-py", [f"data_batch_{n}" for n in range(1, 6)], "labels"),
        ("CIFAR100", "cifar-100-python", ["train"], "fine_labels"),
    ):
        base = root / folder
        base.mkdir()
        pixels = colored(2, 32).reshape(2, 3072)
        batch = {"batch_label": "training", key: [7, 3], "data": pixels, "filenames": ["a", "b"]}
        for file in (*files, "test_batch" if name == "CIFAR10" else "test"):
            # Both as Python 2 wrote them and as Python 3 does.
            data = old_pickle(batch) if file.endswith(("1", "train")) else pickle.dumps(batch, 2)
            (base / file).write_bytes(data)
        meta = "batches.meta" if name == "CIFAR10" else "meta"
        names = "label_names" if name == "CIFAR10" else "fine_label_names"
        (base / meta).write_bytes(old_pickle({names: ["airplane", "automobile"]}))
        yield Case(name, {}, [(0, 7), (1, 3)] * len(files))
        yield Case(name, {"train": False}, [(0, 7), (1, 3)])


@builder
def svhn(root: Path) -> Iterator[Case]:
    for split in ("train", "test", "extra"):
        pixels = colored(3, 32).transpose(2, 3, 1, 0)
        mat(root / f"{split}_32x32.mat", X=pixels, y=np.array([[10], [2], [9]], np.uint8))
        yield Case("SVHN", {"split": split}, [(0, 0), (1, 2), (2, 9)])


@builder
def stl10(root: Path) -> Iterator[Case]:
    base = root / "stl10_binary"
    base.mkdir()
    for part in ("train", "test", "unlabeled"):
        (base / f"{part}_X.bin").write_bytes(colored(3, 96).tobytes())
        if part != "unlabeled":
            (base / f"{part}_y.bin").write_bytes(bytes([2, 1, 10]))
    text(base / "class_names.txt", "airplane\nbird\n")
    text(base / "fold_indices.txt", "\n".join(["2 0"] * 10))
    labeled, unlabeled = [(0, 1), (1, 0), (2, 9)], [(0, -1), (1, -1), (2, -1)]
    yield Case("STL10", {}, labeled)
    yield Case("STL10", {"split": "test"}, labeled)
    yield Case("STL10", {"split": "unlabeled"}, unlabeled)
    yield Case("STL10", {"split": "train+unlabeled"}, labeled + unlabeled)
    yield Case("STL10", {"folds": 4}, [(2, 9), (0, 1)])


@builder
def usps(root: Path) -> Iterator[Case]:
    for name in ("usps.bz2", "usps.t.bz2"):
        row = " ".join(f"{n + 1}:{-1 if n else 1}" for n in range(256))
        (root / name).write_bytes(bz2.compress(f"10 {row}\n1 {row}\n".encode()))
    yield Case("USPS", {}, [(255, 9), (255, 0)])
    yield Case("USPS", {"train": False}, [(255, 9), (255, 0)])


@builder
def semeion(root: Path) -> Iterator[Case]:
    rows = ["1.0 " + "0.0 " * 255 + " ".join(str(int(n == d)) for n in range(10)) for d in (3, 8)]
    text(root / "semeion.data", "\n".join(rows) + "\n")
    yield Case("SEMEION", {"download": False}, [(255, 3), (255, 8)])


@builder
def fer2013(root: Path) -> Iterator[Case]:
    def row(number: int) -> str:
        return " ".join([str(number)] * 48 * 48)

    base = root / "fer2013"
    text(base / "train.csv", f"emotion,pixels\n3,{row(1)}\n4,{row(2)}\n")
    text(base / "test.csv", f"pixels\n{row(3)}\n")
    yield Case("FER2013", {}, [(1, 3), (2, 4)])
    yield Case("FER2013", {"split": "test"}, [(3, None)])
    usages = zip((5, 6, 7), ("Training", "PublicTest", "PrivateTest"), strict=True)
    rows = [f"{n},{usage},{row(n)}" for n, usage in usages]
    text(base / "icml_face_data.csv", "\n".join(["emotion, Usage, pixels", *rows]))
    yield Case("FER2013", {}, [(5, 5)])
    yield Case("FER2013", {"split": "test"}, [(6, 6), (7, 7)])


@builder
def moving_mnist(root: Path) -> Iterator[Case]:
    films = np.random.default_rng(0).integers(0, 255, (20, 2, 64, 64), dtype=np.uint8)
    (root / "MovingMNIST").mkdir()
    np.save(root / "MovingMNIST" / "mnist_test_seq.npy", films)
    for split, part in (
        (None, slice(20)),
        ("train", slice(10)),
        ("test", slice(10, 20)),
    ):
        frames = [films[part, n, None].tolist() for n in range(2)]
        yield Case("MovingMNIST", {"split": split}, [(None, film) for film in frames])


@builder
def pcam(root: Path) -> Iterator[Case]:
    import h5py

    (root / "pcam").mkdir()
    for part in ("train", "test", "valid"):
        stem = str(root / "pcam" / f"camelyonpatch_level_2_split_{part}_")
        with h5py.File(f"{stem}x.h5", "w") as file:
            file["x"] = colored(2, 96, channels_first=False)
        with h5py.File(f"{stem}y.h5", "w") as file:
            file["y"] = np.array([1, 0]).reshape(2, 1, 1, 1)
    for split in ("train", "test", "val"):
        yield Case("PCAM", {"split": split}, [(0, 1), (1, 0)])


@builder
def phototour(root: Path) -> Iterator[Case]:
    base = root / "liberty"
    base.mkdir()
    patches = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for number in range(2):
        Image.fromarray(np.kron(patches, np.ones((64, 64), np.uint8)) ^ number).save(
            base / f"patches{number:04d}.bmp"
        )
    text(base / "info.txt", "".join(f"{n // 2} 0\n" for n in range(512)))
    text(base / "m50_100000_100000_0.txt", "3 1 0 1 1 0 0\n5 2 0 9 4 0 0\n")
    expected = [(None, np.full((64, 64), n % 256 ^ n // 256).tolist()) for n in range(512)]
    yield Case("PhotoTour", {"name": "liberty"}, expected)
    pairs = [([expected[a][1], expected[b][1], same]) for a, b, same in ((3, 1, 1), (5, 9, 0))]
    yield Case("PhotoTour", {"name": "liberty", "train": False}, [(None, p) for p in pairs])
