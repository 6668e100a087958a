"""Models and weights from the network or from a folder: hub.load, hub.load_state_dict_from_url.

Owns the downloads and their cache, which is PyTorch's, so that neither downloads again what the
other has. Invariant: a file is in the cache only when all of it is there and its hash is right.
Unlike files of weights, repositories are code, which is run: those on GitHub only when trusted.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import sys
import warnings
import zipfile
from collections.abc import Iterator
from types import ModuleType
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from rushlight import serialization
from rushlight._download import fetch
from rushlight._unpack import unpack

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

_SITE = "https://github.com"
_API = "https://api.github.com"
_CONFIG = "hubconf"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")

_dir: str | None = None


# The cache


def get_dir() -> str:
    """Returns the folder of downloads: $TORCH_HOME/hub, by default ~/.cache/torch/hub."""
    return os.path.join(_get_torch_home(), "hub") if _dir is None else _dir


def _get_torch_home() -> str:
    """Returns the folder of what is downloaded and cached: $TORCH_HOME, or ~/.cache/torch."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder of downloads.

    Example:
        >>> before = torch.hub.get_dir()
        >>> torch.hub.set_dir("/tmp/hub")
        >>> torch.hub.get_dir()
        '/tmp/hub'
        >>> torch.hub.set_dir(before)
    """
    global _dir
    _dir = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Downloads a file; it is at its place only when it is complete.

    Args:
        url: address.
        dst: path to put it at.
        hash_prefix: the first digits that the SHA-256 of the file must have.
        progress: whether to tell on stderr how far it is.

    Raises:
        RuntimeError: if the hash is another one, or the file is cut off.
        urllib.error.URLError: if the server cannot be reached or does not have it.
    """

    def check(found: str) -> None:
        if hash_prefix is not None and not found.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')

    fetch(url, os.path.expanduser(dst), "download_url_to_file", check, progress=progress)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """Downloads a file of weights unless it is there already, and loads it.

    Args:
        url: address; its last part is the name of the file.
        model_dir: folder for the file, by default get_dir() + "/checkpoints".
        map_location: as in torch.load.
        progress: whether to tell on stderr how far the download is.
        check_hash: whether the name ends in "-<digits>.<extension>" and the SHA-256 of the file
            must start with those digits.
        file_name: another name for the file.
        weights_only: accepted for PyTorch's sake; torch.load never runs code.

    Returns:
        What torch.load returns.

    Raises:
        RuntimeError: if the hash is another one.
    """
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    place = os.path.join(folder, name)
    if not os.path.exists(place):
        sys.stderr.write(f'Downloading: "{url}" to {place}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, place, found.group(1) if found else None, progress)
    with _unwrapped(place) as file:
        return serialization.load(file, map_location=map_location, weights_only=weights_only)


@contextlib.contextmanager
def _unwrapped(place: str) -> Iterator[str | IO[bytes]]:
    """The path of a file, or the one file inside if somebody zipped it, as was once the custom."""
    if zipfile.is_zipfile(place):
        with zipfile.ZipFile(place) as archive:
            members = archive.infolist()
            if len(members) == 1 and not members[0].is_dir():
                yield io.BytesIO(archive.read(members[0]))
                return
    yield place


# Repositories


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Returns what a function in the hubconf.py of a repository returns, usually a model.

    This runs the code of the repository.

    Args:
        repo_or_dir: "owner/name" or "owner/name:ref" on GitHub; a folder with source="local".
        model: name of the function.
        args: its arguments.
        source: "github" or "local".
        trust_repo: whether a repository may be downloaded: True, False to ask always, or "check"
            to ask unless it was trusted before.
        force_reload: whether to download it again.
        verbose: whether to tell that it was downloaded already.
        skip_validation: whether not to ask GitHub that the ref is the repository's own.
        kwargs: keyword arguments of the function.

    Returns:
        What the function returns.

    Raises:
        ValueError: if the source is unknown, or the ref is not one of the repository's.
        RuntimeError: if there is no such function, or a package that the repository needs is not
            installed.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = repo_or_dir
    if source == "github":
        folder = _fetch(repo_or_dir, force_reload, trust_repo, verbose, skip_validation)
    with _on_path(folder):
        return _entry_point(_read_config(folder), model)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
    verbose: bool = True,
) -> Any:
    """Returns the names of the functions in the hubconf.py of a repository on GitHub.

    Args:
        github: "owner/name" or "owner/name:ref".
        force_reload: whether to download it again.
        skip_validation: whether not to ask GitHub that the ref is the repository's own.
        trust_repo: as in load.
        verbose: whether to tell that it was downloaded already.
    """
    folder = _fetch(github, force_reload, trust_repo, verbose, skip_validation)
    with _on_path(folder):
        config = _read_config(folder)
    names = [name for name, value in vars(config).items() if callable(value)]
    return sorted(name for name in names if not name.startswith("_"))


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
) -> str | None:
    """Returns the docstring of a function in the hubconf.py of a repository on GitHub.

    Args:
        github: "owner/name" or "owner/name:ref".
        model: name of the function.
        force_reload: whether to download it again.
        skip_validation: whether not to ask GitHub that the ref is the repository's own.
        trust_repo: as in load.
    """
    folder = _fetch(github, force_reload, trust_repo, True, skip_validation)
    with _on_path(folder):
        return _entry_point(_read_config(folder), model).__doc__


@contextlib.contextmanager
def _on_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _read_config(folder: str) -> ModuleType:
    path = os.path.join(folder, f"{_CONFIG}.py")
    spec: Any = importlib.util.spec_from_file_location(_CONFIG, path)
    config = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(config)
    return config


def _entry_point(config: ModuleType, model: Any) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needed = getattr(config, "dependencies", None) or ()
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(config, model, None)
    if function is None or not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in {_CONFIG}")
    return function


def _fetch(
    github: str,
    force_reload: bool,
    trust_repo: bool | str | None,
    verbose: bool,
    skip_validation: bool,
) -> str:
    """Downloads a repository unless it is in the cache; returns its folder."""
    hub = get_dir()
    os.makedirs(hub, exist_ok=True)
    owner, name, ref = _parse(github)
    folder = os.path.join(hub, "_".join([owner, name, ref.replace("/", "_")]))
    _check_trusted(owner, name, folder, trust_repo)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    if not skip_validation:
        _check_own_ref(owner, name, ref)
    archive = f"{folder}.zip"
    unpacked = f"{folder}.{os.urandom(4).hex()}.tmp"
    try:
        _download_archive(owner, name, ref, archive)
        unpack(archive, unpacked, "load")
        (root,) = os.listdir(unpacked)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(os.path.join(unpacked, root), folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(archive)
        shutil.rmtree(unpacked, ignore_errors=True)
    return folder


def _parse(github: str) -> tuple[str, str, str]:
    """The owner, name and ref of "owner/name:ref"; without a ref, main or master."""
    repository, colon, ref = github.partition(":")
    owner, slash, name = repository.partition("/")
    parts = [owner, name, *([ref] if colon else [])]
    if not slash or not all(re.fullmatch(r"[\w.\-/]+", part) for part in parts) or "/" in name:
        raise ValueError(
            f"Expected a repository as 'owner/name' or 'owner/name:ref', got {github!r}"
        )
    if any(part.startswith(".") or ".." in part for part in parts):
        raise ValueError(f"Expected the name of a repository, got {github!r}")
    if colon:
        return owner, name, ref
    try:
        with urlopen(f"{_SITE}/{owner}/{name}/tree/main/"):
            return owner, name, "main"
    except HTTPError as error:
        if error.code != 404:
            raise
        error.close()
        return owner, name, "master"
    except URLError as error:
        for ref in ("main", "master"):
            if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{ref}")):
                return owner, name, ref
        raise RuntimeError(
            "It looks like there is no internet connection and the repo could not be found in the "
            f"cache ({get_dir()})"
        ) from error


def _check_trusted(owner: str, name: str, folder: str, trust_repo: bool | str | None) -> None:
    """Asks whether to trust a repository, and notes it in PyTorch's list if so."""
    trusted_list = os.path.join(get_dir(), "trusted_list")
    entry = f"{owner}_{name}"
    with open(trusted_list, "a+") as file:
        file.seek(0)
        trusted = file.read().split("\n")
    is_trusted = entry in trusted or os.path.exists(folder) or owner in _TRUSTED_OWNERS
    if trust_repo is False or (trust_repo in ("check", None) and not is_trusted):
        answer = input(
            f"The repository {entry} does not belong to the list of trusted repositories and as "
            "such cannot be downloaded. Do you trust this repository and wish to add it to the "
            "trusted list of repositories (y/N)?"
        ).lower()
        if answer in ("", "n", "no"):
            raise Exception("Untrusted repository.")
        if answer not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
    if not is_trusted:
        with open(trusted_list, "a") as file:
            file.write(f"{entry}\n")


def _check_own_ref(owner: str, name: str, ref: str) -> None:
    """Refuses a ref that belongs to a fork: GitHub serves it under the repository's address."""
    headers = {"Accept": "application/vnd.github.v3+json"}
    token = os.environ.get("GITHUB_TOKEN")
    if token is not None:
        headers["Authorization"] = f"token {token}"
    for kind in ("branches", "tags"):
        page = 1
        while known := _ask_github(
            f"{_API}/repos/{owner}/{name}/{kind}?per_page=100&page={page}", headers
        ):
            if any(ref == item["name"] or item["commit"]["sha"].startswith(ref) for item in known):
                return
            page += 1
    raise ValueError(
        f"Cannot find {ref} in {_SITE}/{owner}/{name}. If it's a commit from a forked repo, please "
        "call hub.load() with forked repo directly."
    )


def _ask_github(url: str, headers: dict[str, str]) -> Any:
    try:
        with urlopen(Request(url, headers=headers)) as answer:
            return json.loads(answer.read())
    except HTTPError as error:
        if headers.pop("Authorization", None) is None:
            raise
        error.close()
        return _ask_github(url, headers)  # the token may not be allowed what anybody is


def _download_archive(owner: str, name: str, ref: str, place: str) -> None:
    def download(ref: str) -> None:
        url = f"{_SITE}/{owner}/{name}/zipball/{ref}"
        sys.stderr.write(f'Downloading: "{url}" to {place}\n')
        download_url_to_file(url, place, progress=False)

    try:
        download(ref)
    except HTTPError as error:
        if error.code != 300:  # multiple choices
            raise
        error.close()
        warnings.warn(
            f"The ref {ref} is ambiguous. Perhaps it is both a tag and a branch in the repo? "
            "Torchhub will now assume that it's a branch. You can disambiguate tags and branches "
            "by explicitly passing refs/heads/branch_name or refs/tags/tag_name as the ref. That "
            "might require using skip_validation=True.",
            stacklevel=5,
        )
        download(f"refs/heads/{ref}")


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # libraries take it from here
        from tqdm.auto import tqdm

        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
