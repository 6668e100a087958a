"""Reading a checkpoint without running code from it.

Owns a pickle machine that knows the opcodes which data need, and calls nothing but the functions of
rebuild.py and what the user registered. Python's own unpickler is not used: it lets a file change
the functions that it may call, and its memory grows with a number in the file.
Invariant: whatever the file holds, the outcome is an object or an exception, and no allocation is
larger than the file.
"""

from __future__ import annotations

import contextlib
import pickle
import struct
import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from pickle import UnpicklingError
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._checkpoint.archive import ArchiveReader, NotAnArchive, ReadOptions
from rushlight._checkpoint.legacy import START, LegacyReader
from rushlight._checkpoint.rebuild import (
    CALLS,
    GLOBALS,
    StorageType,
    check,
    check_key,
    loaded_storage,
    set_attributes,
    type_in_file,
)
from rushlight._storage import TypedStorage
from rushlight.serialization import validate_cuda_device

_DICTS = (dict, OrderedDict, Counter, defaultdict)
# What the machine meets in a damaged pickle: an empty stack, an unknown number, wrong arguments.
_DAMAGE = (LookupError, ValueError, TypeError, AttributeError, OverflowError, struct.error)


def read_checkpoint(
    file: Any,
    name: str,
    map_location: Any,
    options: ReadOptions,
    registered: dict[str, Any],
    restore: Callable[[Any, str], Any],
    more: bool,
) -> Any:
    """Returns the object in a checkpoint.

    Args:
        file: file that can be read and sought.
        name: what error messages call it.
        map_location: as in load.
        options: how to read the bytes of tensors, and the texts of Python 2.
        registered: functions and classes that the user trusts, by full name.
        restore: moves a storage to a location that is no device, or returns None.
        more: whether it may hold what data.py rebuilds, too.
    """
    with _told_as_damage(name):
        reader = _open(file, name, options)
        storages = _Storages(reader, map_location, options.order, restore)
        machine = _Machine(reader.read("data.pkl"), registered, storages.load, options)
        if more:
            machine.learn()
        return machine.run()


def read_pickle(data: bytes, name: str, registered: dict[str, Any]) -> Any:
    """Returns the object in a pickle without storages, which other programs wrote.

    Args:
        data: the pickle.
        name: what error messages call it.
        registered: functions and classes that it may use, by full name.
    """
    with _told_as_damage(name):
        return _Machine(data, registered, _refuse).run()


def names_in_checkpoint(file: Any, name: str) -> set[str]:
    """Returns the full names of all that a checkpoint wants to use, without using it."""
    with _told_as_damage(name):
        survey = _Survey(_open(file, name, ReadOptions()).read("data.pkl"))
        survey.run()
        return survey.names


def _open(file: Any, name: str, options: ReadOptions) -> ArchiveReader | LegacyReader:
    start = file.read(len(START))
    if start != START:
        return ArchiveReader(file, name, options)
    return LegacyReader(file, options, lambda data: _Machine(data, {}, _refuse).run(), _surveyed)


def _refuse(reference: Any) -> Any:
    raise UnpicklingError("its pickle refers to a storage where there may be none")


def _surveyed(data: bytes) -> list[Any]:
    survey = _Survey(data)
    survey.run()
    return survey.references


class _RaisedByProgram(Exception):
    """Carries what a function of the program raised past those who look for damage."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@contextlib.contextmanager
def _told_as_damage(name: str) -> Iterator[None]:
    try:
        yield
    except _RaisedByProgram as carrier:
        raise carrier.error from None
    except NotAnArchive:  # says all already
        raise
    except UnpicklingError as error:
        raise UnpicklingError(f"load: cannot read {name}: {error}.") from None
    except _DAMAGE as error:
        raise UnpicklingError(f"load: cannot read {name}: its pickle is damaged.") from error


class _Storages:
    """Loads storages on demand, each once, so that views of one share its memory."""

    def __init__(
        self,
        archive: ArchiveReader | LegacyReader,
        map_location: Any,
        order: str,
        restore: Callable[[Any, str], Any],
    ) -> None:
        self._archive = archive
        self._restore = restore
        self._map_location = map_location
        self._loaded: dict[str, TypedStorage] = {}
        found = archive.read("byteorder") if "byteorder" in archive else order.encode()
        check(found in (b"little", b"big"), f"load: unknown byte order {found!r}")
        self._swaps_bytes = found != sys.byteorder.encode()

    def load(self, reference: Any) -> TypedStorage:
        """Returns the storage of ("storage", type, key, location, number of elements).

        Files from before PyTorch 1.6 name a part of it last, which is None since 0.4.
        """
        check(type(reference) is tuple, "not a reference to a storage")
        if len(reference) == 6:
            check(reference[5] is None, "it is from before PyTorch 0.4. Save it anew there")
            reference = reference[:5]
        check(len(reference) == 5, "not a reference to a storage")
        kind, storage_type, key, location, numel = map(_as_text, reference)
        are_texts = type(kind) is type(key) is type(location) is str
        check(are_texts and kind == "storage", "not a reference to a storage")
        check(isinstance(storage_type, StorageType), "not a reference to a storage")
        if key not in self._loaded:
            size = self._archive.size(f"data/{key}")
            fits = type(numel) is int and size // storage_type.itemsize == numel
            check(fits, f"data/{key} is missing or has another size than the pickle says")
            data = self._archive.read_tensor(f"data/{key}")
            if self._swaps_bytes:
                data = _swap_bytes(data, storage_type)
            data = self._move(data, location)
            self._loaded[key] = loaded_storage(data, storage_type)
        storage = self._loaded[key]
        check(type_in_file(storage) is storage_type, f"storage {key} is used with two types")
        return storage

    def _move(self, data: Tensor, location: str) -> Tensor:
        where = self._map_location
        if isinstance(where, str | rl.device):
            location = str(where)
        elif isinstance(where, dict):
            location = str(where.get(location, location))
        elif where is not None:
            try:
                result = where(data.untyped_storage(), location)
            except Exception as error:
                raise _RaisedByProgram(error) from None
            if result is not None:
                return result._values()
        if location == "cpu":
            return data
        restored = self._restore(data.untyped_storage(), location)
        if restored is not None:
            return restored._values()
        if location.startswith("cuda"):
            validate_cuda_device(location)
        try:
            return data.to(location)
        except RuntimeError as error:
            raise RuntimeError(
                f"load: Attempting to deserialize object on device {location}, which is not "
                "available. Pass map_location='cpu' to load it into main memory."
            ) from error


def _as_text(value: Any) -> Any:
    """What stands for a text where those of Python 2 are read as bytes."""
    return value.decode("latin1") if isinstance(value, bytes) else value


def _swap_bytes(data: Tensor, storage_type: StorageType) -> Tensor:
    check(storage_type.dtype is not None, "untyped storages of the other byte order are unknown")
    parts = 2 if storage_type.dtype in (rl.complex64, rl.complex128) else 1
    width = storage_type.itemsize // parts
    return data[: data.numel() // width * width].reshape(-1, width).flip(1).reshape(-1)


class _Machine:
    """Runs a pickle: a stack, stacks set aside by marks, and numbered values to come back to.

    Args:
        data: the pickle.
        registered: functions and classes that the user trusts, by full name.
        load_storage: returns the storage that a reference of the pickle means.
        options: how to read the texts of Python 2.
    """

    def __init__(
        self,
        data: bytes,
        registered: dict[str, Any],
        load_storage: Callable[[Any], TypedStorage],
        options: ReadOptions | None = None,
    ) -> None:
        self._data = data
        self._options = options or ReadOptions()
        self._position = 0
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._globals = {**GLOBALS, **registered}
        self._trusted = {id(value) for value in registered.values()}
        self._calls = CALLS
        self._makers: dict[int, Callable[..., Any]] = {}  # what __new__ of a class is replaced by
        self._states: dict[type, Callable[[Any, Any], None]] = {OrderedDict: set_attributes}
        self._load_storage = load_storage

    def learn(self) -> None:
        """Makes the machine know the data of NumPy and of the standard library."""
        from rushlight._checkpoint.data import Kinds

        kinds = Kinds(with_arrays=b"numpy" in self._data)
        self._globals = {**kinds.names, **self._globals}
        self._calls = {**CALLS, **kinds.calls}
        self._makers = kinds.calls
        self._states.update(kinds.states)

    def run(self) -> Any:
        while True:
            opcode = self._data[self._position : self._position + 1]
            self._position += 1
            if opcode == pickle.STOP:
                return self.pop()
            operation = _OPERATIONS.get(opcode)
            if operation is None:
                check(opcode != b"", "its pickle ends too early")
                raise UnpicklingError(f"its pickle has the opcode {opcode!r}, which is not allowed")
            operation(self)

    # What operations are made of.

    def take(self, count: int) -> bytes:
        end = self._position + count
        check(self._position <= end <= len(self._data), "its pickle ends too early")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def number(self, layout: str) -> Any:
        (value,) = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return value

    def take_counted(self, layout: str) -> bytes:
        return self.take(self.number(layout))

    def old_text(self, layout: str) -> str | bytes:
        """Takes a string of Python 2, which is text or bytes."""
        taken = self.take_counted(layout)
        encoding = self._options.encoding
        if encoding == "bytes":
            return taken
        try:
            return taken.decode(encoding, self._options.errors)
        except UnicodeDecodeError as error:
            raise UnpicklingError(
                f"a text of Python 2 is not in the encoding {encoding!r}: {error}. Pass "
                "another, or encoding='latin1', which takes all"
            ) from None

    def line(self) -> str:
        end = self._data.find(b"\n", self._position)
        check(end >= 0, "its pickle ends too early")
        return self.take(end + 1 - self._position)[:-1].decode()

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        return self._stack.pop()

    def pop_items(self, count: int) -> tuple[Any, ...]:
        """Pops values in the order in which they were pushed."""
        check(len(self._stack) >= count, "its pickle takes from an empty stack")
        items = tuple(self._stack[-count:])
        del self._stack[-count:]
        return items

    def mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def pop_mark(self) -> list[Any]:
        """Returns all values since the last mark."""
        items = self._stack
        self._stack = self._marks.pop()
        return items

    def put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def get(self, index: int) -> None:
        self.push(self._memo[index])

    # Filling containers. Only those that the pickle itself made can be on the stack.

    def append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        self._check_target(target, (list, deque))
        target.extend(items)

    def set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        self._check_target(target, _DICTS)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[check_key(key)] = value

    def add_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        self._check_target(target, (set,))
        target.update(check_key(item) for item in items)

    def _check_target(self, target: Any, kinds: tuple[type, ...]) -> None:
        fits = type(target) in kinds or id(type(target)) in self._trusted
        check(fits, "its pickle puts items into what is not a container")

    # Names and calls: all that could be dangerous.

    def find_global(self, module: Any, attribute: Any) -> None:
        name = _full_name(module, attribute)
        if name not in self._globals:
            raise UnpicklingError(_refusal(name))
        self.push(self._globals[name])

    def reduce(self) -> None:
        function, arguments = self.pop_items(2)
        check(isinstance(arguments, tuple), "arguments are not a tuple")
        if id(function) in self._trusted:
            self.push(function(*arguments))
            return
        call = self._calls.get(id(function))
        if call is None:
            raise UnpicklingError("its pickle calls what is neither a known nor a registered name")
        self.push(call(*arguments))

    def new_object(self, has_options: bool) -> None:
        options = self.pop() if has_options else {}
        cls, arguments = self.pop_items(2)
        maker = self._makers.get(id(cls))
        if maker is not None and not options:
            self.push(maker(*arguments))
            return
        is_trusted_class = id(cls) in self._trusted and isinstance(cls, type)
        check(is_trusted_class, "its pickle makes an object whose class is not registered")
        self.push(cls.__new__(cls, *arguments, **options))

    def build(self) -> None:
        state = self.pop()
        target = self._stack[-1]
        set_state = self._states.get(type(target))  # state dicts carry their metadata so
        if set_state is not None:
            set_state(target, state)
            return
        is_trusted = id(type(target)) in self._trusted
        check(is_trusted, "its pickle changes an object whose class is not registered")
        if hasattr(target, "__setstate__"):
            target.__setstate__(state)
            return
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        if attributes:
            vars(target).update(attributes)
        for name, value in (slots or {}).items():
            setattr(target, name, value)

    def load_storage(self) -> None:
        self.push(self._load_storage(self.pop()))


class _Survey(_Machine):
    """Runs a pickle without making anything of it: notes its names and references to storages."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, {}, _refuse)
        self.names: set[str] = set()
        self.references: list[Any] = []

    def append(self, items: list[Any]) -> None:
        pass

    set_items = add_items = append

    def find_global(self, module: Any, attribute: Any) -> None:
        name = _full_name(module, attribute)
        self.names.add(name)
        found = self._globals.get(name)
        self.push(found if isinstance(found, StorageType) else None)

    def reduce(self) -> None:
        self.pop_items(2)
        self.push(None)

    def new_object(self, has_options: bool) -> None:
        self.pop_items(3 if has_options else 2)
        self.push(None)

    def build(self) -> None:
        self.pop()

    def load_storage(self) -> None:
        self.references.append(self.pop())
        self.push(None)


def _full_name(module: Any, attribute: Any) -> str:
    """The name of a class or function; protocol 2 writes those that Python 2 had."""
    check(type(module) is type(attribute) is str, "a name is not a text")
    renamed = NAME_MAPPING.get((module, attribute))
    module, attribute = renamed or (IMPORT_MAPPING.get(module, module), attribute)
    name = f"{module}.{attribute}"
    # What programs pickle themselves has our names for what PyTorch has, too.
    in_pytorch = f"torch{name.removeprefix('rushlight')}".replace("._storage.", ".storage.")
    return in_pytorch if name.startswith("rushlight.") and in_pytorch in GLOBALS else name


_MODULES = ("torch.nn.modules.", "rushlight.nn.modules.", "torch.jit.", "torch.fx.")


def _refusal(name: str) -> str:
    if name.startswith(_MODULES):
        return (
            f"Weights only load failed: the file holds a whole module, with its class {name}, and "
            "not only its state. Classes are code, which is never run. Where the file comes from, "
            "save module.state_dict() in place of module; here, build the module and call "
            "load_state_dict with what load returns"
        )
    if name.startswith("torch."):
        return f"Weights only load failed: it needs {name}, which Rushlight does not have"
    attribute = name.rpartition(".")[2]
    return (
        f"Weights only load failed: GLOBAL {name} was not an allowed global by default. Files may "
        "hold tensors, numbers, text and plain containers, and with weights_only=False NumPy's "
        "arrays and plain data such as argparse.Namespace; code is never run. If you trust this "
        "class or function, import it and call "
        f"rushlight.serialization.add_safe_globals([{attribute}]) first"
    )


def _text(layout: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.take_counted(layout).decode("utf-8", "surrogatepass"))


def _old_text(layout: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.old_text(layout))


def _bytes(layout: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.take_counted(layout))


def _integer(layout: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(int.from_bytes(m.take_counted(layout), "little", signed=True))


_OPERATIONS: dict[bytes, Callable[[_Machine], Any]] = {
    pickle.PROTO: lambda m: m.take(1),
    pickle.FRAME: lambda m: m.take(8),
    # values
    pickle.NONE: lambda m: m.push(None),
    pickle.NEWTRUE: lambda m: m.push(True),
    pickle.NEWFALSE: lambda m: m.push(False),
    pickle.BININT: lambda m: m.push(m.number("<i")),
    pickle.BININT1: lambda m: m.push(m.number("<B")),
    pickle.BININT2: lambda m: m.push(m.number("<H")),
    pickle.LONG1: _integer("<B"),
    pickle.LONG4: _integer("<i"),
    pickle.BINFLOAT: lambda m: m.push(m.number(">d")),
    pickle.SHORT_BINUNICODE: _text("<B"),
    pickle.BINUNICODE: _text("<I"),
    pickle.BINUNICODE8: _text("<Q"),
    pickle.SHORT_BINSTRING: _old_text("<B"),
    pickle.BINSTRING: _old_text("<I"),
    pickle.SHORT_BINBYTES: _bytes("<B"),
    pickle.BINBYTES: _bytes("<I"),
    pickle.BINBYTES8: _bytes("<Q"),
    pickle.BYTEARRAY8: lambda m: m.push(bytearray(m.take_counted("<Q"))),
    # containers
    pickle.EMPTY_TUPLE: lambda m: m.push(()),
    pickle.EMPTY_LIST: lambda m: m.push([]),
    pickle.EMPTY_DICT: lambda m: m.push({}),
    pickle.EMPTY_SET: lambda m: m.push(set()),
    pickle.MARK: _Machine.mark,
    pickle.TUPLE: lambda m: m.push(tuple(m.pop_mark())),
    pickle.TUPLE1: lambda m: m.push(m.pop_items(1)),
    pickle.TUPLE2: lambda m: m.push(m.pop_items(2)),
    pickle.TUPLE3: lambda m: m.push(m.pop_items(3)),
    pickle.APPEND: lambda m: m.append([m.pop()]),
    pickle.APPENDS: lambda m: m.append(m.pop_mark()),
    pickle.SETITEM: lambda m: m.set_items([*m.pop_items(2)]),
    pickle.SETITEMS: lambda m: m.set_items(m.pop_mark()),
    pickle.ADDITEMS: lambda m: m.add_items(m.pop_mark()),
    pickle.FROZENSET: lambda m: m.push(frozenset(check_key(item) for item in m.pop_mark())),
    # coming back to values
    pickle.BINPUT: lambda m: m.put(m.number("<B")),
    pickle.LONG_BINPUT: lambda m: m.put(m.number("<I")),
    pickle.MEMOIZE: lambda m: m.put(len(m._memo)),
    pickle.BINGET: lambda m: m.get(m.number("<B")),
    pickle.LONG_BINGET: lambda m: m.get(m.number("<I")),
    pickle.POP: _Machine.pop,
    pickle.POP_MARK: _Machine.pop_mark,
    # names and calls
    pickle.GLOBAL: lambda m: m.find_global(m.line(), m.line()),
    pickle.STACK_GLOBAL: lambda m: m.find_global(*m.pop_items(2)),
    pickle.REDUCE: lambda m: m.reduce(),
    pickle.NEWOBJ: lambda m: m.new_object(has_options=False),
    pickle.NEWOBJ_EX: lambda m: m.new_object(has_options=True),
    pickle.BUILD: lambda m: m.build(),
    pickle.BINPERSID: lambda m: m.load_storage(),
}
