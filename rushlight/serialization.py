"""Saving and loading: rushlight.save, rushlight.load and what loading may trust.

Owns the public functions and the file handling around them; the format is in _checkpoint/, which
is imported at the first call.
Invariants: loading never runs code from a file; saving to a path replaces the old file only when
the new one is complete.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import IO, Any

    from rushlight import device

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

# Full name -> function or class that files may name, because the user said so.
_safe_globals: dict[str, Any] = {}


def save(
    obj: Any,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Saves an object with its tensors to a file, in PyTorch's checkpoint format.

    PyTorch can load the file. Tensors that share memory share it again when they are loaded; a view
    is saved with all the memory that it is a view of (clone it to save only its own). A file that
    is there already is replaced when the new one is complete.

    Args:
        obj: tensors, parameters, numbers, text and containers of them. Other objects are pickled,
            but load needs add_safe_globals to read them.
        f: path, or file open for writing bytes.
        pickle_module: only Python's pickle, which is the default.
        pickle_protocol: 2 is what PyTorch reads.
    Raises:
        RuntimeError: the folder does not exist, or tensors of different dtypes share memory.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.ones(2)}, file)
        >>> torch.load(file)
        {'weight': tensor([1., 1.])}
    """
    _check_pickle_module("save", pickle_module)
    if not _use_new_zipfile_serialization:
        raise ValueError("save: the format from before PyTorch 1.6 is not available")
    from rushlight._checkpoint.archive import replace_when_complete
    from rushlight._checkpoint.pickling import write_checkpoint

    if not isinstance(f, str | os.PathLike):
        write_checkpoint(obj, f, pickle_protocol)
        return
    with replace_when_complete(os.fspath(f)) as file:
        write_checkpoint(obj, file, pickle_protocol)


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Callable[[Any, str], Any] | device | str | dict[str, str] | None = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
) -> Any:
    """Loads an object that save, here or in PyTorch, wrote to a file.

    It never runs code from the file: a file may only name what rebuilds tensors, plain containers,
    and what add_safe_globals registered.

    Args:
        f: path, or file open for reading bytes that can seek.
        map_location: device to load tensors to; or a dict from saved to wanted devices; or a
            function of (storage, saved device) that returns a storage on the wanted one, or None.
        pickle_module: only Python's pickle, which is the default.
        weights_only: accepted for PyTorch's sake; loading is as restricted with False.
        mmap: map the file into memory, so that tensors are read when they are used; f must be a
            path. Changing such a tensor does not change the file.
    Raises:
        pickle.UnpicklingError: the file needs a class or function that was not registered, or is
            damaged.
        RuntimeError: the file is no checkpoint, or its device is not available.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save([torch.arange(3), "three"], file)
        >>> torch.load(file)
        [tensor([0, 1, 2]), 'three']
    """
    _check_pickle_module("load", pickle_module)
    from rushlight._checkpoint.unpickling import read_checkpoint

    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return read_checkpoint(file, os.fspath(f), map_location, bool(mmap), _safe_globals)
    if mmap:
        raise ValueError("load: mmap needs the path of the file, not an open file")
    return read_checkpoint(f, "the file", map_location, False, _safe_globals)


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Lets files name classes and functions, and so make such objects and call such functions.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name it has in files.

    Example:
        >>> from collections import deque
        >>> torch.serialization.add_safe_globals([deque])
        >>> torch.serialization.get_safe_globals()
        [<class 'collections.deque'>]
        >>> torch.serialization.clear_safe_globals()
    """
    _safe_globals.update(_by_name(safe_globals))


def get_safe_globals() -> list[Any]:
    """Returns the classes and functions that files may name."""
    return list(_safe_globals.values())


def clear_safe_globals() -> None:
    """Forgets all that was registered with add_safe_globals."""
    _safe_globals.clear()


class safe_globals:  # noqa: N801 - PyTorch's name
    """Lets files name classes and functions inside a with block.

    Args:
        safe_globals: as in add_safe_globals.
    """

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self._added = _by_name(safe_globals)

    def __enter__(self) -> None:
        self._before = dict(_safe_globals)
        _safe_globals.update(self._added)

    def __exit__(self, *exc_info: object) -> None:
        _safe_globals.clear()
        _safe_globals.update(self._before)


def _by_name(safe_globals: Iterable[Any]) -> dict[str, Any]:
    result = {}
    for entry in safe_globals:
        if not isinstance(entry, tuple):
            result[f"{entry.__module__}.{entry.__qualname__}"] = entry
        elif len(entry) == 2 and isinstance(entry[1], str):
            result[entry[1]] = entry[0]
        else:
            raise ValueError(
                "add_safe_globals: expected a class, a function or a pair of one and its full "
                f"name, but got {entry!r}"
            )
    return result


def _check_pickle_module(caller: str, pickle_module: Any) -> None:
    if pickle_module is not None and pickle_module.__name__ != "pickle":
        raise ValueError(
            f"{caller}: pickle_module must be Python's pickle, not {pickle_module.__name__}: files "
            "are read without any pickle module. Leave it out."
        )
