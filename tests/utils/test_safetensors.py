"""Files in the format of safetensors: each dtype, shared memory, and files that are damaged."""

import contextlib
import json
import struct

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils import safetensors

DTYPES = (
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 "
    "float16 bfloat16 float32 float64 complex64"
)


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def test_tensors_of_each_dtype_make_the_round_trip(tmp_path) -> None:
    tensors = {
        name: torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, name))
        for name in DTYPES.split()
    }
    tensors["scalar"] = torch.tensor(2.5)
    tensors["empty"] = torch.empty(0, 3)
    tensors["transposed"] = torch.arange(6.0).reshape(2, 3).t()
    path = tmp_path / "x.safetensors"
    safetensors.save_file(tensors, path, {"format": "pt"})
    for result in (safetensors.load_file(path), safetensors.load(path.read_bytes())):
        assert result.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert result[name].dtype == tensor.dtype and result[name].shape == tensor.shape
            assert torch.equal(result[name], tensor)


def test_files_are_read_on_demand_and_not_written(tmp_path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"a": torch.arange(6).reshape(2, 3), "b": torch.ones(1)}, path)
    with safetensors.safe_open(path, framework="pt", device="cpu") as file:
        assert file.keys() == ["a", "b"] and file.offset_keys() == ["a", "b"]
        assert file.metadata() is None
        part = file.get_slice("a")
        assert part.get_shape() == [2, 3] and part.get_dtype() == "I64"
        assert part[:, 1:].tolist() == [[1, 2], [4, 5]]
        tensor = file.get_tensor("a")
        with pytest.raises(safetensors.SafetensorError, match="does not contain tensor c"):
            file.get_tensor("c")
    tensor += 1
    assert tensor[0].tolist() == [1, 2, 3]
    assert safetensors.load_file(path)["a"][0].tolist() == [0, 1, 2]
    safetensors.save_file({"a": torch.zeros(1)}, path)  # the old file stays mapped
    assert tensor[1].tolist() == [4, 5, 6]


def test_a_model_with_shared_parameters_is_saved_once(tmp_path) -> None:
    path = tmp_path / "x.safetensors"
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    with pytest.raises(RuntimeError, match=r"share memory.*0.weight.*1.weight"):
        safetensors.save_file(dict(net.state_dict()), path)
    safetensors.save_model(net, path)
    assert sorted(safetensors.load_file(path)) == ["0.bias", "0.weight", "1.bias"]
    with safetensors.safe_open(path) as file:
        assert file.metadata() == {"1.weight": "0.weight"}
    other = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    other[1].weight = other[0].weight
    assert safetensors.load_model(other, path) == ([], [])
    assert torch.equal(other[1].weight, net[0].weight)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        safetensors.load_model(nn.Sequential(nn.Linear(3, 3)), path)
    missing, unexpected = safetensors.load_model(nn.Linear(3, 3), path, strict=False)
    assert missing == ["weight", "bias"] and "0.bias" in unexpected


def test_what_the_format_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="'x' is a tensor of torch.complex128"):
        safetensors.save({"x": torch.zeros(1, dtype=torch.complex128)})
    with pytest.raises(ValueError, match="'x' is int"):
        safetensors.save({"x": 3})
    with pytest.raises(ValueError, match="expected a dict"):
        safetensors.save([torch.zeros(1)])
    with pytest.raises(ValueError, match="'__metadata__' names the metadata"):
        safetensors.save({"__metadata__": torch.zeros(1)})
    with pytest.raises(TypeError, match="'epoch' is 3"):
        safetensors.save({"x": torch.zeros(1)}, metadata={"epoch": 3})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "too short"),
        (b"\xff" * 16, "header is too long"),
        (struct.pack("<Q", 100) + b"{}", "in the middle of its header"),
        (file_of(b"{"), "not JSON"),
        (file_of(b"[" * 100_000), "not JSON"),
        (file_of([]), "not a table"),
        (file_of({"x": 3}), "incomplete for 'x'"),
        (file_of({"x": entry(dtype="F8_E8M0", end=2)}, b"12"), "dtype F8_E8M0, which"),
        (file_of({"x": entry(dtype=[])}, bytes(8)), "dtype of 'x' is damaged"),
        (file_of({"x": entry(shape=(-2,))}, bytes(8)), "place of 'x' is damaged"),
        (file_of({"x": entry(shape=(True, 2))}, bytes(8)), "place of 'x' is damaged"),
        (file_of({"x": entry(begin=8, end=0)}, bytes(8)), "place of 'x' is damaged"),
        (file_of({"x": entry(shape=(3,))}, bytes(8)), "does not fit its shape"),
        (file_of({"x": entry(shape=(2**62, 2**62), end=2**40)}), "does not fit its shape"),
        (file_of({"x": entry()}, bytes(7)), "cut off"),
        (file_of({"x": entry()}, bytes(9)), "cut off, or has more bytes"),
        (file_of({"x": entry(), "y": entry()}, bytes(8)), "overlap or leave holes"),
        (file_of({"x": entry(begin=4, end=12)}, bytes(12)), "overlap or leave holes"),
        (file_of(b'{"x": 1, "x": 2}'), "a name twice"),
        (file_of({"__metadata__": {"a": 1}}), "metadata are not texts"),
    ],
)
def test_damaged_files_are_refused(data, message, tmp_path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(safetensors.SafetensorError, match=message):
        safetensors.load(data)
    with pytest.raises(safetensors.SafetensorError, match=message) as info:
        safetensors.load_file(path)
    assert str(path) in str(info.value)


def test_tensors_at_odd_places_are_read() -> None:
    data = np.array([1.5, 2.5], np.float32).tobytes()
    for spaces in range(4):
        text = json.dumps({"x": entry()}).encode() + b" " * spaces
        x = safetensors.load(file_of(text, data))["x"]
        assert x.tolist() == [1.5, 2.5] and x.data_ptr() % 4 == 0
    assert safetensors.load(file_of({"x": entry("BOOL", (3,), 0, 3)}, b"\0\1\xff"))[
        "x"
    ].tolist() == [False, True, True]


def test_load_says_what_reads_such_a_file(tmp_path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"a": torch.ones(2)}, path)
    with pytest.raises(RuntimeError, match=r"rushlight.utils.safetensors.load_file"):
        torch.load(path)


def test_changed_files_end_cleanly() -> None:
    whole = safetensors.save({"a": torch.ones(2), "b": torch.arange(3)}, {"k": "v"})
    for position in range(len(whole)):
        for bit in (1, 0x80):
            data = bytearray(whole)
            data[position] ^= bit
            with contextlib.suppress(safetensors.SafetensorError):
                safetensors.load(bytes(data))


def test_the_package_reads_our_files_and_we_read_its() -> None:
    package = pytest.importorskip("safetensors.numpy")
    arrays = {"a": np.arange(6, dtype=np.int32).reshape(2, 3), "b": np.ones(3, np.float16)}
    ours = safetensors.load(package.save(arrays, {"k": "v"}))
    theirs = package.load(safetensors.save(ours, {"k": "v"}))
    for name, array in arrays.items():
        np.testing.assert_array_equal(ours[name].numpy(), array)
        np.testing.assert_array_equal(theirs[name], array)
