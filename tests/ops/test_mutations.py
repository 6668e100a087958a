"""Wrong arguments of any op raise an error that names what is wrong; they never end the process."""

from __future__ import annotations

import contextlib

import pytest
from ops.matrix import SAMPLED, SAMPLES, function_of, tensor_of
from ops.mutations import mutations

ERRORS = (RuntimeError, TypeError, ValueError, IndexError, MemoryError)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLED)
def test_wrong_arguments_raise(name: str) -> None:
    for sample in SAMPLES[name].all[:2]:
        for _, wrong in mutations(sample):
            with contextlib.suppress(*ERRORS):
                wrong = wrong.map(tensor_of)
                function_of(name)(*wrong.args, **wrong.kwargs)
