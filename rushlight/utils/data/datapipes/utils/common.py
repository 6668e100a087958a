"""Files in folders, streams that close themselves, and checks of what pipes get."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from io import IOBase
from typing import Any, ClassVar, Self

__all__ = [
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
    "validate_pathname_binary_tuple",
]


def validate_input_col(
    fn: Callable[..., Any], input_col: int | tuple[Any, ...] | list[Any] | None
) -> None:
    """Checks that a function can be called with some columns of an item.

    Args:
        fn: the function.
        input_col: the column, or several; None for the whole item.

    Raises:
        ValueError: if it takes more or fewer arguments.

    Example:
        >>> from rushlight.utils.data.datapipes.utils.common import validate_input_col
        >>> validate_input_col(lambda a, b: a + b, [0, 2])
    """
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    try:
        called = inspect.signature(fn)
    except ValueError:  # some that are written in C tell no arguments
        return
    try:
        called.bind(*range(count))
    except TypeError as error:
        raise ValueError(
            f"The function {fn} cannot be called with {count} argument(s), which input_col "
            f"asks for: {error}."
        ) from None


def _check_unpickable_fn(fn: Callable[..., Any]) -> None:
    """Warns of a function that cannot go to the processes of a DataLoader.

    Raises:
        TypeError: if it is none.
    """
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    function = fn.func if isinstance(fn, partial) else fn
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if "<locals>" in name or "<lambda>" in name:
        kind = "Lambda" if name.endswith("<lambda>") else "Local"
        warnings.warn(
            f"{kind} function is not supported by pickle, please use regular python function or "
            "functools.partial instead.",
            stacklevel=2,
        )


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Returns whether a name fits one of some patterns such as "*.png"; without any, all do."""
    patterns = [masks] if isinstance(masks, str) else masks
    return not any(patterns) or any(fnmatch(name, pattern) for pattern in patterns)


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterator[str]:
    """Returns the paths of files, in the order of their names.

    Args:
        root: a folder; a file stands for itself.
        masks: patterns of names, one of which must fit.
        recursive: whether files in folders of the folder count.
        abspath: whether paths are absolute.
        non_deterministic: accepted for PyTorch's sake.

    Raises:
        OSError: if a folder cannot be read.

    Example:
        >>> import os, tempfile
        >>> from rushlight.utils.data.datapipes.utils.common import get_file_pathnames_from_root
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in "b.txt", "a.txt", "c.png":
        ...         open(os.path.join(folder, name), "w").close()
        ...     paths = list(get_file_pathnames_from_root(folder, "*.txt"))
        >>> [os.path.basename(path) for path in paths]
        ['a.txt', 'b.txt']
    """

    def fail(error: OSError) -> None:
        raise error

    root = os.path.abspath(root) if abspath else root
    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield root
        return
    for folder, folders, names in os.walk(root, onerror=fail):
        folders.sort()
        yield from (os.path.join(folder, n) for n in sorted(names) if match_masks(n, masks))
        if not recursive:
            break


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str] | str, mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """Returns (path, open file) for each path.

    Args:
        pathnames: the paths.
        mode, encoding: see open; "b" and "t" are "rb" and "rt".

    Raises:
        TypeError: if a path is no text.
    """
    for path in [pathnames] if isinstance(pathnames, str) else pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        file = open(path, f"r{mode}" if mode in ("b", "t") else mode, encoding=encoding)  # noqa: SIM115
        yield path, StreamWrapper(file)


def validate_pathname_binary_tuple(data: tuple[str, IOBase]) -> None:
    """Checks that something is a path and an open file.

    Raises:
        TypeError: if it is not.
    """
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError(f"expected a tuple of a path and an open file, but got {data!r}.")
    path, stream = data
    if not isinstance(path, str) or not isinstance(stream, (IOBase, StreamWrapper)):
        raise TypeError(
            f"expected a tuple of a path and an open file, but got one of {type(path)} and "
            f"{type(stream)}."
        )


class StreamWrapper:
    """An open file that is closed when nobody has it any more, and otherwise like it.

    Args:
        file_obj: the file.
        parent_stream: the one that it is read from, such as an archive, which knows how many are.
        name: for its repr.

    Raises:
        RuntimeError: if parent_stream is no StreamWrapper.

    Example:
        >>> import io
        >>> from rushlight.utils.data.datapipes.utils.common import StreamWrapper
        >>> archive = StreamWrapper(io.BytesIO())
        >>> part = StreamWrapper(io.BytesIO(b"text"), archive)
        >>> archive.autoclose()
        >>> part.read(), archive.closed
        (b'text', False)
        >>> part.close()
        >>> archive.closed
        True
    """

    session_streams: ClassVar[dict[Any, int]] = {}
    debug_unclosed_streams: ClassVar[bool] = False  # whether those that are open are kept there

    def __init__(
        self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None
    ) -> None:
        self.closed = True
        if parent_stream is not None and not isinstance(parent_stream, StreamWrapper):
            raise RuntimeError(
                f"Parent stream should be StreamWrapper, {type(parent_stream)} was given"
            )
        self.file_obj = file_obj
        self.parent_stream = parent_stream
        self.name = name
        self.child_counter = 0
        self.close_on_last_child = False
        self.closed = False
        if parent_stream is not None:
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Closes all streams in dicts, lists and tuples, ten deep."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif depth < 10 and isinstance(v, (dict, list, tuple)):
            for part in v.values() if isinstance(v, dict) else v:
                cls.close_streams(part, depth + 1)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Closes the file, and the one that it is read from after its last part, if autoclose."""
        if self.closed:
            return
        self.closed = True
        StreamWrapper.session_streams.pop(self, None)
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if parent.child_counter == 0 and parent.close_on_last_child:
                parent.close()
        with suppress(AttributeError):
            self.file_obj.close(*args, **kwargs)

    def autoclose(self) -> None:
        """Closes the file as soon as nothing is read from it."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        label = "" if self.name is None else f"{self.name},"
        return f"StreamWrapper<{label}{self.file_obj!r}>"

    def __reduce__(self) -> Any:
        return StreamWrapper, (self.file_obj, None, self.name)
