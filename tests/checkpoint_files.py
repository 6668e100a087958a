"""Makes and takes apart checkpoint files and pickles, for the tests of saving and loading."""

import io
import pickle
import struct
import zipfile

import rushlight as torch

CLEAN = (pickle.UnpicklingError, RuntimeError, EOFError)


def saved(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    return file.getvalue()


def loaded(data, **options):
    return torch.load(io.BytesIO(data), **options)


def round_trip(obj):
    return loaded(saved(obj))


def archive(entries, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as zip_file:
        for name, data in entries.items():
            zip_file.writestr(f"archive/{name}", data)
    return file.getvalue()


def entries_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as zip_file:
        return {
            info.filename.partition("/")[2]: zip_file.read(info) for info in zip_file.infolist()
        }


def checkpoint(pickled, **storages):
    """A file with this pickle, whose checksums are right."""
    return archive({"data.pkl": pickled, **{f"data/{k}": v for k, v in storages.items()}})


# Parts of a pickle: each is the bytes that leave one value on the stack.


def text(value):
    data = value.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def number(value):
    data = pickle.encode_long(value)
    return pickle.LONG1 + struct.pack("<B", len(data)) + data


def tuple_of(*parts):
    return pickle.MARK + b"".join(parts) + pickle.TUPLE


def name(module, attribute):
    return pickle.GLOBAL + f"{module}\n{attribute}\n".encode()


def call(function, *arguments):
    return function + tuple_of(*arguments) + pickle.REDUCE


def program(*parts):
    return pickle.PROTO + b"\x02" + b"".join(parts) + pickle.STOP
