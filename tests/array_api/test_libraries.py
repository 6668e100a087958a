"""SciPy, scikit-learn and array-api-compat recognize tensors and compute with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import array_api

HERE = Path(__file__).parent


@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_functions_give_on_tensors_what_they_give_on_arrays(library: str) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "programs.py"), library],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": str(HERE.parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("tried ")


def test_array_api_compat_finds_the_namespace() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = torch.ones(2, 3)
    assert compat.array_namespace(x, 2.0) is array_api
    assert compat.is_array_api_obj(x)
    assert not compat.is_torch_array(x)
    assert compat.size(x) == 6
    assert compat.device(x) == torch.device("cpu")
    assert compat.to_device(x, "cpu") is x


def test_versions_that_are_there_can_be_asked_for() -> None:
    x = torch.ones(2)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is array_api
    for version in ("2099.12", "newest", ""):
        with pytest.raises(ValueError, match="It must be one of"):
            x.__array_namespace__(api_version=version)
    assert array_api.__array_api_version__ == "2024.12"


def test_the_namespace_tells_about_itself() -> None:
    info = array_api.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert info.default_device() == torch.device("cpu")
    assert torch.device("cpu") in info.devices()
    assert info.default_dtypes() == {
        "real floating": torch.float32,
        "complex floating": torch.complex64,
        "integral": torch.int64,
        "indexing": torch.int64,
    }
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    assert info.dtypes(kind=("bool", "real floating")) == {
        "bool": torch.bool,
        "float32": torch.float32,
        "float64": torch.float64,
    }
    assert len(info.dtypes()) == 13
    with pytest.raises(ValueError, match="unknown kind"):
        info.dtypes(kind="whole")


def test_gradients_flow_through_the_namespace() -> None:
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    array_api.sum(array_api.sqrt(array_api.multiply(x, x))).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is neither GPU nor shim")
def test_results_stay_on_the_device() -> None:
    xp, x = array_api, torch.ones(2, 3, device="cuda")
    results = [xp.add(x, 1), xp.clip(x, 0, 1), xp.sum(x, axis=0), xp.where(x > 0, x, 0.0)]
    results += [xp.asarray(x), xp.zeros_like(x), xp.concat([x, x]), xp.cumulative_sum(x, axis=1)]
    assert {str(r.device) for r in results} == {"cuda:0"}
    assert xp.asarray(x, device="cpu").device == torch.device("cpu")
    assert torch.device("cuda", 0) in xp.__array_namespace_info__().devices()
