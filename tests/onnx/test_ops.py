"""torch.onnx.export against onnxruntime: what each converter makes of its op."""

from typing import Any

import pytest
from onnx_programs import PROGRAMS

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.utils._pytree import tree_leaves

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


class Calls(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


def compare(program: Any, module: nn.Module, args: tuple[Any, ...]) -> None:
    """What the model returns is what the module returns, in shape, dtype and value."""
    with torch.no_grad():
        expected = [x for x in tree_leaves(module(*args)) if isinstance(x, Tensor)]
    results = program(*args)
    assert len(results) == len(expected)
    for place, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        torch.testing.assert_close(
            result, wanted, rtol=1e-4, atol=1e-5, equal_nan=True, msg=lambda m, i=place: f"{i}: {m}"
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_model_gives_the_results_of_the_op(name: str) -> None:
    function, args = PROGRAMS[name]
    module = Calls(function)
    compare(torch.onnx.export(module, args), module, args)


@pytest.mark.parametrize("folds", [True, False])
@pytest.mark.parametrize("opset", [18, 20, 23])
def test_versions_and_folding_leave_results_the_same(opset: int, folds: bool) -> None:
    for name in (
        "views",
        "sum",
        "interpolate",
        "made",
        "filled",
        "grid_sample",
        "attention",
        "pad",
    ):
        function, args = PROGRAMS[name]
        module = Calls(function)
        options: Any = {"opset_version": opset, "do_constant_folding": folds}
        compare(torch.onnx.export(module, args, **options), module, args)
