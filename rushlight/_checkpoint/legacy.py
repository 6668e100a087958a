"""The format that PyTorch wrote before version 1.6: pickles, and then the bytes of the storages.

Such a file is a magic number, a version, facts about the machine, the object, and the keys of the
storages: a pickle each. The storages follow in that order, each as its number of elements and its
bytes. How many bytes an element has stands only in the references of the object's pickle.
Invariant: as in archive.py, a reader returns bytes that lie inside the file.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
import sys
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._checkpoint.archive import ReadOptions
from rushlight._checkpoint.rebuild import StorageType, check

# The start of such a file: the pickle of the magic number.
START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
VERSION = 1001
# What it says of the machine that wrote it; only the order of bytes matters to readers.
FACTS = {
    "protocol_version": VERSION,
    "little_endian": sys.byteorder == "little",
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}
_ALIGNMENT = 16  # of the widest elements; nothing in the file sees to it
_OPERATIONS = {operation.code.encode("latin1"): operation for operation in pickletools.opcodes}
_COUNTED = {
    pickletools.TAKEN_FROM_ARGUMENT1: "<B",
    pickletools.TAKEN_FROM_ARGUMENT4: "<i",
    pickletools.TAKEN_FROM_ARGUMENT4U: "<I",
    pickletools.TAKEN_FROM_ARGUMENT8U: "<Q",
}


class LegacyReader:
    """Reads a file of the old format under the names that the entries of an archive have.

    Args:
        file: file that can be read and sought, behind START.
        options: how to read it.
        run: runs a pickle that may name nothing, and returns its value.
        survey: returns the references to storages in a pickle.
    """

    def __init__(
        self,
        file: Any,
        options: ReadOptions,
        run: Callable[[bytes], Any],
        survey: Callable[[bytes], list[Any]],
    ) -> None:
        origin = file.tell() - len(START)  # something else may come before
        file.seek(origin)
        self._options = options
        self._map = options.map_file(file)
        # The pickles are small beside the storages, but nothing says where they end.
        self._data = self._map or file.read()
        self._end = len(self._data)
        self._position = len(START) + (origin if self._map else 0)
        check(run(self._take_pickle()) == VERSION, "its version is unknown")
        facts = run(self._take_pickle())
        check(type(facts) is dict, "its facts about the machine are damaged")
        self._order = b"little" if facts.get("little_endian", True) is True else b"big"
        self._pickle = self._take_pickle()
        keys = run(self._take_pickle())
        check(type(keys) is list, "its list of storages is damaged")
        self._places = self._find_storages(keys, survey(self._pickle))
        file.seek(self._position + (0 if self._map else origin))  # something else may follow

    def _take_pickle(self) -> bytes:
        start = self._position
        self._position = _pickle_end(self._data, start)
        return bytes(self._data[start : self._position])

    def _find_storages(self, keys: list[Any], references: list[Any]) -> dict[str, tuple[int, int]]:
        """The start and number of bytes of each storage, under the name data/<key>."""
        types: dict[str, StorageType] = {}
        for reference in references:
            # Others refer to classes, which the object's pickle will be refused for.
            is_storage = type(reference) is tuple and len(reference) == 6
            if is_storage and isinstance(reference[1], StorageType) and type(reference[2]) is str:
                types[reference[2]] = reference[1]
        places = {}
        for key in keys:
            check(type(key) is str, "its list of storages is damaged")
            if key not in types:
                break  # of a type that is not known: the object's pickle will be refused for it
            check(self._position + 8 <= self._end, "it ends in the middle of its storages")
            (count,) = struct.unpack_from("<q", self._data, self._position)
            start, size = self._position + 8, count * types[key].itemsize
            check(0 <= size <= self._end - start, "it ends in the middle of its storages")
            places[f"data/{key}"] = start, size
            self._position = start + size
        return places

    def __contains__(self, name: str) -> bool:
        return name in ("data.pkl", "byteorder") or name in self._places

    def size(self, name: str) -> int:
        """Returns the number of bytes of a storage, or -1 if there is no such storage."""
        return self._places[name][1] if name in self._places else -1

    def read(self, name: str) -> bytes:
        """Returns the pickle of the object, or the order of the bytes in the storages."""
        return self._order if name == "byteorder" else self._pickle

    def read_tensor(self, name: str) -> Tensor:
        """Returns the bytes of a storage as a uint8 tensor."""
        start, size = self._places[name]
        if not size or self._options.skips_data:
            return rl.zeros(size, dtype=rl.uint8)
        if self._map is not None and start % _ALIGNMENT == 0:
            return rl.frombuffer(self._map, dtype=rl.uint8, count=size, offset=start)
        return rl.frombuffer(bytearray(self._data[start : start + size]), dtype=rl.uint8)


def _pickle_end(data: Any, position: int) -> int:
    """Returns the position after a pickle's end, without doing what it says."""
    while True:
        code = data[position : position + 1]
        check(code in _OPERATIONS, "a pickle in it is damaged or ends too early")
        position += 1
        argument = _OPERATIONS[code].arg
        if argument is None:
            pass
        elif argument.n >= 0:
            position += argument.n
        elif argument.n in _COUNTED:
            layout = _COUNTED[argument.n]
            (count,) = struct.unpack_from(layout, data, position)
            position += struct.calcsize(layout) + max(count, 0)
        else:
            # text up to the end of a line, or of two lines
            for _ in range(2 if code in (pickle.GLOBAL, pickle.INST) else 1):
                position = data.find(b"\n", position) + 1
                check(position > 0, "a pickle in it ends too early")
        check(position <= len(data), "a pickle in it ends too early")
        if code == pickle.STOP:
            return position
