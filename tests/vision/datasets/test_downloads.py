"""Downloads, from a server in this process: what is kept, what is refused, and what is unpacked."""

import gzip
import hashlib
import io
import os
import pathlib
import socket
import tarfile
import urllib.error
import zipfile

import numpy as np
import pytest
from local_site import Site
from vision.datasets.small_data import BUILDERS
from vision.datasets.small_data.arrays import old_pickle
from vision.datasets.small_data.writing import colored, gray

from rushlight import _download, _unpack
from rushlight.vision import datasets
from rushlight.vision.datasets import utils


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


@pytest.fixture
def site():
    result = Site()
    yield result
    result.close()


def tarred(*entries, compression="gz"):
    """A tar archive of names and bytes, or of TarInfos."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=f"w:{compression}") as archive:
        for name, data in entries:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def zipped(*entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return file.getvalue()


# Files


def test_a_file_is_downloaded_once(site, tmp_path) -> None:
    site.pages["/a%20b.txt"] = 200, b"hello"
    for _ in range(2):
        utils.download_url(f"{site.url}/a%20b.txt?v=1", tmp_path / "new", md5=md5(b"hello"))
    assert (tmp_path / "new" / "a b.txt").read_bytes() == b"hello"
    assert len(site.requests) == 1
    utils.download_url(f"{site.url}/a%20b.txt", str(tmp_path), "other")
    assert os.listdir(tmp_path) == ["new", "other"] or os.listdir(tmp_path) == ["other", "new"]


def test_a_damaged_file_is_replaced(site, tmp_path) -> None:
    site.pages["/a"] = 200, b"right"
    (tmp_path / "a").write_bytes(b"wrong")
    utils.download_url(f"{site.url}/a", tmp_path, md5=md5(b"right"))
    assert (tmp_path / "a").read_bytes() == b"right"


def test_a_file_with_another_md5_is_not_kept(site, tmp_path) -> None:
    site.pages["/a"] = 200, b"other"
    with pytest.raises(RuntimeError, match=f"corrupted.*{md5(b'other')}, not {md5(b'x')}"):
        utils.download_url(f"{site.url}/a", tmp_path, md5=md5(b"x"))
    site.missing = 3
    with pytest.raises(RuntimeError, match="cut off after 5 of 8 bytes"):
        utils.download_url(f"{site.url}/a", tmp_path)
    assert not os.listdir(tmp_path)


def test_what_cannot_be_reached_is_said(site, tmp_path) -> None:
    site.pages["/none"] = 404, b"no such file"
    text = r"cannot download .*Not Found.*put the file"
    with pytest.raises(urllib.error.URLError, match=text) as raised:
        utils.download_url(f"{site.url}/none", tmp_path)
    answer = raised.value.__cause__
    assert isinstance(answer, urllib.error.HTTPError) and answer.fp.closed
    with pytest.raises(urllib.error.URLError, match="Connection refused"):
        utils.download_url("http://127.0.0.1:9/a", tmp_path)
    for url in (site.url, f"{site.url}/..", f"{site.url}/a/%2e%2e"):
        with pytest.raises(ValueError, match="no name in"):
            utils.download_url(url, tmp_path)
    assert utils.name_in(f"{site.url}/%2e%2e%2fevil") == "evil"


def test_a_server_that_says_nothing_is_given_up(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(_download, "_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/a"
        with pytest.raises(urllib.error.URLError, match=f"cannot download {url}: .*timed out"):
            utils.download_url(url, tmp_path)
    assert not os.listdir(tmp_path)


def test_redirects_are_followed_a_few_times(site, tmp_path) -> None:
    for number in range(6):
        site.pages[f"/{number}"] = 302, b"", ("Location", f"{site.url}/{number + 1}")
    site.pages["/6"] = 200, b"end"
    utils.download_url(f"{site.url}/4", tmp_path)
    assert (tmp_path / "4").read_bytes() == b"end"
    with pytest.raises(urllib.error.URLError, match="redirect"):
        utils.download_url(f"{site.url}/0", tmp_path)


def test_files_on_google_drive(site, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(utils, "_DRIVE", f"{site.url}/drive?id=")
    site.pages["/drive"] = 200, b"data", ("Content-Type", "application/octet-stream")
    utils.download_file_from_google_drive("abc", tmp_path, md5=md5(b"data"))
    assert (tmp_path / "abc").read_bytes() == b"data"
    assert site.requests == ["/drive?id=abc"]
    site.pages["/drive"] = 200, b"<html>", ("Content-Type", "text/html; charset=utf-8")
    with pytest.raises(RuntimeError, match="answers .* with a page"):
        utils.download_url("https://drive.google.com/file/d/xyz/view", tmp_path, "b")


# Archives


@pytest.mark.parametrize(
    ("ending", "compression"),
    [
        (".tar", ""),
        (".tar", "gz"),
        (".tar.gz", "gz"),
        (".tgz", "gz"),
        (".tar.bz2", "bz2"),
        (".tbz2", "bz2"),
        (".tar.xz", "xz"),
    ],
)
def test_tar_archives_are_unpacked(ending, compression, tmp_path) -> None:
    path = tmp_path / f"data{ending}"
    path.write_bytes(tarred(("a/b.txt", b"one"), ("a/c/d.txt", b"two"), compression=compression))
    assert utils.extract_archive(path) == tmp_path
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"one"
    assert (tmp_path / "a" / "c" / "d.txt").read_bytes() == b"two"
    # Over what is there, elsewhere, and without the archive.
    (tmp_path / "a" / "b.txt").write_bytes(b"old")
    (tmp_path / "a" / "mine.txt").write_bytes(b"mine")
    assert utils.extract_archive(str(path), remove_finished=True) == str(tmp_path)
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"one"
    assert sorted(os.listdir(tmp_path / "a")) == ["b.txt", "c", "mine.txt"]
    assert os.listdir(tmp_path) == ["a"]


def test_other_archives_are_unpacked(tmp_path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped(("x/", b""), ("x/y.txt", b"one")))
    utils.extract_archive(tmp_path / "a.zip", tmp_path / "to")
    assert (tmp_path / "to" / "x" / "y.txt").read_bytes() == b"one"
    (tmp_path / "images.idx.gz").write_bytes(gzip.compress(b"two"))
    found = utils.extract_archive(tmp_path / "images.idx.gz", tmp_path / "to")
    assert found == tmp_path / "to" / "images.idx"
    assert isinstance(found, pathlib.Path)
    assert found.read_bytes() == b"two"
    with pytest.raises(RuntimeError, match=r"Unknown compression or archive type: '.rar'"):
        utils.extract_archive("data.rar", tmp_path)


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def special(name: str, kind: bytes) -> tuple[tarfile.TarInfo, bytes]:
    return link(name, "", kind)


HOSTILE_TARS = {
    "parent": [("../evil", b"x")],
    "inner parent": [("a/../../evil", b"x")],
    "absolute": [("/tmp/evil", b"x")],
    "backslashes": [("..\\evil", b"x")],
    "drive": [("C:/evil", b"x")],
    "symbolic link": [link("a", "/etc"), ("a/passwd", b"x")],
    "link to a neighbor": [("b", b"x"), link("a", "b")],
    "hard link": [link("a", "/etc/passwd", tarfile.LNKTYPE)],
    "device": [special("null", tarfile.CHRTYPE)],
    "pipe": [special("pipe", tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("name", HOSTILE_TARS)
def test_hostile_tars_are_refused_whole(name, tmp_path) -> None:
    path = tmp_path / "in" / "a.tar.gz"
    path.parent.mkdir()
    path.write_bytes(tarred(("good.txt", b"x"), *HOSTILE_TARS[name]))
    with pytest.raises(ValueError, match="leads out|neither a file nor a folder") as error:
        utils.extract_archive(path, tmp_path / "in" / "out")
    assert str(path) in str(error.value)
    assert not os.listdir(tmp_path / "in" / "out")
    assert os.listdir(tmp_path) == ["in"]


def test_hard_links_are_copies(tmp_path) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(tarred(("one", b"x"), link("two", "one", tarfile.LNKTYPE)))
    utils.extract_archive(path)
    (tmp_path / "one").write_bytes(b"y")
    assert (tmp_path / "two").read_bytes() == b"x"


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "..\\evil", "C:evil"])
def test_hostile_zips_are_refused_whole(name, tmp_path) -> None:
    path = tmp_path / "in" / "a.zip"
    path.parent.mkdir()
    path.write_bytes(zipped(("good.txt", b"x"), (name, b"x")))
    with pytest.raises(ValueError, match="leads out of the archive"):
        utils.extract_archive(path, tmp_path / "in" / "out")
    assert not os.listdir(tmp_path / "in" / "out")


def test_links_in_zips_are_refused(tmp_path) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    (tmp_path / "a.zip").write_bytes(zipped((info, b"/etc/passwd")))
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        utils.extract_archive(tmp_path / "a.zip")


def test_archives_that_grow_without_end_are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(_unpack, "_MAX_SIZE", 1 << 20)
    zeros = bytes(8 << 20)
    for name, data in (
        ("a.zip", zipped(("a", zeros))),
        ("a.tar.gz", tarred(("a", zeros))),
        ("a.gz", gzip.compress(zeros)),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=r"unpacks to more than 1\d{6} bytes"):
            utils.extract_archive(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["a.gz", "a.tar.gz", "a.zip"]


def test_damaged_archives_are_named(tmp_path) -> None:
    noise = np.random.default_rng(0).bytes(5000)
    for name, data in (
        ("a.zip", zipped(("a", noise))),
        ("a.tar.gz", tarred(("a", noise))),
        ("a.tar.bz2", tarred(("a", noise), compression="bz2")),
        ("a.tar.xz", tarred(("a", noise), compression="xz")),
        ("a.tar", tarred(("a", noise), compression="")),
        ("b.gz", gzip.compress(noise)),
    ):
        for damaged in (data[: len(data) // 2], data[:30] + b"\xff" * 40 + data[70:-600], b"no"):
            (tmp_path / name).write_bytes(damaged)
            with pytest.raises(RuntimeError, match=f"(?s){name} is damaged: .*download it again"):
                utils.extract_archive(tmp_path / name)
            assert os.listdir(tmp_path) == [name]
        os.remove(tmp_path / name)


def test_each_byte_of_a_compressed_tar_counts(tmp_path) -> None:
    noise = np.random.default_rng(0).bytes(5000)
    data = bytearray(tarred(("a", noise)))
    data[2000] ^= 1
    (tmp_path / "a.tar.gz").write_bytes(data)
    with pytest.raises(RuntimeError, match=r"a.tar.gz is damaged: CRC check failed"):
        utils.extract_archive(tmp_path / "a.tar.gz")
    assert os.listdir(tmp_path) == ["a.tar.gz"]


# Whole data sets


def idx_bytes(values: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return gzip.compress(bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes())


@pytest.fixture
def small_mnist(site, monkeypatch):
    """MNIST on two mirrors, of which the first lacks a file and has another damaged."""
    values = [gray(3), np.arange(3, dtype=np.uint8), gray(2), np.arange(2, dtype=np.uint8)]
    names = [name for name, _ in datasets.MNIST.resources]
    files = dict(zip(names, map(idx_bytes, values), strict=True))
    for name, data in files.items():
        site.pages[f"/second/{name}"] = 200, data
    site.pages[f"/first/{names[1]}"] = 200, b"damaged"
    monkeypatch.setattr(datasets.MNIST, "mirrors", [f"{site.url}/first/", f"{site.url}/second/"])
    monkeypatch.setattr(
        datasets.MNIST, "resources", [(name, md5(data)) for name, data in files.items()]
    )
    return names


def test_mnist_comes_from_the_mirror_that_has_it(site, tmp_path, small_mnist, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match=r"not found.*train-images-idx3-ubyte\. You can use dow"):
        datasets.MNIST("data")
    assert len(datasets.MNIST("data", download=True)) == 3
    requests = len(site.requests)
    assert len(datasets.MNIST("data", train=False, download=True)) == 2
    assert len(site.requests) == requests == 8
    assert (tmp_path / "data" / "MNIST" / "raw" / small_mnist[0]).exists()


def test_what_no_mirror_has_is_said_of_each(site, tmp_path, small_mnist) -> None:
    del site.pages[f"/second/{small_mnist[1]}"]
    with pytest.raises(RuntimeError) as error:
        datasets.MNIST(tmp_path, download=True)
    lines = str(error.value).splitlines()
    assert lines[0] == f"Error downloading {small_mnist[1]}:"
    assert "/first/" in lines[1]
    assert "corrupted" in lines[2]
    assert "/second/" in lines[3]
    assert "Not Found" in lines[4]


def test_cifar_is_downloaded_and_unpacked(site, tmp_path, monkeypatch) -> None:
    pixels = colored(2, 32).reshape(2, 3072)
    batch = old_pickle({"labels": [7, 3], "data": pixels})
    meta = old_pickle({"label_names": ["airplane", "automobile"]})
    folder = datasets.CIFAR10.base_folder
    names = [name for name, _ in datasets.CIFAR10.train_list + datasets.CIFAR10.test_list]
    entries = [(f"{folder}/{name}", batch) for name in names]
    archive = tarred(*entries, (f"{folder}/batches.meta", meta))
    site.pages["/cifar-10-python.tar.gz"] = 200, archive
    monkeypatch.setattr(datasets.CIFAR10, "url", f"{site.url}/cifar-10-python.tar.gz")
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5(archive))
    known = [[name, md5(batch)] for name in names]
    monkeypatch.setattr(datasets.CIFAR10, "train_list", known[:5])
    monkeypatch.setattr(datasets.CIFAR10, "test_list", known[5:])
    monkeypatch.setattr(datasets.CIFAR10, "meta", {**datasets.CIFAR10.meta, "md5": md5(meta)})
    data = datasets.CIFAR10(tmp_path, download=True)
    assert len(data) == 10
    assert data.class_to_idx == {"airplane": 0, "automobile": 1}
    (tmp_path / folder / "data_batch_3").write_bytes(batch[:-1])
    with pytest.raises(RuntimeError, match="data_batch_3 is not the file with the MD5"):
        datasets.CIFAR10(tmp_path)
    assert len(datasets.CIFAR10(tmp_path, download=True)) == 10  # unpacked again
    assert len(site.requests) == 1


def test_archives_go_to_the_folders_where_they_are_looked_for(site, tmp_path, monkeypatch) -> None:
    """Packs what a data set needs as its owners do, and downloads that."""
    monkeypatch.setattr(utils, "check_md5", lambda *_: True)
    monkeypatch.chdir(tmp_path)
    packed = {
        "food101": (datasets.Food101, "food-101.tar.gz", ""),
        "dtd": (datasets.DTD, "dtd-r1.0.1.tar.gz", "dtd"),
        "clevr": (datasets.CLEVRClassification, "CLEVR_v1.0.zip", "clevr"),
        "eurosat": (datasets.EuroSAT, "EuroSAT.zip", "eurosat"),
        "sun397": (datasets.SUN397, "SUN397.tar.gz", ""),
    }
    for name, (cls, archive, folder) in packed.items():
        case = next(BUILDERS[name](tmp_path / name))
        base = tmp_path / name / folder
        files = [(str(p.relative_to(base)), p.read_bytes()) for p in base.rglob("*") if p.is_file()]
        data = zipped(*files) if archive.endswith("zip") else tarred(*files)
        site.pages[f"/{archive}"] = 200, data
        (source,) = cls._sources
        changed = type(source)(f"{site.url}/{archive}", md5(data), folder=source.folder)
        monkeypatch.setattr(cls, "_sources", (changed,))
        found = cls("new", download=True, **case.arguments)
        assert len(found) == len(case.expected)
        assert cls("new", **case.arguments)[0][1] == case.expected[0][1]


def test_emnist_and_qmnist_are_unpacked_where_they_are_read(site, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [
        f"gzip/emnist-letters-{part}-{kind}-ubyte.gz"
        for part in ("train", "test")
        for kind in ("images-idx3", "labels-idx1")
    ]
    files = [idx_bytes(gray(2)), idx_bytes(np.array([3, 1], np.uint8))] * 2
    archive = zipped(*zip(names, files, strict=True))
    site.pages["/gzip.zip"] = 200, archive
    monkeypatch.setattr(datasets.EMNIST, "url", f"{site.url}/gzip.zip")
    monkeypatch.setattr(datasets.EMNIST, "md5", md5(archive))
    data = datasets.EMNIST("data", split="letters", download=True)
    assert [data[n][1] for n in range(2)] == [3, 1]
    assert len(datasets.EMNIST("data", split="letters", train=False, download=True)) == 2
    assert len(site.requests) == 1
    raw = sorted(os.listdir("data/EMNIST/raw"))
    assert raw[-1] == "gzip.zip"
    assert len(raw) == 5
    labels = np.arange(16, dtype=">i4").reshape(2, 8)
    header = bytes([0, 0, 12, 2, 0, 0, 0, 2, 0, 0, 0, 8])
    known = []
    for name, file in (
        ("qmnist-test-images-idx3-ubyte.gz", files[0]),
        ("qmnist-test-labels-idx2-int.gz", gzip.compress(header + labels.tobytes())),
    ):
        site.pages[f"/{name}"] = 200, file
        known.append((f"{site.url}/{name}", md5(file)))
    monkeypatch.setitem(datasets.QMNIST.resources, "test", known)
    data = datasets.QMNIST("data", train=False, compat=False, download=True)
    assert data[1][1].tolist() == [*range(8, 16)]
