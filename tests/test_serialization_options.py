"""Files of the old format, whole modules, tensors with attributes, the settings of loading, and
what weights_only=False adds."""

import argparse
import collections
import datetime
import io
import mmap
import os
import pathlib
import pickle
import subprocess
import types
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import archive, entries_of, loaded, round_trip, saved, text

import rushlight as torch
from rushlight import nn, serialization
from rushlight.torch_version import TorchVersion
from rushlight.utils.serialization import config

LEGACY = Path(__file__).parent / "files" / "pytorch_legacy.pt"


@pytest.mark.parametrize("mmap", [False, True])
def test_files_from_before_pytorch_1_6_are_read(mmap) -> None:
    result = torch.load(LEGACY, mmap=mmap)
    assert list(result) == ["state", "half", "flags", "step", "text"]
    state = result["state"]
    assert state["weight"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    state["weight"][1, 0] = 9.0
    assert state["row"].tolist() == [9.0, 4.0, 5.0]
    assert isinstance(state["bias"], nn.Parameter) and state["bias"].requires_grad
    assert state._metadata == {"": {"version": 1}}
    assert result["half"].dtype == torch.float16 and result["half"].tolist() == [0.5]
    assert result["flags"].tolist() == [True, False, True]
    assert (result["step"], result["text"]) == (7, "é")
    assert torch.load(LEGACY)["state"]["weight"][1, 0].item() == 3.0


def test_the_old_format_is_written_too(tmp_path) -> None:
    base = torch.arange(6.0).reshape(2, 3)
    obj = {
        "views": [base, base.t(), base[1]],
        "bytes": torch.tensor([1, 2], dtype=torch.uint16),
        "empty": torch.empty(0),
        "plain": (1, "é"),
    }
    path = tmp_path / "x.pt"
    torch.save(obj, path, _use_new_zipfile_serialization=False)
    with path.open("ab") as file:  # files of this format may follow each other
        torch.save("second", file, _use_new_zipfile_serialization=False)
    for options in ({}, {"mmap": True}):
        result = torch.load(path, **options)
        result["views"][0][1, 0] = 9.0
        assert result["views"][1].tolist() == [[0.0, 9.0], [1.0, 4.0], [2.0, 5.0]]
        assert result["views"][2].tolist() == [9.0, 4.0, 5.0]
        assert result["bytes"].dtype == torch.uint16 and result["bytes"].tolist() == [1, 2]
        assert result["empty"].shape == (0,) and result["plain"] == (1, "é")


@pytest.mark.parametrize("new", [True, False])
def test_an_open_file_can_be_read_by_its_path_at_once(tmp_path, new) -> None:
    with open(tmp_path / "saved.pt", "wb") as file:
        torch.save(torch.ones(2), file, _use_new_zipfile_serialization=new)
        assert torch.load(file.name).tolist() == [1, 1]


def test_whole_modules_are_refused_with_what_to_do() -> None:
    for module in (nn.Linear(2, 3), nn.Sequential(nn.ReLU())):
        with pytest.raises(pickle.UnpicklingError, match=r"holds a whole module.*state_dict\(\)"):
            round_trip(module)


def test_attributes_and_tensors_without_data_are_kept() -> None:
    x = torch.ones(2, requires_grad=True)
    x.label = "a"
    result = round_trip([x, torch.empty(2, 3, device="meta").t()])
    assert result[0].label == "a" and result[0].requires_grad
    assert result[1].is_meta and result[1].shape == (3, 2) and result[1].stride() == (1, 3)


def test_packages_restore_locations_of_their_own() -> None:
    entries = entries_of(saved(torch.arange(3)))
    data = archive({**entries, "data.pkl": entries["data.pkl"].replace(text("cpu"), text("gpu"))})
    before = list(serialization._packages)
    try:
        serialization.register_package(
            20, lambda storage: "late", lambda storage, location: pytest.fail("asked too late")
        )
        serialization.register_package(
            5,
            lambda storage: "gpu" if storage.nbytes() == 24 else None,
            lambda storage, location: storage.clone() if location == "gpu" else None,
        )
        assert loaded(data).tolist() == [0, 1, 2]
        assert serialization.location_tag(torch.arange(3).untyped_storage()) == "gpu"
        assert serialization.location_tag(torch.arange(2).untyped_storage()) == "late"
    finally:
        serialization._packages[:] = before
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        serialization.default_restore_location(torch.zeros(1).untyped_storage(), "gpu")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="map_location=torch.device\\('cpu'\\)"):
            serialization.default_restore_location(torch.zeros(1).untyped_storage(), "cuda:0")


def test_mapped_files_may_be_shared(tmp_path) -> None:
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(3), path)
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
        torch.load(path, mmap=True)[1] = 5.0
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    torch.load(path, mmap=True)[2] = 7.0
    assert torch.load(path, mmap=True).tolist() == [0.0, 5.0, 0.0]
    with pytest.raises(ValueError, match=r"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"):
        serialization.set_default_mmap_options(77)


def test_the_order_of_bytes_is_told_when_the_file_does_not() -> None:
    entries = entries_of(saved(torch.tensor([1, 256], dtype=torch.int16)))
    del entries["byteorder"]
    data = archive(entries)
    assert serialization.get_default_load_endianness() is None
    assert loaded(data).tolist() == [1, 256]
    try:
        serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
        assert loaded(data).tolist() == [256, 1]
    finally:
        serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError, match="set_default_load_endianness"):
        serialization.set_default_load_endianness("big")


def test_data_may_be_left_out_when_saving_and_when_loading() -> None:
    whole = saved([torch.ones(4), torch.ones(2, dtype=torch.bool)])
    with serialization.skip_data():
        empty = saved([torch.ones(4), torch.ones(2, dtype=torch.bool)])
        skipped = loaded(whole)
    assert len(empty) == len(whole)
    for result in (loaded(empty), skipped):
        assert [x.tolist() for x in result] == [[0.0] * 4, [False] * 2]
    assert loaded(whole)[0].tolist() == [1.0] * 4


def test_names_that_load_would_refuse_are_listed(tmp_path) -> None:
    path = tmp_path / "x.pt"
    torch.save({"a": torch.ones(1), "b": [collections.deque(), nn.ReLU()]}, path)
    names = serialization.get_unsafe_globals_in_checkpoint(path)
    assert "collections.deque" in names and "rushlight.nn.modules.activation.ReLU" in names
    with serialization.safe_globals([collections.deque]):
        assert "collections.deque" not in serialization.get_unsafe_globals_in_checkpoint(path)
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(saved(1))) == []
    assert serialization.get_unsafe_globals_in_checkpoint(LEGACY) == []


def test_versions_of_modules_are_compared() -> None:
    check = serialization.check_module_version_greater_or_equal
    module = types.SimpleNamespace(__name__="m", __version__="1.12.0")
    assert check(module, (1, 2)) and not check(module, (1, 13)) and check(module, ("1", "12"))
    module.__version__ = "new"
    with pytest.raises(RuntimeError, match="'m' module version string is malformed"):
        check(module, (1, 2))
    assert check(module, (1, 2), error_if_malformed=False)
    assert serialization.get_crc32_options() is True
    serialization.set_crc32_options(False)
    assert serialization.get_crc32_options() is False
    serialization.set_crc32_options(True)


# Data of NumPy and of the standard library


def data_of_others(protocol: int) -> bytes:
    values = {
        "array": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        "big": np.array([1, 2], dtype=">i4"),
        "texts": np.array(["ab", "c"]),
        "empty": np.zeros((0, 3), dtype=bool),
        "scalar": np.float32(1.5),
        "complex": np.complex64(1 + 2j),
        "namespace": argparse.Namespace(lr=0.1, betas=(0.9, 0.99)),
        "default": collections.defaultdict(list, a=[1]),
        "deque": collections.deque([1, 2], 5),
        "path": pathlib.PurePosixPath("a/b"),
        "version": TorchVersion("2.13.0"),
        "range": range(1, 9, 2),
        "frozen": frozenset([1, 2]),
        "time": datetime.datetime(2020, 1, 2, 3, 4, 5),
    }
    return saved(values, pickle_protocol=protocol)


def test_naming_the_pickle_module_asks_for_plain_data_of_others() -> None:
    data = saved({"array": np.arange(3)})
    assert loaded(data, pickle_module=pickle)["array"].tolist() == [0, 1, 2]
    with pytest.raises(pickle.UnpicklingError, match="not an allowed global"):
        loaded(data, pickle_module=pickle, weights_only=True)


def test_the_environment_says_whether_files_hold_weights_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = saved({"range": range(3)})
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert loaded(data) == {"range": range(3)}
    with pytest.raises(pickle.UnpicklingError, match="not an allowed global"):
        loaded(data, weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0")
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError, match="not an allowed global"):
        loaded(data, weights_only=False)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_plain_data_of_others_is_loaded_when_asked_for(protocol: int) -> None:
    data = data_of_others(protocol)
    with pytest.raises(pickle.UnpicklingError, match=r"not an allowed global.*weights_only=False"):
        loaded(data)
    found = loaded(data, weights_only=False)
    assert found["array"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert found["columns"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["columns"].flags.f_contiguous and found["columns"].dtype == np.int16
    assert found["big"].tolist() == [1, 2]  # of which order, depends on the protocol
    assert found["texts"].tolist() == ["ab", "c"]
    assert found["empty"].shape == (0, 3) and found["empty"].dtype == bool
    assert found["scalar"] == 1.5 and found["scalar"].dtype == np.float32
    assert found["complex"] == 1 + 2j
    assert found["namespace"] == argparse.Namespace(lr=0.1, betas=(0.9, 0.99))
    assert found["default"] == {"a": [1]} and found["default"]["new"] == []
    assert found["deque"] == collections.deque([1, 2]) and found["deque"].maxlen == 5
    assert found["path"] == pathlib.PurePosixPath("a/b")
    assert found["version"] >= (2, 13) and type(found["version"]) is TorchVersion
    assert found["range"] == range(1, 9, 2) and found["frozen"] == {1, 2}
    assert found["time"] == datetime.datetime(2020, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, "a"], dtype=object),
        np.zeros(1, dtype=[("a", "f4")]),
        collections.defaultdict(os.getcwd),
        print,
        nn.Linear(1, 1),
        subprocess.Popen,
    ],
)
def test_what_is_more_than_plain_data_stays_refused(value) -> None:
    with pytest.raises(pickle.UnpicklingError):
        loaded(saved(value), weights_only=False)


def test_damaged_arrays_are_refused() -> None:
    entries = entries_of(saved(np.arange(3, dtype=np.int64)))
    program = entries["data.pkl"]
    for old, new in (
        (b"K\x03\x85", b"K\x04\x85"),
        (text("i8"), text("i4")),
        (text("i8"), text("O8")),
    ):
        assert old in program
        data = archive({**entries, "data.pkl": program.replace(old, new)})
        with pytest.raises(pickle.UnpicklingError):
            loaded(data, weights_only=False)


def test_python_2_options_are_accepted_and_others_refused() -> None:
    data = saved({"a": 1})
    assert loaded(data, encoding="latin1", errors="ignore", fix_imports=True) == {"a": 1}
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        loaded(data, foo=1)


def test_texts_of_python_2_are_read_in_an_encoding_or_as_bytes() -> None:
    entries = entries_of(saved(["żą", torch.ones(2)]))
    program = entries["data.pkl"]
    for old in ("żą", "storage", "0", "cpu"):
        data = old.encode()
        assert text(old) in program
        program = program.replace(text(old), b"U" + bytes([len(data)]) + data)
    file = archive({**entries, "data.pkl": program})
    for encoding, expected in (
        ("utf-8", "żą"),
        ("bytes", "żą".encode()),
        ("latin1", "żą".encode().decode("latin1")),
    ):
        found, tensor = loaded(file, encoding=encoding)
        assert found == expected and tensor.tolist() == [1.0, 1.0]
    assert loaded(file)[0] == "żą".encode().decode("latin1")
    with pytest.raises(pickle.UnpicklingError, match="not in the encoding 'ascii'"):
        loaded(file, encoding="ascii")
    assert loaded(file, encoding="ascii", errors="replace")[0] == "\ufffd" * 4
    with pytest.raises(LookupError, match="unknown encoding"):
        loaded(file, encoding="latin-17")


def test_wrong_arguments_of_load_are_told_from_damaged_files() -> None:
    with pytest.raises(AttributeError, match=r"'int' object has no attribute 'read'.*seekable"):
        torch.load(3)
    with pytest.raises(TypeError, match="map_location must be a device"):
        loaded(saved(torch.ones(1)), map_location=3)

    def place(storage, location):
        raise ValueError("no place")

    with pytest.raises(ValueError, match=r"^no place$"):
        loaded(saved(torch.ones(1)), map_location=place)


def test_settings_count_without_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.pt"
    monkeypatch.setattr(config.save, "storage_alignment", 4096)
    torch.save([torch.arange(3), torch.arange(4)], path)
    assert path.read_bytes().find(np.arange(4).tobytes()) % 4096 == 0
    monkeypatch.setattr(config.load, "mmap", True)
    monkeypatch.setattr(config.load, "mmap_flags", mmap.MAP_SHARED)
    torch.load(path)[0].fill_(7)
    assert torch.load(path)[0].tolist() == [7, 7, 7]
    assert loaded(saved(torch.arange(3))).tolist() == [0, 1, 2]  # no path
    torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
    assert config.load.endianness is torch.serialization.LoadEndianness.BIG
    torch.serialization.set_default_load_endianness(None)
