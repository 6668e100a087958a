"""torch.jit.trace: a module that is the recording."""

import copy
import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor, jit, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.out = nn.Linear(4 * 36, 10)

    def forward(self, x: Tensor) -> Tensor:
        assert jit.is_tracing() in (True, False)
        return self.out(torch.relu(self.conv(x)).view(x.size(0), -1))


def test_traced_module_runs_for_other_batches_and_through_files(tmp_path: Path) -> None:
    net: Any = Net().eval()
    traced = jit.trace(net, torch.rand(1, 3, 8, 8))
    assert isinstance(traced, jit.ScriptModule) and not isinstance(net, jit.ScriptModule)
    assert "conv2d" in traced.code and len(traced.graph.nodes) > 5
    x = torch.rand(5, 3, 8, 8)
    torch.testing.assert_close(traced(x), net(x))
    torch.optim.SGD(traced.parameters(), 0.1).zero_grad()
    with torch.no_grad():
        net.out.bias += 1  # shared
    jit.save(traced, tmp_path / "net.pt", _extra_files={"a": b"b"})
    extra: dict[str, Any] = {"a": None}
    loaded = jit.load(tmp_path / "net.pt", "cpu", extra)
    torch.testing.assert_close(loaded(x), net(x))
    assert not loaded.training and extra == {"a": b"b"}
    again = io.BytesIO()
    loaded.save(again)
    again.seek(0)
    torch.testing.assert_close(jit.load(again)(x), net(x))
    torch.testing.assert_close(jit.load(io.BytesIO(loaded.save_to_buffer()))(x), net(x))
    assert loaded.original_name == "Net"
    for location in ({"cpu": "cpu"}, lambda storage, _: storage):
        with pytest.raises(ValueError, match="map_location should be"):
            jit.load(tmp_path / "net.pt", location)
    with pytest.raises(RuntimeError, match="was not recorded"):
        jit.save(net, tmp_path / "plain.pt")


def test_functions_are_traced_with_what_they_return() -> None:
    def both(a: Tensor, b: dict[str, Tensor]) -> Any:
        return a + b["x"], {"sum": a.sum()}

    traced = jit.trace(both, (torch.ones(2), {"x": torch.ones(2)}))
    a, b = torch.rand(2), {"x": torch.rand(2)}
    torch.testing.assert_close(traced(a, b), both(a, b))
    named = jit.trace(both, example_kwarg_inputs={"a": a, "b": b})
    torch.testing.assert_close(named(b=b, a=a), both(a, b))
    assert not jit.is_tracing()
    added = jit.trace(torch.add, (torch.ones(2), torch.ones(2)))  # has no signature
    torch.testing.assert_close(added(a, b["x"]), a + b["x"])


def test_what_depends_on_a_size_keeps_that_of_the_example() -> None:
    traced = jit.trace(lambda x: x / float(x.shape[0]), torch.ones(2))
    torch.testing.assert_close(traced(torch.ones(4)), torch.full((4,), 0.5))


def test_programs_for_one_size_are_traced_at_that_size() -> None:
    def one(x: Tensor) -> Tensor:
        assert x.shape[0] == 1
        return x.view(3)

    torch.testing.assert_close(jit.trace(one, torch.ones(1, 3))(torch.zeros(1, 3)), torch.zeros(3))


def test_reads_and_random_results_warn() -> None:
    with pytest.warns(jit.TracerWarning, match="reads elements") as caught:
        jit.trace(lambda x: x if x.sum() > 0 else -x, torch.ones(2))
    assert caught[0].filename == __file__
    with pytest.warns(jit.TracerWarning, match="does not give the results"):
        jit.trace(nn.Dropout(), torch.ones(100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit.trace(nn.Dropout(), torch.ones(100), check_trace=False)
        jit.trace(nn.Dropout().eval(), torch.ones(100), check_inputs=[torch.rand(100)])


def test_trace_module_has_forward_only() -> None:
    net = nn.Linear(2, 1)
    assert jit.trace_module(net, {"forward": torch.ones(1, 2)})(torch.ones(3, 2)).shape == (3, 1)
    with pytest.raises(NotImplementedError, match="encode"):
        jit.trace_module(net, {"encode": torch.ones(1, 2)})


def test_trace_module_compares_on_more_examples() -> None:
    net = nn.Linear(2, 1)
    examples = [{"forward": torch.ones(rows, 2)} for rows in (1, 3)]
    assert jit.trace_module(net, examples[0], check_inputs=examples)(torch.ones(3, 2)).shape == (
        3,
        1,
    )
    with pytest.raises(NotImplementedError, match="encode"):
        jit.trace_module(net, examples[0], check_inputs=[{"encode": torch.ones(1, 2)}])


def test_scripted_modules_run_their_program_and_are_saved_as_it_ran(tmp_path: Path) -> None:
    net: Any = Net().eval()
    scripted: Any = jit.script(net)
    assert isinstance(scripted, Net) and isinstance(scripted, jit.ScriptModule)
    assert jit.script(scripted) is scripted and not isinstance(net, jit.ScriptModule)
    with pytest.raises(RuntimeError, match="Net was not called yet"):
        scripted.save(tmp_path / "net.pt")
    x = torch.rand(5, 3, 8, 8)
    torch.testing.assert_close(scripted(x[:2]), net(x[:2]))
    assert "conv2d" in scripted.code and scripted.original_name == "Net"
    with torch.no_grad():
        net.out.bias += 1  # shared
    for made in (scripted, copy.deepcopy(scripted), pickle.loads(pickle.dumps(scripted))):
        made.save(tmp_path / "net.pt")
        torch.testing.assert_close(jit.load(tmp_path / "net.pt")(x), net(x))
    scripted.train()
    assert (
        scripted.training
        and not net.training
        and list(scripted.state_dict()) == list(net.state_dict())
    )
    jit.save(jit.freeze(scripted), tmp_path / "net.pt")
    assert jit.load(tmp_path / "net.pt").training


def test_scripted_modules_that_read_elements_run_but_are_not_saved(tmp_path: Path) -> None:
    class Signed(nn.Module):
        def forward(self, x: Tensor, *, scale: float = 1.0) -> Tensor:
            return x * scale if x.sum() > 0 else -x

    scripted: Any = jit.script(Signed())
    assert scripted(-torch.ones(2)).tolist() == [1, 1]
    assert scripted(torch.ones(2), scale=2.0).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="reads elements"):
        jit.save(scripted, tmp_path / "signed.pt")


def test_warnings_of_the_library_itself_can_be_hidden() -> None:
    def warn(module: str) -> None:
        warnings.warn_explicit("text", jit.TracerWarning, "file", 1, module)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jit.TracerWarning.ignore_lib_warnings()
        warn("rushlight.nn.functional")
        assert not caught
        warn("program")
        warn("rushlight.jit._trace")
    assert len(caught) == 2
