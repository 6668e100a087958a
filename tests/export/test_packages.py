"""Packages of exported programs, by the names of PyTorch's ahead-of-time compiler."""

import tempfile
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._inductor import aoti_compile_and_package, aoti_load_package


def test_a_package_runs_and_takes_other_parameters(tmp_path: Path) -> None:
    net, x = nn.Sequential(nn.Linear(3, 4), nn.GELU()), torch.randn(2, 3)
    shapes = {"input": {0: torch.export.Dim("batch", max=9)}}
    program = torch.export.export(net, (x,), dynamic_shapes=shapes)
    path = aoti_compile_and_package(program, package_path=tmp_path / "net.pt2")
    model = aoti_load_package(path)
    assert torch.equal(model(x), net(x)) and not model(x).requires_grad
    assert model(torch.randn(9, 3)).shape == (9, 4)
    assert model.get_metadata()["AOTI_DEVICE_KEY"] == "cpu"
    assert model.get_constant_fqns() == ["0.weight", "0.bias"]
    other = nn.Sequential(nn.Linear(3, 4), nn.GELU())
    model.load_constants(other.state_dict(), check_full_update=True)
    assert torch.equal(model(x), other(x))
    model.load_constants({"0.bias": net[0].bias}, check_full_update=False, user_managed=True)
    with torch.no_grad():
        net[0].bias.fill_(9)
    assert torch.equal(model(x), torch.nn.functional.gelu(x @ other[0].weight.T + 9))


def test_a_package_is_a_temporary_file_unless_it_has_a_path() -> None:
    program = torch.export.export(nn.ReLU(), (torch.ones(1),))
    path = Path(aoti_compile_and_package(program))
    assert aoti_load_package(path)(torch.tensor([-1.0])).item() == 0
    path.unlink()


def test_no_file_is_left_of_what_is_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(TypeError):
        aoti_compile_and_package(nn.ReLU())  # pyright: ignore[reportArgumentType]
    assert not list(tmp_path.iterdir())


def test_wrong_packages_and_constants_are_refused(tmp_path: Path) -> None:
    program = torch.export.export(nn.Linear(1, 1), (torch.ones(1),))
    with pytest.raises(ValueError, match=r"ends in \.pt2"):
        aoti_compile_and_package(program, package_path=tmp_path / "net.so")
    model = aoti_load_package(aoti_compile_and_package(program, package_path=tmp_path / "a.pt2"))
    with pytest.raises(
        RuntimeError, match=r"unknown are \['x'\], missing are \['bias', 'weight'\]"
    ):
        model.load_constants({"x": torch.ones(1)}, check_full_update=True)
    with pytest.raises(RuntimeError, match="size mismatch"):
        model.load_constants({"bias": torch.ones(2)}, check_full_update=False)
