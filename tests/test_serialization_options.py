"""Files of the old format, whole modules, tensors with attributes, and the settings of loading."""

import collections
import io
import mmap
import pickle
import types
from pathlib import Path

import pytest
from checkpoint_files import archive, entries_of, loaded, round_trip, saved, text

import rushlight as torch
from rushlight import nn, serialization

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
