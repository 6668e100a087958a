"""Programs whose annotations only type checkers can read, as Python 3.14 lets them be."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest

import rushlight as torch
from rushlight import export, fx, nn

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="such a program is refused where it is defined"
)

# Compiled apart, because this file has its annotations as strings.
PROGRAM = """
class Scale(nn.Module):
    def forward(self, x: Unknown, by: float = 2.0) -> list[Unknown]:
        return [x * by]

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Unknown, x: Unknown, by: Unknown = 2.0) -> Unknown:
        ctx.by = by
        return x * by

    @staticmethod
    def backward(ctx: Unknown, g: Unknown) -> tuple[Unknown, None]:
        return g * ctx.by, None

def inner(x: Unknown, *, by: int = 3) -> Unknown:
    return x * by
"""


@pytest.fixture
def program() -> dict[str, Any]:
    names: dict[str, Any] = {"torch": torch, "nn": nn, "__name__": "program"}
    exec(compile(PROGRAM, "program.py", "exec", dont_inherit=True), names)
    return names


def test_a_module_shows_its_parameters(program: dict[str, Any]) -> None:
    assert list(inspect.signature(program["Scale"]()).parameters) == ["x", "by"]


def test_a_module_is_recorded(program: dict[str, Any]) -> None:
    x = torch.ones(2)
    graph = fx.symbolic_trace(program["Scale"](), concrete_args={"by": 4.0})
    assert graph(x, 4.0)[0].tolist() == [4, 4]
    exported = export.export(program["Scale"](), (x,))
    assert exported.module()(x)[0].tolist() == [2, 2]


def test_what_can_be_read_of_annotations_is(program: dict[str, Any]) -> None:
    types = {node.target: node.type for node in fx.symbolic_trace(program["inner"]).graph.nodes}
    assert types["x"] is None and types["by"] is int and types["output"] is None


def test_a_function_of_the_program_fills_in_its_defaults(program: dict[str, Any]) -> None:
    x = torch.ones(2, requires_grad=True)
    program["Double"].apply(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]


def test_operands_have_the_names_of_numpy_too() -> None:
    x, y = torch.ones(2), torch.full((2,), 2.0)
    assert torch.equal(torch.add(x1=x, x2=y), x + y)
    assert torch.equal(torch.exp(x=x), torch.exp(a=x))
