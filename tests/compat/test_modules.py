"""Every module case against PyTorch itself: numbers, state_dict, repr, and initial parameters."""

import module_cases
import numpy as np
import pytest
from scipy import stats

import rushlight as torch

pytorch = pytest.importorskip("torch")
# PyTorch says of some modules which of its kernels or shortcuts does not serve them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is not supported with oneDNN:UserWarning"),
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning"),
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning"),
]

CASES = [
    pytest.param(case, id=case.expression)
    for name in module_cases.FAMILIES
    for case in module_cases.family(name)
]
MODULES = [param for param in CASES if param.id.startswith("nn.")]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_call_equals_pytorchs(case, dtype) -> None:
    ours, theirs = (case.record(lib, getattr(lib, dtype)) for lib in (torch, pytorch))
    tolerance = case.tolerance * (1e-3 if dtype == "float64" else 100)
    module_cases.assert_same(ours, theirs, tolerance)
    assert {name: value.dtype for name, value in ours.items()} == {
        name: value.dtype for name, value in theirs.items()
    }


@pytest.mark.parametrize("case", MODULES)
def test_state_and_text_equal_pytorchs(case) -> None:
    ours, theirs = (case.make(lib, lib.float32) for lib in (torch, pytorch))
    assert repr(ours) == repr(theirs)
    assert {name: tuple(value.shape) for name, value in ours.state_dict().items()} == {
        name: tuple(value.shape) for name, value in theirs.state_dict().items()
    }


@pytest.mark.parametrize("case", MODULES)
def test_initial_parameters_are_distributed_as_pytorchs(case) -> None:
    names = ({"torch": lib, "nn": lib.nn, "F": lib.nn.functional} for lib in (torch, pytorch))
    ours, theirs = ([eval(case.expression, name) for _ in range(20)] for name in names)
    for name, _ in theirs[0].named_parameters():
        mine, expected = (
            np.concatenate([m.get_parameter(name).detach().numpy().ravel() for m in modules])
            for modules in (ours, theirs)
        )
        if np.ptp(expected) == 0:
            np.testing.assert_array_equal(mine, expected, err_msg=name)
        else:
            assert stats.ks_2samp(mine, expected).pvalue > 1e-6, name
