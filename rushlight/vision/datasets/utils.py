"""Downloading the files of data sets, checking them and unpacking them; checks of arguments.

Owns torchvision's functions over the mechanisms of rushlight/_download.py and _unpack.py. What is
downloaded is checked before it gets its name, so a file that is there is whole.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from email.message import Message
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlparse

from rushlight._download import fetch
from rushlight._unpack import decompress, kind_of, unpack
from rushlight.vision.datasets.vision import AnyPath

__all__ = [
    "calculate_md5",
    "check_integrity",
    "check_md5",
    "download_and_extract_archive",
    "download_file_from_google_drive",
    "download_url",
    "extract_archive",
    "iterable_to_str",
    "list_dir",
    "list_files",
    "verify_str_arg",
]

USER_AGENT = "rushlight/vision"
_DRIVE = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="


# Checksums


def calculate_md5(fpath: AnyPath, chunk_size: int = 1024 * 1024) -> str:
    """Returns the MD5 of a file as hexadecimal digits: against accidents, not against forgery."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(fpath, "rb") as file:
        while chunk := file.read(chunk_size):
            digest.update(chunk)
    return digest.hexdigest()


def check_md5(fpath: AnyPath, md5: str, **kwargs: Any) -> bool:
    """Returns whether a file has this MD5; further arguments are calculate_md5's."""
    return md5 == calculate_md5(fpath, **kwargs)


def check_integrity(fpath: AnyPath, md5: str | None = None) -> bool:
    """Returns whether a file is there and, if an MD5 is given, has it."""
    return os.path.isfile(fpath) and (md5 is None or check_md5(fpath, md5))


# Downloads


def download_url(
    url: str,
    root: AnyPath,
    filename: AnyPath | None = None,
    md5: str | None = None,
    max_redirect_hops: int = 3,
) -> None:
    """Downloads a file to a folder, which is made, unless it is there already.

    Args:
        url: address; one of a file on Google Drive, https://drive.google.com/file/d/<id>, will do.
        root: the folder.
        filename: name for the file, by default the last part of the address.
        md5: hexadecimal MD5 that the file must have.
        max_redirect_hops: how often the server may name another address.

    Raises:
        RuntimeError: if the file has another MD5 or is cut off.
        urllib.error.URLError: if the server cannot be reached or does not have it.
        ValueError: if the address has no last part.
    """
    name = os.fspath(filename or name_in(url))
    _download(url, os.path.join(os.path.expanduser(root), name), md5, max_redirect_hops)


def name_in(url: str) -> str:
    """The name of the file at the end of an address, which leads to no other folder."""
    name = os.path.basename(unquote(urlparse(url).path))
    if name in ("", ".", ".."):
        raise ValueError(f"download_url: no name in {url}. Pass filename.")
    return name


def download_file_from_google_drive(
    file_id: str, root: AnyPath, filename: AnyPath | None = None, md5: str | None = None
) -> None:
    """Downloads a file that is shared on Google Drive to a folder, unless it is there already.

    Args:
        file_id: what stands for the file in its address.
        root: the folder.
        filename: name for the file, by default its id.
        md5: hexadecimal MD5 that the file must have.

    Raises:
        RuntimeError: if the file has another MD5, or a page comes instead of it.
        urllib.error.URLError: if the server cannot be reached or does not have it.
    """
    download_url(f"https://drive.google.com/file/d/{file_id}", root, filename or file_id, md5)


def _download(url: str, place: str, md5: str | None, max_redirects: int) -> None:
    if check_integrity(place, md5):
        return
    on_drive = re.match(r"https://(?:drive|docs)[.]google[.]com/file/d/([^/?]+)", url)

    def check_digest(found: str) -> None:
        if md5 is not None and found != md5:
            raise RuntimeError(
                f"download_url: File not found or corrupted. {url} has the MD5 {found}, not {md5}: "
                "it was damaged on the way or replaced. It was not kept."
            )

    def check_headers(headers: Message) -> None:
        if on_drive and headers.get_content_type() == "text/html":
            raise RuntimeError(
                f"download_url: Google Drive answers {url} with a page, not the file: it is not "
                f"shared, or was downloaded too often today. Put it at {place} with a browser."
            )

    os.makedirs(os.path.dirname(place), exist_ok=True)
    try:
        fetch(
            _DRIVE + on_drive[1] if on_drive else url,
            place,
            "download_url",
            check_digest,
            digest="md5",
            agent=USER_AGENT,
            max_redirects=max_redirects,
            check_headers=check_headers,
        )
    except (URLError, TimeoutError, ConnectionError) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise URLError(
            f"download_url: cannot download {url}: {getattr(error, 'reason', error)}. Check the "
            f"network, or put the file at {place} yourself"
        ) from error


def download_and_extract_archive(
    url: str,
    download_root: AnyPath,
    extract_root: AnyPath | None = None,
    filename: AnyPath | None = None,
    md5: str | None = None,
    remove_finished: bool = False,
) -> None:
    """Downloads an archive unless it is there already, and unpacks it.

    Args:
        url: address.
        download_root: folder for the archive.
        extract_root: folder for what it holds, by default the same.
        filename: name for the archive, by default the last part of the address.
        md5: hexadecimal MD5 that the archive must have.
        remove_finished: whether to remove the archive then.

    Raises:
        RuntimeError, URLError, ValueError: as download_url and extract_archive do.
    """
    download_root = os.path.expanduser(download_root)
    name = os.fspath(filename or name_in(url))
    download_url(url, download_root, name, md5)
    extract_archive(
        os.path.join(download_root, name), extract_root or download_root, remove_finished
    )


def extract_archive(
    from_path: AnyPath, to_path: AnyPath | None = None, remove_finished: bool = False
) -> AnyPath:
    """Unpacks an archive, or decompresses a single file, as the ending of its name says.

    Nothing is written outside the folder and no link is made; see docs/vision_datasets.md.

    Args:
        from_path: .tar, .zip, .gz, .bz2, .xz, or .tar with one of the last three.
        to_path: folder for what it holds, by default its own.
        remove_finished: whether to remove the archive then.

    Returns:
        The folder; of a single file, its path. It has the type of `from_path`.

    Raises:
        RuntimeError: if the ending is unknown or the archive is damaged.
        ValueError: if an entry leads out of the folder, is a link or device, or all is too large.
    """
    path = os.fspath(from_path)
    folder = os.path.dirname(path) if to_path is None else os.path.expanduser(to_path)
    ending, archive, _ = kind_of(path)
    result = folder
    if archive:
        unpack(path, folder or ".", "extract_archive")
    else:
        result = os.path.join(folder, os.path.basename(path).removesuffix(ending))
        os.makedirs(folder or ".", exist_ok=True)
        decompress(path, result, "extract_archive")
    if remove_finished:
        os.remove(path)
    return result if isinstance(from_path, str) else type(from_path)(result)


# Folders and arguments


def list_dir(root: AnyPath, prefix: bool = False) -> list[str]:
    """Returns the folders in a folder, sorted.

    Args:
        root: the folder.
        prefix: whether to return their paths, not their names.
    """
    return _listed(root, prefix, lambda entry: entry.is_dir())


def list_files(root: AnyPath, suffix: str | tuple[str, ...], prefix: bool = False) -> list[str]:
    """Returns the files in a folder whose names end in a suffix, sorted.

    Args:
        root: the folder.
        suffix: ending, or several of them, such as (".jpg", ".png").
        prefix: whether to return their paths, not their names.
    """
    return _listed(root, prefix, lambda entry: entry.is_file() and entry.name.endswith(suffix))


def _listed(root: AnyPath, prefix: bool, is_wanted: Any) -> list[str]:
    with os.scandir(os.path.expanduser(root)) as entries:
        return sorted(os.fspath(e) if prefix else e.name for e in entries if is_wanted(e))


def iterable_to_str(iterable: Iterable[Any]) -> str:
    """Returns values in quotes with commas between them.

    Example:
        >>> torch.vision.datasets.utils.iterable_to_str(["train", "test"])
        "'train', 'test'"
    """
    return "'" + "', '".join(str(item) for item in iterable) + "'"


def verify_str_arg(
    value: Any,
    arg: str | None = None,
    valid_values: Iterable[Any] | None = None,
    custom_msg: str | None = None,
) -> Any:
    """Returns an argument if it is a string, and one of those allowed.

    Args:
        value: the argument.
        arg: its name, for the error.
        valid_values: what is allowed, by default any string.
        custom_msg: what to say in place of the error about unknown values.

    Raises:
        ValueError: if it is not.

    Example:
        >>> torch.vision.datasets.utils.verify_str_arg("dev", "split", ("train", "test"))
        Traceback (most recent call last):
        ValueError: Unknown value 'dev' for argument split. Valid values are {'train', 'test'}.
    """
    if not isinstance(value, str):
        name = "" if arg is None else f" for argument {arg}"
        raise ValueError(f"Expected type str{name}, but got type {type(value)}.")
    if valid_values is not None and value not in (known := tuple(valid_values)):
        raise ValueError(
            custom_msg
            or f"Unknown value '{value}' for argument {arg}. "
            f"Valid values are {{{iterable_to_str(known)}}}."
        )
    return value
