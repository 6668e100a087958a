"""The arguments of calls by name: of ops, functions written in Python, and modules."""

from __future__ import annotations

from typing import Any

import pytest
from grouping import each

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.operator_schemas import (
    get_signature_for_torch_op,
    normalize_function,
    normalize_module,
    type_matches,
)
from rushlight.nn import functional as F

TENSOR = torch.Tensor
MODULES = nn.Sequential(nn.Linear(1, 2), nn.LSTM(1, 2), nn.Sequential())


def plus(x: Any, y: Any = 2) -> Any:
    return x + y


@each(
    "target, args, kwargs, types, expected",
    [
        (F.relu, ("x",), {}, None, {"input": "x", "inplace": False}),
        (torch.flatten, ("x", 1), {}, None, {"input": "x", "start_dim": 1, "end_dim": -1}),
        (torch.cat, (["x", "y"],), {"dim": 1}, None, {"tensors": ["x", "y"], "dim": 1}),
        (F.linear, ("x", "w"), {}, None, {"input": "x", "weight": "w", "bias": None}),
        (torch.add, ("x", "y"), {}, (TENSOR, TENSOR), {"input": "x", "other": "y", "alpha": 1}),
        (torch.ops.aten.add.Tensor, ("x", "y"), {}, None, {"input": "x", "other": "y", "alpha": 1}),
        (torch.std, ("x", True), {}, (TENSOR, bool), {"input": "x", "unbiased": True}),
        (F.elu, (), {"input": "x"}, None, {"input": "x", "alpha": 1.0, "inplace": False}),
        (plus, ("x",), {}, None, {"x": "x", "y": 2}),
        (plus, (), {"y": 1, "x": 3}, None, {"x": 3, "y": 1}),
    ],
)  # fmt: skip
def test_arguments_get_names_and_defaults(
    target: Any, args: Any, kwargs: Any, types: Any, expected: dict[str, Any]
) -> None:
    named = normalize_function(target, args, kwargs, types, None, True)
    assert named == ((), expected)
    mixed = normalize_function(target, args, kwargs, types)
    assert mixed is not None and mixed.args == args
    names = list(expected)[: len(args)]
    assert mixed.kwargs == {name: v for name, v in expected.items() if name not in names}


@each("target", [len, torch.relu, lambda *x: x, lambda x, /: x])
def test_calls_that_are_not_known_have_no_form(target: Any) -> None:
    assert normalize_function(target, (1, 2, 3)[: 3 if target is torch.relu else 1], {}) is None


def test_types_decide_between_the_forms_of_an_op() -> None:
    with pytest.raises(RuntimeError, match="2 forms of conv2d take these arguments"):
        normalize_function(F.conv2d, ("x", "w"), {})
    args = ("x", "w", None, 1, "same")
    found = normalize_function(F.conv2d, args, {}, (TENSOR, TENSOR, type(None), int, str))
    assert found is not None and found.kwargs == {"dilation": 1, "groups": 1}


@each(
    "parameter, argument, expected",
    [
        (TENSOR, nn.Parameter, True),
        (TENSOR | None, TENSOR, True),
        (list[int], int, True),
        (list[int], tuple[int, ...], True),
        (list[TENSOR], list[TENSOR], True),
        (list[TENSOR], int, False),
        (int, float, False),
    ],
)
def test_types_match(parameter: Any, argument: Any, expected: bool) -> None:
    assert type_matches(parameter, argument) is expected


def test_ops_have_a_signature_for_each_form() -> None:
    assert get_signature_for_torch_op(len) is None
    forms = get_signature_for_torch_op(torch.linalg.norm)
    assert forms and all("ord" in form.parameters for form in forms)


def test_modules_have_the_arguments_of_their_forward() -> None:
    assert normalize_module(MODULES, "0", (3,)) == ((3,), {})
    assert normalize_module(MODULES, "1", (3,), {}, True) == ((), {"input": 3, "hx": None})
    assert normalize_module(nn.Sequential(type("Own", (nn.Linear,), {})(1, 1)), "0", (3,)) is None
    with pytest.raises(RuntimeError, match="no submodule '7'"):
        normalize_module(MODULES, "7", (3,))


def test_nodes_normalize_their_arguments() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            return torch.flatten(self.linear(x), 1).sum(0)

    traced = fx.symbolic_trace(Net())
    x, linear, flatten, added, _ = traced.graph.nodes
    named = linear.normalized_arguments(traced, normalize_to_only_use_kwargs=True)
    assert named == ((), {"input": x})
    assert flatten.normalized_arguments(traced) == ((linear, 1), {"end_dim": -1})
    assert added.normalized_arguments(traced) is None
