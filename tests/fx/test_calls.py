"""How calls of operators and of layers are recorded, and arguments built of several inputs."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.experimental.proxy_tensor import make_fx


def test_operators_are_recorded_as_themselves() -> None:
    aten = torch.ops.aten

    def program(x: Any) -> Any:
        normal = aten.native_layer_norm.default(aten.mul(x, 2), [3], None, None, 1e-5)
        return aten.slice.Tensor(normal[0], 0, 1, 2)

    traced = fx.symbolic_trace(program)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets[0] is aten.mul and targets[1] is aten.native_layer_norm.default
    assert targets[3] is aten.slice.Tensor
    x = torch.randn(2, 3)
    for network in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert network.code == traced.code and torch.equal(network(x), program(x))


def test_classes_are_told_of_operators_as_themselves() -> None:
    heard: list[Any] = []

    class Hearing(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Hearing)
    assert torch.ops.aten.add.Tensor(x, 1).tolist() == [2, 2]
    assert torch.ops.aten.add(x, 1).tolist() == [2, 2]
    assert heard[0] is torch.ops.aten.add.Tensor and torch.ops.aten.add in heard
    quantized = torch.quantize_per_tensor(torch.tensor([-1.0, 1.0]), 0.1, 0, torch.qint8)
    assert torch.ops.aten.relu.default(quantized).dequantize().tolist()[0] == 0


def test_what_a_traced_function_makes_is_fresh_in_each_run() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor(3).add_(1)

    traced, x = make_fx(program)(torch.zeros(2)), torch.zeros(2)
    assert [traced(x).tolist() for _ in range(2)] == [[4, 4], [4, 4]]


def test_arguments_are_taken_apart_as_concrete_args_are_built() -> None:
    def program(x: Any, y: Any, flag: bool) -> Any:
        if flag:
            return {"sum": x["a"] + x["b"][0], "y": y}
        return x["a"] * x["b"][1]

    shape = {"a": fx.PH, "b": [fx.PH, 2]}
    traced = fx.symbolic_trace(program, concrete_args={"x": shape, "flag": True})
    names = [node.name for node in traced.graph.find_nodes(op="placeholder")]
    assert names == ["x_1", "x_2", "x_3", "y", "flag_1"]
    x, y = {"a": torch.ones(2), "b": [torch.ones(2), 2]}, torch.zeros(1)
    for network in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert network(x, y, True)["sum"].tolist() == [2, 2]
    assert network(x, flag=True, y=y)["y"] is y
    with pytest.raises(AssertionError, match="x has been specialized to have value 2"):
        traced({"a": x["a"], "b": [x["a"], 3]}, y, True)
    with pytest.raises(ValueError, match="those that were traced"):
        traced({"a": x["a"]}, y, True)
    with pytest.raises(NotImplementedError, match=r"\*rest"):
        fx.symbolic_trace(lambda x, *rest: x["a"], concrete_args={"x": {"a": fx.PH}})


def test_a_copy_of_a_module_that_its_notes_lead_to_leads_to_itself() -> None:
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    traced.meta["module"] = traced
    copied = copy.deepcopy(traced)
    assert copied.meta["module"] is copied and copied is not traced
    assert copied.get_submodule("0") is not traced.get_submodule("0")


def test_relu_says_whether_it_writes_by_name() -> None:
    class Open(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return False

    (relu,) = (n for n in Open().trace(nn.ReLU()).nodes if n.op == "call_function")
    assert relu.target is nn.functional.relu and relu.kwargs == {"inplace": False}
