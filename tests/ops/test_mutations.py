"""Wrong arguments of any op raise an error that names what is wrong; they never end the process."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from ops.matrix import ROWS, SAMPLED, SAMPLES, function_of
from ops.mutations import mutations, tensor_of
from samples import Sample

import rushlight as torch

ERRORS = (RuntimeError, TypeError, ValueError, IndexError, MemoryError)


def complaint(error: Exception) -> str | None:
    """What is wrong with the text of an error, if anything is."""
    text = str(error)
    first, *rest = text.splitlines()
    if re.match(r"\w+\(\) (missing|takes) ", text):
        return None  # Python's own, of a function that is written in it
    if not re.match(r"[\w.]+(\(\))?: ", text):
        return "does not name the op"
    if not rest and not re.search(r"[.!?]$", text):
        return "is no sentence"
    if re.search(r"::|->|\.cpp|\.h\b|ASSERT|internal error", text):
        return "shows C++"
    if len(first) > 400:
        return "is too long"
    return None


def raised(function: Callable[..., Any], sample: Sample) -> Exception | None:
    """The error of a call, but for those of numbers above 64 bits, which are Python's own."""
    filled = sample.map(lambda array: tensor_of(torch, array))
    try:
        function(*filled.args, **filled.kwargs)
    except OverflowError:
        return None
    except ERRORS as error:
        return error
    return None


def forms(name: str) -> list:
    """The function of an op, and its form in place."""
    row = ROWS[name]
    in_place = [getattr(torch.Tensor, row["name"] + "_")] if row["inplace"] else []
    return [function_of(name), *in_place]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLED)
def test_wrong_arguments_raise_sentences(name: str) -> None:
    for sample in SAMPLES[name].all[:2]:
        for what, wrong in mutations(sample):
            for function in forms(name):
                error = raised(function, wrong)
                wrong_text = complaint(error) if error else None
                assert not wrong_text, f"{what}: the text {wrong_text}: {error}"
