"""No call of a public function ends the process or hangs, whatever its arguments."""

from __future__ import annotations

import pytest
from hostile.calls import FUNCTIONS
from hostile.children import findings


@pytest.mark.parametrize("part", range(8))
def test_functions_take_hostile_arguments(part: int) -> None:
    names = sorted(FUNCTIONS)[part::8]
    # What has no samples gets arguments of any kind, of which few are taken.
    counts = {name: 5 if FUNCTIONS[name][1] else 20 for name in names}
    assert not list(findings([(name, 1, i) for name in names for i in range(counts[name])]))


@pytest.mark.parametrize("seed", range(4))
def test_programs_of_hostile_steps(seed: int) -> None:
    assert not list(findings([("walk", seed, i) for i in range(10)]))
