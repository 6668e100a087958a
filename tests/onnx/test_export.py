"""torch.onnx.export: names, files, options and mistakes."""

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.onnx import OnnxExporterError
from rushlight.onnx.errors import UnsupportedOperatorError

onnx: Any = pytest.importorskip("onnx")
onnxruntime: Any = pytest.importorskip("onnxruntime")


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 300), nn.Dropout(), nn.ReLU(), nn.Linear(300, 2))


class Calls(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


def run(path: Path, *args: Tensor) -> Tensor:
    session = onnxruntime.InferenceSession(os.fspath(path))
    names = [value.name for value in session.get_inputs()]
    feeds = dict(zip(names, (x.numpy() for x in args), strict=True))
    return torch.from_numpy(session.run(None, feeds)[0])


@pytest.mark.parametrize("external", [True, False])
def test_files_run_elsewhere(tmp_path: Path, external: bool) -> None:
    net, path, x = network().train(), tmp_path / "net.onnx", torch.rand(5, 3)
    axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    for _ in range(2):  # a second time over the first
        torch.onnx.export(
            net, torch.ones(1, 3), path, input_names=["x"], output_names=["y"],
            dynamic_axes=axes, external_data=external,
        )  # fmt: skip
    assert net.training and all(m.training for m in net.modules())  # as it was
    assert (tmp_path / "net.onnx.data").exists() == external
    onnx.checker.check_model(os.fspath(path))
    torch.testing.assert_close(run(path, x), net.eval()(x).detach())
    names = {tensor.name for tensor in onnx.load(path, load_external_data=False).graph.initializer}
    assert {"0.weight", "3.bias"} <= names


def test_files_beside_the_program_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    x = torch.rand(5, 3)
    with contextlib.chdir(tmp_path):
        for path in (Path("net.onnx"), Path("inner", "net.onnx")):
            torch.onnx.export(network(), x, path)
            assert run(path, x).shape == (5, 2)
        with pytest.raises(FileNotFoundError):
            torch.onnx.export(network(), x, Path("none", "net.onnx"))


def test_names_of_outputs_are_kept_whatever_steps_are_called() -> None:
    taken = [node.output[0] for node in torch.onnx.export(network(), torch.ones(1, 3))
             .model_proto.graph.node]  # fmt: skip
    for name in (taken[0], "0.weight"):
        program = torch.onnx.export(network(), torch.ones(1, 3), output_names=[name])
        assert [value.name for value in program.model_proto.graph.output] == [name]
        assert program(torch.ones(1, 3))[0].shape == (1, 2)


def test_dynamic_shapes_by_text() -> None:
    module = Calls(lambda x, y: x + y)
    shapes = {"args": ({0: "rows"}, {0: "rows"})}
    program = torch.onnx.export(module, (torch.ones(2), torch.ones(2)), dynamic_shapes=shapes)
    assert program(torch.ones(7), torch.ones(7))[0].tolist() == [2.0] * 7


def test_dynamic_sizes_by_list_and_for_several_inputs() -> None:
    module = Calls(lambda x, y: torch.cat([x, y]).sum(1))
    axes = {"a": [0], "b": {0: "rows"}}
    example = (torch.ones(2, 3), torch.ones(4, 3))
    program = torch.onnx.export(module, example, input_names=["a", "b"], dynamic_axes=axes)
    dims = [v.type.tensor_type.shape.dim[0].dim_param for v in program.model_proto.graph.input]
    assert dims == ["a_dim_0", "rows"]
    assert program(torch.ones(7, 3), torch.ones(1, 3))[0].shape == (8,)


def test_parameters_as_inputs(tmp_path: Path) -> None:
    net, x = nn.Linear(2, 1), torch.ones(1, 2)
    without = torch.onnx.export(net, x, export_params=False).model_proto.graph
    assert len(without.initializer) == 0 and len(without.input) == 3
    both = torch.onnx.export(net, x, keep_initializers_as_inputs=True).model_proto.graph
    assert len(both.initializer) == 2 and len(both.input) == 3
    plain = torch.onnx.export(net, x)
    plain.save(tmp_path / "n.onnx", keep_initializers_as_inputs=True)
    assert len(onnx.load(tmp_path / "n.onnx").graph.input) == 3
    assert len(plain.model_proto.graph.input) == 1
    assert repr(plain).startswith("ONNXProgram(inputs=['input']")


def test_what_depends_on_no_input_is_computed() -> None:
    module = Calls(lambda x: x + torch.arange(3).float().exp().flip(0))
    folded, plain = (
        torch.onnx.export(module, torch.ones(3), do_constant_folding=folds)
        for folds in (True, False)
    )
    assert [n.op_type for n in folded.model_proto.graph.node] == ["Add", "Identity"]
    assert len(plain.model_proto.graph.node) > 3
    torch.testing.assert_close(folded(torch.ones(3))[0], plain(torch.ones(3))[0])


def test_exported_and_traced_programs_are_converted() -> None:
    net, x = network().eval(), torch.rand(4, 3)
    exported = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("n")},))
    program = torch.onnx.export(exported)
    torch.testing.assert_close(program(x[:3])[0], net(x[:3]).detach())
    assert program.exported_program is exported
    traced = torch.onnx.export(torch.jit.trace(net, x), x)
    torch.testing.assert_close(traced(x)[0], net(x).detach())


def test_keyword_arguments() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Tensor, *, scale: Tensor, power: int = 1) -> Tensor:
            return x * scale**power

    x, scale = torch.rand(3), torch.rand(3)
    for args, kwargs in [
        ((x,), {"scale": scale, "power": 2}),
        ((x, {"scale": scale, "power": 2}), None),
    ]:
        program = torch.onnx.export(Scaled(), args, kwargs=kwargs)
        torch.testing.assert_close(program(x, scale=scale)[0], x * scale**2)


def test_the_program_may_ask_whether_it_is_exported() -> None:
    asked = []
    torch.onnx.export(
        Calls(lambda x: asked.append(torch.onnx.is_in_onnx_export()) or x + 1), torch.ones(1)
    )
    assert asked == [True] and not torch.onnx.is_in_onnx_export()


def test_modules_that_keep_state_are_refused() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            self.calls.add_(1)
            return x * self.calls

    with pytest.raises(UnsupportedOperatorError, match=r"add_ at .*writes to calls"):
        torch.onnx.export(Counts(), torch.ones(1))


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda x: x.erfinv(), "erfinv at .*test_export.py:.* it has no ONNX form"),
        (lambda x: torch.native_dropout(x, 0.5, False)[0], "native_dropout at .* no ONNX form"),
        (lambda x: x + torch.rand(2), "rand at .*random numbers"),
        (lambda x: torch.bernoulli(x), "bernoulli"),
        (lambda x: nn.functional.dropout(x, 0.5, True), "Call eval"),
        (lambda x: nn.functional.one_hot(x.long()), "num_classes"),
        (lambda x: torch.complex(x, x), "complex"),
    ],
)
def test_ops_without_a_form_are_named(function: Any, problem: str) -> None:
    with pytest.raises(UnsupportedOperatorError, match=problem):
        torch.onnx.export(Calls(function), torch.ones(2))


def test_mistakes() -> None:
    net, x = nn.Linear(2, 1), torch.ones(1, 2)
    for opset in (17, 24):
        with pytest.raises(OnnxExporterError, match=r"18 to 23"):
            torch.onnx.export(net, x, opset_version=opset)
    with pytest.raises(RuntimeError, match="reads elements"):
        torch.onnx.export(Calls(lambda x: x if x.sum() > 0 else -x), x)
    with pytest.raises(ValueError, match="depends on rows"):
        torch.onnx.export(
            Calls(lambda x: x * float(x.shape[0])),
            x,
            input_names=["x"],
            dynamic_axes={"x": {0: "rows"}},
        )
    with pytest.raises(TypeError, match="Give it a module"):
        torch.onnx.export(3, x)
    with pytest.raises(OnnxExporterError, match="opset_version is '18'"):
        torch.onnx.export(net, x, opset_version="18")
    with pytest.raises(OnnxExporterError, match=r"output_names are \['a', 'b'\]"):
        torch.onnx.export(net, x, output_names=["a", "b"])
    with pytest.raises(OnnxExporterError, match="some are the same"):
        torch.onnx.export(net, x, input_names=["a"], output_names=["a"])
    with pytest.raises(ValueError, match="dynamic_axes says 0 of input"):
        torch.onnx.export(net, x, dynamic_axes={"input": 0})
    with pytest.warns(UserWarning, match=r"names \['y'\].* inputs \['input'\]"):
        torch.onnx.export(net, x, dynamic_axes={"y": {0: "batch"}})
    with pytest.raises(RuntimeError, match="onnx.export: weight is on meta"):
        torch.onnx.export(net.to("meta"), x.to("meta"))
    assert isinstance(UnsupportedOperatorError("a", "b"), OnnxExporterError)


def test_sizes_that_depend_on_elements_are_left_open() -> None:
    program = torch.onnx.export(Calls(lambda x: x[x > 0]), torch.ones(3))
    (output,) = program.model_proto.graph.output
    assert output.type.tensor_type.shape.dim[0].dim_param
    assert program(torch.tensor([1.0, -1.0, 2.0]))[0].tolist() == [1.0, 2.0]


def test_verbose_prints_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    torch.onnx.export(nn.Linear(2, 1), torch.ones(1, 2), verbose=True)
    assert "Gemm" in capsys.readouterr().out


def test_files_of_exported_programs_are_converted_too() -> None:
    file, x = io.BytesIO(), torch.rand(2, 3)
    net = network().eval()
    torch.export.save(torch.export.export(net, (x,)), file)
    file.seek(0)
    program = torch.onnx.export(torch.export.load(file))
    torch.testing.assert_close(program(x)[0], net(x).detach())


def test_the_guide_runs_whole(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "deploying.md").read_text()
    blocks = re.findall(r"^```py(?:thon)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert any("onnx.export" in block for block in blocks)
    with contextlib.chdir(tmp_path):
        exec(compile("\n".join(blocks), "deploying.md", "exec"), {"__name__": "guide"})
