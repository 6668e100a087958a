"""Results and gradients of every module case equal those that PyTorch gave."""

import module_cases
import pytest

import rushlight as torch

CASES = [
    pytest.param(name, case, id=f"{name}: {case.expression}")
    for name in module_cases.FAMILIES
    for case in module_cases.family(name)
]
RECORDS = {name: module_cases.references(name) for name in module_cases.FAMILIES}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("name", "case"), CASES)
def test_equals_pytorchs_record(name, case, dtype) -> None:
    tolerance = case.tolerance if dtype == torch.float64 else max(1e-4, 10 * case.tolerance)
    expected = RECORDS[name][case.expression]
    module_cases.assert_same(case.record(torch, dtype), expected, tolerance)


@pytest.mark.parametrize("name", module_cases.FAMILIES)
def test_every_record_has_its_case(name) -> None:
    assert set(RECORDS[name]) == {case.expression for case in module_cases.family(name)}
