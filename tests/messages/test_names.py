"""Errors begin with the name of the op that was called, whatever ops it is made of."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from ops.matrix import ROWS, SAMPLED, SAMPLES, function_of

import rushlight as torch

F = torch.nn.functional

# Each makes one tensor of a good call wrong.
CHANGES: list[Callable[[Any], Any]] = [
    lambda t: t.to("meta"),
    lambda t: torch.ones(7, dtype=t.dtype),
    lambda t: torch.ones((), dtype=t.dtype),
    lambda t: t.to(torch.complex64),
    lambda t: t.to(torch.bool),
]
# By what else an error may begin: the op's name in PyTorch's messages, and where Python calls it.
OTHERS = {
    "nn.functional._interpolate": {"interpolate"},
    "split.sizes": {"split_with_sizes"},
}


def names_of(name: str) -> set[str]:
    plain = ROWS[name]["name"]
    return {plain, plain + "_", plain.lstrip("_"), *OTHERS.get(name, ())}


@pytest.mark.parametrize("name", SAMPLED)
def test_errors_begin_with_the_op_that_was_called(name: str) -> None:
    function = function_of(name)
    wrong = set()
    for sample in SAMPLES[name].all[:2]:
        call = sample.map(lambda array: torch.tensor(array.copy()))
        for i, value in enumerate(call.args):
            if not isinstance(value, torch.Tensor):
                continue
            for change in CHANGES:
                args = [*call.args[:i], change(value), *call.args[i + 1 :]]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        function(*args, **call.kwargs)
                    except (RuntimeError, ValueError, TypeError, IndexError) as error:
                        text = str(error)
                        named = re.match(r"(\w+)(\(\))?: ", text)
                        if named is None or named[1] not in names_of(name):
                            wrong.add(text)
    assert not wrong


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: torch.bmm(torch.ones(1, 2, 2), torch.ones(1, 2, 2).long()),
            "bmm: mat1 and mat2 must have the same dtype",
        ),
        (
            lambda: F.multilabel_soft_margin_loss(torch.ones(2), torch.ones(2, device="meta")),
            "multilabel_soft_margin_loss: Expected all tensors",
        ),
        (
            lambda: torch.zeros(2).scatter_add(0, torch.tensor([0]), torch.ones(1).long()),
            "scatter_add: Expected self.dtype",
        ),
        (lambda: torch.linalg.inv(torch.ones(())), "inv: The input tensor A"),
    ],
)
def test_ops_made_of_ops_are_named_by_themselves(call: Callable[[], object], text: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value).startswith(text)
