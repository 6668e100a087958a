"""torch.export, torch.jit and torch.onnx: names, signatures and what a program says of itself."""

import inspect
import warnings
from typing import Any

import pytest

import rushlight

torch: Any = pytest.importorskip("torch")

FUNCTIONS = [
    "export.export", "export.save", "export.load", "export.Dim", "export.dims", "jit.trace",
    "jit.trace_module", "jit.save", "jit.load", "onnx.export", "onnx.ONNXProgram.save",
]  # fmt: skip


def find(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


@pytest.mark.parametrize("path", FUNCTIONS)
def test_arguments_have_the_names_order_and_defaults_of_pytorch(path: str) -> None:
    ours, theirs = (inspect.signature(find(m, path)).parameters for m in (rushlight, torch))
    rest = {"args", "options"}  # the others, which come to nothing
    shared = [name for name in ours if name not in rest]
    assert shared == [name for name in theirs if name in shared]
    for name in shared:
        assert ours[name].default == theirs[name].default, name
    assert len(shared) == len(theirs) or rest & ours.keys()


def build(library: Any) -> Any:
    class Net(library.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = library.nn.Linear(3, 4)
            self.register_buffer("shift", library.ones(4))
            self.register_buffer("hidden", library.ones(1), persistent=False)

        def forward(self, x: Any, scale: Any) -> Any:
            out = self.body(x) + self.shift * self.hidden * scale
            return out, (out.sum(), x)

    net = Net()
    batch = library.export.Dim("batch", max=16)
    example = (library.ones(2, 3), library.ones(4))
    return library.export.export(net, example, dynamic_shapes={"x": {0: batch}, "scale": None})


@pytest.fixture(scope="module")
def programs() -> tuple[Any, Any]:
    return build(rushlight), build(torch)


def test_signatures_say_the_same(programs: tuple[Any, Any]) -> None:
    ours, theirs = (program.graph_signature for program in programs)
    fields = "parameters buffers non_persistent_buffers inputs_to_parameters inputs_to_buffers"
    for field in (*fields.split(), "user_inputs", "lifted_tensor_constants"):
        assert getattr(ours, field) == type(getattr(ours, field))(getattr(theirs, field)), field
    assert len(ours.user_outputs) == len(theirs.user_outputs)
    kinds = [[spec.kind.name for spec in s.input_specs] for s in (ours, theirs)]
    assert kinds[0] == kinds[1]


def test_programs_have_the_same_parts(programs: tuple[Any, Any]) -> None:
    ours, theirs = programs
    assert list(ours.state_dict) == list(theirs.state_dict)
    assert list(ours.constants) == list(theirs.constants)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_buffers()] == [n for n, _ in theirs.named_buffers()]
    assert len(list(ours.range_constraints)) == len(theirs.range_constraints) == 1


@pytest.mark.parametrize(
    "shape", [(5, 3), (16, 3), (17, 3), (2, 4), (2, 3, 1)], ids=lambda shape: str(shape)
)
def test_modules_refuse_the_same_inputs(programs: tuple[Any, Any], shape: tuple[int, ...]) -> None:
    failures = []
    for program, library in zip(programs, (rushlight, torch), strict=True):
        try:
            program.module()(library.ones(shape), library.ones(4))
            failures.append(None)
        except Exception as error:
            failures.append(type(error).__name__)
    assert (failures[0] is None) == (failures[1] is None)


def test_errors_have_the_classes_of_pytorch(programs: tuple[Any, Any]) -> None:
    for program, library in zip(programs, (rushlight, torch), strict=True):
        with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
            program(library.ones(2, 3))
        with pytest.raises(ValueError, match="Expected `mod` to be an instance of"):
            library.export.export(lambda x: x, (library.ones(2),))
        with pytest.raises(RuntimeError, match="Expecting `args` to be a tuple"):
            library.export.export(library.nn.ReLU(), library.ones(2))
        with pytest.raises(AssertionError, match="inconsistent"):
            library.export.Dim("a", min=3, max=2)


def test_traces_generalize_to_other_batches_as_pytorch_does() -> None:
    for library in (rushlight, torch):

        def rows(x: Any) -> Any:
            return x.view(x.size(0), -1).sum(1) + x.shape[0]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a trace is deprecated
            traced = library.jit.trace(rows, library.ones(2, 3))
        assert traced(library.ones(5, 3)).tolist() == [8.0] * 5


def test_archives_of_pytorch_are_refused_with_a_way_out(tmp_path: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(torch.nn.Linear(2, 1), torch.ones(1, 2)).save(tmp_path / "script")
    program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),))
    torch.export.save(program, tmp_path / "program")
    torch.save(torch.nn.Linear(2, 1).state_dict(), tmp_path / "weights")
    refused = {"script": "TorchScript archive", "program": "torch.export", "weights": "torch.load"}
    for name, words in refused.items():
        with pytest.raises(RuntimeError, match=words):
            rushlight.jit.load(tmp_path / name)
