"""The docstring of every op says what it does, and its examples run."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import rushlight as torch

ROWS = [row for row in torch._C._op_table() if not row["alias_of"]]
WITH_EXAMPLE = [row for row in ROWS if ">>>" in row["doc"]]


def label(row: dict[str, Any]) -> str:
    return row["name"] + (f".{row['overload']}" if row["overload"] else "")


def test_every_op_has_a_docstring() -> None:
    documented = {row["name"] for row in ROWS if row["doc"].strip()}
    assert [label(row) for row in ROWS if row["name"] not in documented] == []


def test_methods_have_the_docstrings_of_ops() -> None:
    assert torch.Tensor.add.__doc__ == torch.add.__doc__
    assert torch.ones(2).add.__doc__ == torch.add.__doc__


@pytest.mark.parametrize("row", WITH_EXAMPLE, ids=label)
def test_examples_print_what_they_say(row: dict[str, Any]) -> None:
    example = doctest.DocTestParser().get_doctest(
        row["doc"], {"torch": torch}, label(row), row["file"], row["line"]
    )
    output: list[str] = []
    doctest.DocTestRunner().run(example, out=output.append)
    assert output == []
