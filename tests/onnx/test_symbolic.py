"""Symbolic functions of programs: ONNX nodes for operators of their own, and other ones for ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.onnx import OnnxExporterError
from rushlight.onnx.errors import UnsupportedOperatorError
from rushlight.onnx.symbolic_helper import parse_args


@torch.library.custom_op("symbolic::scaled_sum", mutates_args=())
def scaled_sum(
    x: torch.Tensor, y: torch.Tensor, factor: float = 2.0, dims: list[int] | None = None
) -> torch.Tensor:
    return (x + y * factor).sum(dims or [0])


@scaled_sum.register_fake
def _(x: Any, y: Any, factor: float = 2.0, dims: Any = None) -> Any:
    return x.new_empty(x.sum(dims or [0]).shape)


@torch.library.custom_op("symbolic::halves", mutates_args=())
def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x[:1].clone(), (x[1:] > 0).clone()


@halves.register_fake
def _(x: Any) -> Any:
    return x[:1].clone(), x[1:] > 0


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.ops.symbolic.scaled_sum(x.relu(), x, dims=[1])


class Halves(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        first, second = torch.ops.symbolic.halves(x)
        return first * 2, second


@parse_args("v", "v", "f", "is")
def symbolic(g: Any, x: Any, y: Any, factor: Any, dims: Any) -> Any:
    assert g.opset >= 18 and x.type().sizes() == [2, 3] and x.type().dtype is torch.float32
    product = g.op("Mul", y, g.op("Constant", value_t=torch.tensor(factor)))
    total = g.op("Add", x, product).setType(x.type())
    return g.op("ReduceSum", total, dims, keepdims_i=0)


@pytest.fixture
def registered() -> Iterator[Any]:
    names: list[tuple[str, int]] = []

    def register(name: str, function: Any, version: int = 18) -> None:
        names.append((name, version))
        torch.onnx.register_custom_op_symbolic(name, function, version)

    yield register
    for name, version in names:
        torch.onnx.unregister_custom_op_symbolic(name, version)


def exported(net: nn.Module, **options: Any) -> Any:
    pytest.importorskip("onnx.helper")  # a folder of tests is called onnx, too
    return torch.onnx.export(net, (torch.tensor([[1.0, -2, 3], [4, 5, -6]]),), **options)


def kinds(program: Any) -> list[str]:
    return [node.op_type for node in program.model_proto.graph.node]


def test_operators_of_programs_become_nodes(registered: Any) -> None:
    with pytest.raises(UnsupportedOperatorError, match="scaled_sum"):
        exported(Net())
    registered("symbolic::scaled_sum", symbolic)
    program, x = exported(Net()), torch.randn(2, 3)
    assert kinds(program)[:5] == ["Relu", "Constant", "Mul", "Add", "ReduceSum"]
    pytest.importorskip("onnxruntime")
    (result,) = program(x)
    torch.testing.assert_close(result, Net()(x))


def test_nodes_may_be_of_another_domain(registered: Any) -> None:
    def several(g: Any, x: Any) -> Any:
        return g.op("mine::Halves", x, None, outputs=2, at_i=[0, 1], mode_s="fast", share_f=0.5)

    registered("symbolic::halves", several)
    model = exported(Halves(), opset_version=20).model_proto
    assert {(found.domain, found.version) for found in model.opset_import} == {
        ("", 20),
        ("mine", 1),
    }
    node = model.graph.node[0]
    assert (node.op_type, node.domain, list(node.input)) == ("Halves", "mine", ["x"])
    found = {a.name: a.ints[:] or a.s or a.f for a in node.attribute}
    assert found == {"at": [0, 1], "mode": b"fast", "share": 0.5}
    types = [value.type.tensor_type.elem_type for value in model.graph.output]
    assert types == [1, 9]  # FLOAT and BOOL


def test_ops_get_other_nodes_from_a_version_on(registered: Any) -> None:
    def clipped(g: Any, x: Any) -> Any:
        return g.op("Max", x, 0.0)

    registered("aten::relu", clipped, 20)
    net = nn.Sequential(nn.ReLU())
    assert kinds(exported(net))[0] == "Relu"
    program = exported(net, opset_version=21)
    assert kinds(program)[0] == "Max"
    torch.onnx.register_custom_op_symbolic("::relu", lambda g, x: g.op("Neg", x), 21)
    assert kinds(exported(net, opset_version=21))[0] == "Neg"
    torch.onnx.unregister_custom_op_symbolic("::relu", 21)
    torch.onnx.unregister_custom_op_symbolic("::none", 21)


def test_arguments_by_name_come_in_order(registered: Any) -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            return nn.functional.leaky_relu(
                x.clamp(max=0.5).mean(keepdim=True, axis=1), inplace=True
            )

    told: list[Any] = []

    def same(g: Any, x: Any, *more: Any) -> Any:
        told.append(more)
        return g.op("Identity", x)

    for name in "aten::clamp", "aten::mean", "aten::leaky_relu":
        registered(name, same)
    exported(Net())
    assert told == [(None, 0.5), (1, True), ()]


def test_mistakes_are_told(registered: Any) -> None:
    with pytest.raises(OnnxExporterError, match="must match the format domain::name"):
        torch.onnx.register_custom_op_symbolic("no name", symbolic, 18)
    registered("aten::relu", lambda g, x: g.op("Relu", x, alpha=3))
    with pytest.raises(ValueError, match="alpha does not say what it is"):
        exported(nn.ReLU())
    registered("aten::relu", parse_args("i")(lambda g, x: x))
    with pytest.raises(OnnxExporterError, match="calls 'i' depends on the inputs"):
        exported(nn.ReLU())


def test_arguments_are_parsed() -> None:
    @parse_args("i", "b", "s", "fs", "t", "none", "is")
    def same(g: Any, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    tensor = torch.ones(1)
    args, kwargs = same(None, 2.0, 1, "x", (1, 2), tensor, None, None, more=1)
    assert args == (2, True, "x", [1.0, 2.0], tensor, None, None) and kwargs == {"more": 1}
    assert type(args[0]) is int and args[1] is True
    with pytest.raises(OnnxExporterError, match="describes 7 arguments, but there are 8"):
        same(None, *range(8))
    with pytest.raises(OnnxExporterError, match="3 is not what 't' says"):
        same(None, 1, True, "x", (), 3)
