"""Each framework reads the checkpoints of the other."""

import argparse
import collections
import io
import pickle

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "uint16",
    "uint32",
    "uint64",
]


def checkpoint(library):
    """The same object in either library."""
    base = library.arange(24, dtype=library.float32).reshape(4, 6)
    state = collections.OrderedDict(weight=base, part=base[1:3, ::2])
    state._metadata = collections.OrderedDict({"": {"version": 1}})
    return {
        "state": state,
        "parameter": library.nn.Parameter(base.t()),
        "frozen": library.nn.Parameter(library.ones(2), requires_grad=False),
        "leaf": library.ones(2, requires_grad=True),
        "expanded": library.ones(1).expand(3),
        "scalar": library.tensor(2.5, dtype=library.float64),
        "empty": library.empty(0, 3),
        "size": library.Size([2, 3]),
        "device": library.device("cpu"),
        "dtype": library.bfloat16,
        "dtypes": [library.tensor([0, 1, 1]).to(getattr(library, name)) for name in DTYPES],
        "plain": [
            1,
            -(2**70),
            0.5,
            True,
            None,
            "é",
            (1, (2,)),
            {3},
            1 + 2j,
            b"ab",
            bytearray(b"c"),
        ],
    }


def assert_same(actual, expected):
    if hasattr(expected, "untyped_storage"):
        assert str(actual.dtype) == str(expected.dtype)
        assert actual.shape == expected.shape
        assert actual.stride() == expected.stride() or 0 in expected.shape
        assert actual.requires_grad == expected.requires_grad
        assert actual.tolist() == expected.tolist()
        assert type(actual).__name__ == type(expected).__name__
    elif isinstance(expected, dict):
        assert type(actual) is type(expected)
        assert list(actual) == list(expected)
        for key in expected:
            assert_same(actual[key], expected[key])
    elif type(expected) is list:
        for ours, theirs in zip(actual, expected, strict=True):
            assert_same(ours, theirs)
    else:
        assert repr(actual) == repr(expected)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(("writer", "reader"), [(torch, pytorch), (pytorch, torch)])
def test_each_reads_what_the_other_wrote(writer, reader, mmap, tmp_path) -> None:
    path = str(tmp_path / "x.pt")
    writer.save(checkpoint(writer), path)
    result = reader.load(path, weights_only=True, mmap=mmap)
    assert_same(result, checkpoint(reader))
    assert result["state"]._metadata == {"": {"version": 1}}
    result["state"]["weight"][1, 2] = -1  # still shared with the view
    assert result["state"]["part"][0, 1].item() == -1


def test_files_of_the_old_format_are_read(tmp_path) -> None:
    path = str(tmp_path / "x.pt")
    pytorch.save(checkpoint(pytorch), path, _use_new_zipfile_serialization=False)
    for mmap in (False, True):
        result = torch.load(path, mmap=mmap)
        assert_same(result, checkpoint(torch))
        assert result["state"]._metadata == {"": {"version": 1}}
        result["state"]["weight"][1, 2] = -1
        assert result["state"]["part"][0, 1].item() == -1


def test_files_of_the_old_format_are_written(tmp_path) -> None:
    path = str(tmp_path / "x.pt")
    ours, theirs = checkpoint(torch), checkpoint(pytorch)
    for each in (ours, theirs):
        del each["dtypes"][-3:]  # PyTorch writes wide unsigned numbers in it, but cannot read them
    torch.save(ours, path, _use_new_zipfile_serialization=False)
    result = pytorch.load(path)
    assert_same(result, theirs)
    result["state"]["weight"][1, 2] = -1
    assert result["state"]["part"][0, 1].item() == -1


def test_plain_data_of_others_that_pytorch_wrote_is_read() -> None:
    values = {
        "array": np.arange(3.0),
        "best": np.float64(0.25),
        "args": argparse.Namespace(lr=0.1),
        "state": np.random.RandomState(0).get_state(),
    }
    file = io.BytesIO()
    pytorch.save(values, file)
    file.seek(0)
    found = torch.load(file, weights_only=False)
    assert found["array"].tolist() == [0.0, 1.0, 2.0] and found["best"] == 0.25
    assert found["args"] == values["args"]
    np.random.RandomState().set_state(found["state"])


@pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:Validating sparse tensor")
@pytest.mark.parametrize(("writer", "reader"), [(torch, pytorch), (pytorch, torch)])
def test_attributes_sparse_and_meta_tensors_go_both_ways(writer, reader) -> None:
    x = writer.ones(2, requires_grad=True)
    x.label = "a"
    parameter = writer.nn.Parameter(writer.ones(2))
    parameter.group = 3
    parts = [
        x,
        parameter,
        writer.empty(2, 3, device="meta").t(),
        writer.eye(3).to_sparse(),
        writer.eye(3).to_sparse_csr(),
        writer.eye(3).to_sparse_bsc((3, 1)),
    ]
    file = io.BytesIO()
    writer.save(parts, file)
    file.seek(0)
    tensor, parameter, meta, *sparse = reader.load(file, weights_only=True)
    assert tensor.label == "a" and tensor.requires_grad and parameter.group == 3
    assert meta.is_meta and tuple(meta.shape) == (3, 2) and meta.stride() == (1, 3)
    assert all(x.to_dense().tolist() == reader.eye(3).tolist() for x in sparse)
    assert [str(x.layout)[-3:] for x in sparse] == ["coo", "csr", "bsc"]


@pytest.mark.parametrize("where", ["cpu", "device", "dict", "function", "meta"])
def test_locations_are_mapped_alike(where) -> None:
    results = []
    for library in (torch, pytorch):
        options = {
            "cpu": "cpu",
            "device": library.device("cpu"),
            "dict": {"cpu": "meta"},
            "function": lambda storage, location: storage,
            "meta": library.device("meta"),
        }
        file = io.BytesIO()
        library.save([library.arange(3), library.tensor([True])], file)
        file.seek(0)
        loaded = library.load(file, map_location=options[where])
        results.append([(str(x.device), str(x.dtype), tuple(x.shape)) for x in loaded])
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", ["module", "code", "float8"])
def test_what_is_more_than_state_is_refused_and_told(kind) -> None:
    obj, phrase = {
        "module": (pytorch.nn.Linear(2, 3), "holds a whole module"),
        "code": (print, "was not an allowed global"),
        "float8": (pytorch.ones(2).to(pytorch.float8_e5m2fnuz), "which Rushlight does not have"),
    }[kind]
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        file = io.BytesIO()
        pytorch.save(obj, file, **options)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match=phrase):
            torch.load(file)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_8_bit_floats_go_both_ways(name: str) -> None:
    for ours, theirs in ((torch, pytorch), (pytorch, torch)):
        x = ours.tensor([1.0, -0.3, 100.0]).to(getattr(ours, name))
        file = io.BytesIO()
        ours.save({"x": x}, file)
        file.seek(0)
        loaded = theirs.load(file)["x"]
        assert loaded.dtype is getattr(theirs, name) and loaded.tolist() == x.tolist()


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"amsgrad": True}), ("AdamW", {"lr": 0.1})],
)
@pytest.mark.parametrize(("first", "second"), [(torch, pytorch), (pytorch, torch)])
def test_training_goes_on_in_the_other_framework(first, second, name, options) -> None:
    rng = np.random.default_rng(0)
    start = rng.normal(size=(3, 4)).tolist()
    grads = [rng.normal(size=(3, 4)).tolist() for _ in range(6)]

    def make(library, values):
        weight = library.nn.Parameter(library.tensor(values, dtype=library.float64))
        return weight, getattr(library.optim, name)([weight], **options)

    def train(library, weight, optimizer, part):
        for grad in part:
            weight.grad = library.tensor(grad, dtype=library.float64)
            optimizer.step()

    whole, optimizer = make(first, start)
    train(first, whole, optimizer, grads)

    weight, optimizer = make(first, start)
    train(first, weight, optimizer, grads[:3])
    file = io.BytesIO()
    first.save({"weight": weight.detach(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = second.load(file, weights_only=True)
    other, optimizer = make(second, saved["weight"].tolist())
    optimizer.load_state_dict(saved["optimizer"])
    train(second, other, optimizer, grads[3:])
    np.testing.assert_allclose(other.tolist(), whole.tolist(), rtol=1e-10)
