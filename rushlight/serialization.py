"""Saving and loading: rushlight.save, rushlight.load and what loading may trust.

Owns the public functions and the file handling around them; the format is in _checkpoint/, which
is imported at the first call.
Invariants: loading never runs code from a file; saving to a path replaces the old file only when
the new one is complete.
"""

from __future__ import annotations

import codecs
import enum
import mmap as mmap_module
import os
import sys
from collections.abc import Callable, Iterable
from typing import IO, Any, TypeAlias

from rushlight import device
from rushlight.utils.serialization import config

__all__ = [
    "FILE_LIKE",
    "LoadEndianness",
    "MAP_LOCATION",
    "SourceChangeWarning",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "validate_cuda_device",
]

DEFAULT_PROTOCOL = 2  # of the pickle in a file

FILE_LIKE: TypeAlias = "str | os.PathLike[str] | IO[bytes]"
MAP_LOCATION: TypeAlias = "Callable[[Any, str], Any] | device | str | dict[str, str] | None"

# Full name -> function or class that files may name, because the user said so.
_safe_globals: dict[str, Any] = {}
_own_globals: dict[str, Any] = {}  # of packages of ours, once they are imported
# (priority, name of a storage's location or None, storage there or None), in calling order
_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []
_skips_data = False
_materializes_fakes = False


def save(
    obj: Any,
    f: FILE_LIKE,
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
        _use_new_zipfile_serialization: False for the format from before PyTorch 1.6.

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
    from rushlight._checkpoint.archive import replace_when_complete
    from rushlight._checkpoint.pickling import write_checkpoint, write_legacy

    if _materializes_fakes:
        from rushlight._subclasses.fake_tensor import materialized, unset_fake_temporarily

        with skip_data(), unset_fake_temporarily():
            save(materialized(obj), f, None, pickle_protocol, _use_new_zipfile_serialization)
        return
    write = write_checkpoint if _use_new_zipfile_serialization else write_legacy
    if not isinstance(f, str | os.PathLike):
        write(obj, f, pickle_protocol, _skips_data)
        if hasattr(f, "flush"):  # others may open its path before it is closed
            f.flush()
        return
    with replace_when_complete(os.fspath(f)) as file:
        write(obj, file, pickle_protocol, _skips_data)


def load(
    f: FILE_LIKE,
    map_location: MAP_LOCATION = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads an object that save, here or in PyTorch, wrote to a file.

    It never runs code from the file: a file may only name what rebuilds tensors, plain containers,
    and what add_safe_globals registered. A whole module is refused: save its state_dict(). Files
    that PyTorch wrote before version 1.6 are read too. In a FakeTensorMode tensors are fake.

    Args:
        f: path, or file open for reading bytes that can seek.
        map_location: device to load tensors to; or a dict from saved to wanted devices; or a
            function of (storage, saved device) that returns a storage on the wanted one, or None.
        pickle_module: only Python's pickle, which is the default.
        weights_only: with False a file may also hold NumPy's arrays and numbers, and plain data of
            the standard library such as argparse.Namespace; still no code. True by default, but
            False where a pickle_module is given, or TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 stands in
            the environment. TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 there makes it True always.
        mmap: map the file into memory, so that tensors are read when they are used; f must be a
            path. Changing such a tensor does not change the file.
        pickle_load_args: encoding of the texts that Python 2 wrote, latin1 by default, or "bytes";
            errors, as in bytes.decode; fix_imports has no effect.

    Raises:
        pickle.UnpicklingError: the file needs a class or function that was not registered, is
            damaged, or is no checkpoint.
        RuntimeError: the archive is cut off, or its device is not available.
        EOFError: the file is empty, as one is whose writing was interrupted.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save([torch.arange(3), "three"], file)
        >>> torch.load(file)
        [tensor([0, 1, 2]), 'three']
    """
    _check_pickle_module("load", pickle_module)
    weights_only = _holds_weights_only(weights_only, pickle_module)
    _check_load_arguments(f, map_location, pickle_load_args)
    from rushlight._guards import active_fake_mode

    fake_mode = active_fake_mode()
    if fake_mode is not None:
        from rushlight import Tensor
        from rushlight._subclasses.fake_tensor import unset_fake_temporarily
        from rushlight.utils._pytree import tree_map_only

        with skip_data(), unset_fake_temporarily():
            loaded = load(f, map_location, weights_only=weights_only, mmap=mmap, **pickle_load_args)
        return tree_map_only(Tensor, fake_mode.from_tensor, loaded)
    from rushlight._checkpoint.archive import ReadOptions
    from rushlight._checkpoint.unpickling import read_checkpoint

    endianness = config.load.endianness or LoadEndianness.LITTLE
    order = sys.byteorder if endianness is LoadEndianness.NATIVE else endianness.name.lower()
    is_path = isinstance(f, str | os.PathLike)
    mmap = (config.load.mmap and is_path) if mmap is None else mmap
    is_shared = mmap and config.load.mmap_flags == mmap_module.MAP_SHARED
    texts = {name: pickle_load_args[name] for name in _TEXTS & pickle_load_args.keys()}
    options = ReadOptions(mmap, is_shared, order, _skips_data, **texts)
    own = _own_globals | _safe_globals
    rest = (map_location, options, own, _restore, not weights_only)
    if isinstance(f, str | os.PathLike):
        with open(f, "r+b" if is_shared else "rb") as file:
            return read_checkpoint(file, os.fspath(f), *rest)
    if mmap:
        raise ValueError("load: mmap needs the path of the file, not an open file")
    return read_checkpoint(f, "the file", *rest)


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | IO[bytes]) -> list[str]:
    """Returns the names of the functions and classes that load would refuse to use for a file.

    Args:
        f: path, or file open for reading bytes that can seek.

    Example:
        >>> import io
        >>> from collections import deque
        >>> file = io.BytesIO()
        >>> torch.save([torch.ones(1), deque()], file)
        >>> torch.serialization.get_unsafe_globals_in_checkpoint(file)
        ['collections.deque']
    """
    from rushlight._checkpoint.rebuild import GLOBALS
    from rushlight._checkpoint.unpickling import names_in_checkpoint

    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            names = names_in_checkpoint(file, os.fspath(f))
    else:
        f.seek(0)
        names = names_in_checkpoint(f, "the file")
    return sorted(names - GLOBALS.keys() - _own_globals.keys() - _safe_globals.keys())


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


class safe_globals:
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


_YES = {"1", "y", "yes", "true"}  # what sets a variable of the environment


def _holds_weights_only(asked: bool | None, pickle_module: Any) -> bool:
    if os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD") in _YES:
        return True
    if asked is not None:
        return asked
    return pickle_module is None and os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD") not in _YES


_TEXTS = {"encoding", "errors"}  # how load reads the texts of Python 2


def _check_load_arguments(f: Any, map_location: Any, options: dict[str, Any]) -> None:
    import rushlight as rl

    unknown = options.keys() - {*_TEXTS, "fix_imports"}
    if unknown:
        raise TypeError(f"load() got an unexpected keyword argument {min(unknown)!r}")
    if not isinstance(f, str | os.PathLike):
        for name in ("read", "seek", "tell"):
            if not hasattr(f, name):
                raise AttributeError(
                    f"load: '{type(f).__name__}' object has no attribute '{name}'. You can only "
                    "torch.load from a path, or from a file that is seekable: pass "
                    "io.BytesIO(data) for data that was read before."
                )
    encoding = options.get("encoding", "bytes")
    if encoding != "bytes":
        codecs.lookup(encoding)
    is_known = map_location is None or isinstance(map_location, str | dict | rl.device)
    if not is_known and not callable(map_location):
        raise TypeError(
            "load: map_location must be a device, a str, a dict or a function, not "
            f"{type(map_location).__name__}"
        )


# Locations: where the memory of a tensor was, and where it shall be


def register_package(
    priority: int,
    tagger: Callable[[Any], str | None],
    deserializer: Callable[[Any, str], Any],
) -> None:
    """Teaches load locations that are no devices of this process.

    Args:
        priority: packages with a lower one are asked first.
        tagger: returns the name of a storage's location, or None if it is not one of its own.
        deserializer: called with a storage and the name of its location; returns the storage at its
            place, or None if the location is not one of its own.

    Example:
        >>> import io
        >>> def restore(storage, location):
        ...     return storage if location.startswith("tape") else None
        >>> torch.serialization.register_package(50, lambda storage: None, restore)
        >>> storage = torch.zeros(2).untyped_storage()
        >>> torch.serialization.default_restore_location(storage, "tape:1") is storage
        True
        >>> del torch.serialization._packages[-1]
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def _restore(storage: Any, location: str) -> Any:
    for _, _, deserializer in _packages:
        result = deserializer(storage, location)
        if result is not None:
            return result
    return None


def location_tag(storage: Any) -> str:
    """Returns the name of a storage's location, which is its device unless a package knows better.

    Example:
        >>> torch.serialization.location_tag(torch.zeros(2).untyped_storage())
        'cpu'
    """
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    return str(storage.device)


def normalize_storage_type(storage_type: type) -> type:
    """Returns the class of storages that torch has by the name of a class.

    Example:
        >>> torch.serialization.normalize_storage_type(torch.UntypedStorage)
        <class 'rushlight._storage.UntypedStorage'>
    """
    import rushlight as rl

    return getattr(rl, storage_type.__name__)


def default_restore_location(storage: Any, location: str) -> Any:
    """Returns a storage of the CPU at the place with a name.

    Raises:
        RuntimeError: if there is no such place.

    Example:
        >>> storage = torch.zeros(2).untyped_storage()
        >>> torch.serialization.default_restore_location(storage, "cpu") is storage
        True
    """
    result = _restore(storage, location)
    if result is not None:
        return result
    if location.startswith("cuda"):
        validate_cuda_device(location)
    try:
        return storage.to(location)
    except RuntimeError as error:
        raise RuntimeError(
            f"don't know how to restore data location of {type(storage).__name__} (tagged with "
            f"{location})"
        ) from error


def validate_cuda_device(location: str) -> int:
    """Returns the number of the GPU with a name like "cuda:0".

    Raises:
        RuntimeError: if there is no such GPU.
    """
    import rushlight as rl

    index = rl.device(location).index or 0
    if not rl.cuda.is_available():
        raise RuntimeError(
            "load: Attempting to deserialize object on a CUDA device but "
            "torch.cuda.is_available() is False. If you are running on a CPU-only machine, please "
            "use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    count = rl.cuda.device_count()
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but "
            f"torch.cuda.device_count() is {count}. Please use torch.load with map_location to map "
            "your storages to an existing device."
        )
    return index


# Settings


class LoadEndianness(enum.Enum):
    """The order of bytes in files that do not tell it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the order of bytes in files that do not tell it; None is little.

    Raises:
        TypeError: if it is something else.
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def get_default_load_endianness() -> LoadEndianness | None:
    """Returns what set_default_load_endianness was told."""
    return config.load.endianness


def set_crc32_options(compute_crc32: bool) -> None:
    """Notes whether save shall compute checksums: it always does, and load compares them."""
    config.save.compute_crc32 = compute_crc32


def get_crc32_options() -> bool:
    """Returns what set_crc32_options was told."""
    return config.save.compute_crc32


class set_default_mmap_options:
    """Sets how load(..., mmap=True) maps files; also for a block.

    Args:
        flags: mmap.MAP_PRIVATE, where tensors that are changed leave the file as it is, or
            mmap.MAP_SHARED, where changes go to the file.

    Raises:
        ValueError: if flags is something else.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (mmap_module.MAP_PRIVATE, mmap_module.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self._before = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        config.load.mmap_flags = self._before


def get_default_mmap_options() -> int | None:
    """Returns what set_default_mmap_options was told, at first mmap.MAP_PRIVATE."""
    return config.load.mmap_flags


class skip_data:
    """A block in which save and load leave out the bytes of tensors, which are zero then.

    Args:
        materialize_fake_tensors: save writes zeros on the CPU for fake tensors, which it refuses
            otherwise.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> with torch.serialization.skip_data():
        ...     torch.save(torch.ones(2), file)
        >>> torch.load(file)
        tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self._materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        global _skips_data, _materializes_fakes
        self._before = _skips_data, _materializes_fakes
        _skips_data, _materializes_fakes = True, self._materialize_fake_tensors

    def __exit__(self, *exc_info: object) -> None:
        global _skips_data, _materializes_fakes
        _skips_data, _materializes_fakes = self._before


class SourceChangeWarning(Warning):
    """PyTorch's warning that a class has changed since it was saved; classes are never saved."""


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Returns whether the version of a module, __version__, is at least the one given.

    Raises:
        RuntimeError: if __version__ cannot be read, unless error_if_malformed is False.

    Example:
        >>> torch.serialization.check_module_version_greater_or_equal(torch, (0, 0, 1))
        True
    """
    try:
        parts = module.__version__.split(".")
        version = tuple(
            type(wanted)(part) for wanted, part in zip(req_version_tuple, parts, strict=False)
        )
        return version >= req_version_tuple
    except (AttributeError, ValueError, TypeError) as error:
        message = f"'{module.__name__}' module version string is malformed"
        if error_if_malformed:
            raise RuntimeError(f"{message}, so it cannot be compared") from error
        return True
