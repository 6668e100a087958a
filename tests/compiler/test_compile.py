"""torch.compile from outside: modules, back ends that get graphs, stances, and bad arguments."""

from __future__ import annotations

import copy
import inspect
import pickle
import random
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import Tensor, nn
from rushlight._dynamo.testing import CompileCounter


def gated(x: Tensor, y: Tensor) -> Tensor:
    """Multiplies by a gate."""
    return x * torch.sigmoid(y) + 1


def test_functions_keep_their_names() -> None:
    compiled = torch.compile(gated)
    assert compiled.__name__ == "gated" and compiled.__doc__ == "Multiplies by a gate."
    assert compiled.__wrapped__ is gated
    assert str(inspect.signature(compiled)) == str(inspect.signature(gated))
    decorated = torch.compile(mode="max-autotune", fullgraph=True)(gated)
    x = torch.randn(50_000)
    assert torch.equal(decorated(x, y=x), gated(x, x))
    assert torch.compile(gated, disable=True) is gated


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 64)
        self.norm = nn.BatchNorm1d(64)
        self.calls = 0

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        self.calls += 1
        h = self.layer(x)
        return self.norm(0.5 * h * (1 + torch.tanh(h * scale)))

    def helper(self) -> int:
        return 7


def test_modules_come_back_in_another() -> None:
    net = Net()
    compiled = torch.compile(net)
    assert type(compiled).__name__ == "OptimizedModule" and compiled._orig_mod is net
    assert list(compiled.state_dict())[:2] == ["_orig_mod.layer.weight", "_orig_mod.layer.bias"]
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Net(")
    assert compiled.helper() == 7 and compiled.layer is net.layer and "helper" in dir(compiled)
    compiled.extra = 3
    assert net.extra == 3 and not hasattr(type(compiled), "extra")
    del compiled.extra
    assert not hasattr(net, "extra")
    net.eval()
    assert not compiled.training
    compiled.train()
    assert net.training and net.norm.training
    with pytest.raises(AttributeError, match="missing"):
        _ = compiled.missing
    assert torch.compile(compiled)._orig_mod is net and compiled
    layers = torch.compile(nn.ModuleList([net]))
    assert len(layers) == 1 and not torch.compile(nn.ModuleList())
    with pytest.raises(TypeError, match="object of type 'Net' has no len"):
        len(compiled)

    x = torch.randn(512, 64)
    expected = copy.deepcopy(net)(x, scale=0.3)
    assert torch.equal(compiled(x, scale=0.3), expected) and net.calls == 1
    seen = []
    net.register_forward_hook(lambda *_: seen.append("inner"))
    compiled.register_forward_hook(lambda *_: seen.append("outer"))
    compiled(x)
    assert seen == ["inner", "outer"]


def test_modules_are_copied_and_pickled() -> None:
    compiled = torch.compile(Net()).eval()
    x = torch.randn(512, 64)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert type(other) is type(compiled) and other._orig_mod is not compiled._orig_mod
        assert torch.equal(other(x), compiled(x))
        other.layer.weight.data.zero_()
        assert not torch.equal(other(x), compiled(x))


def test_modules_compile_in_place() -> None:
    net, x = Net().eval(), torch.randn(512, 64)
    expected = net(x)
    signature = inspect.signature(net.forward)
    net.compile(mode="reduce-overhead")
    assert torch.equal(net(x), expected) and inspect.signature(net.forward) == signature
    assert next(iter(net.state_dict())) == "layer.weight"
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        other.layer.weight.data.zero_()
        assert torch.equal(net(x), expected) and not torch.equal(other(x), expected)
    counter = CompileCounter()
    layer = nn.Linear(64, 64)
    expected = layer(x)
    layer.compile(backend=counter)
    assert torch.equal(layer(x), expected) and counter.frame_count == 1


def test_back_ends_get_graphs() -> None:
    graphs = []

    def back_end(module: torch.fx.GraphModule, example_inputs: list[Tensor]):
        graphs.append(([node.name for node in module.graph.nodes], len(example_inputs)))
        return module.forward

    @torch.compile(backend=back_end)
    def function(x: Tensor, factors: dict[str, Tensor], power: int = 2) -> dict[str, Tensor]:
        return {"sum": x + factors["a"], "power": x**power}

    x, a = torch.ones(3, requires_grad=True), torch.full((3,), 2.0)
    result = function(x, {"a": a})
    assert result["sum"].tolist() == [3, 3, 3] and result["power"].tolist() == [1, 1, 1]
    result["power"].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]
    assert graphs == [(["x", "factors_0", "add", "pow_1", "output"], 2)]
    function(x, {"a": a * 2})
    assert len(graphs) == 1
    function(x, {"a": a}, power=3)
    function(torch.ones(4), {"a": torch.ones(4)})
    assert len(graphs) == 3


def test_graphs_are_for_arguments_like_those_of_their_recording() -> None:
    counter = CompileCounter()
    scaled = torch.compile(lambda x, factor: x * factor, backend=counter)
    x = torch.ones(3, dtype=torch.int64)
    results = [scaled(x, factor).dtype for factor in (1, True, 1.0, 1)]
    assert results == [torch.int64, torch.int64, torch.float32, torch.int64]
    divided = torch.compile(lambda x, divisor: x / divisor, backend=counter)
    y = torch.ones(2)
    assert divided(y, 0.0).tolist() == [torch.inf] * 2
    assert divided(y, -0.0).tolist() == [-torch.inf] * 2

    counter.clear()
    flat = torch.compile(
        lambda x: x.view(-1) if x.is_contiguous() else x.reshape(-1), backend=counter
    )
    z = torch.arange(6.0).reshape(2, 3)
    for image in (z, z.t().contiguous().t(), z):
        assert flat(image).tolist() == [0, 1, 2, 3, 4, 5]
    with_list = torch.compile(lambda x, names: x + len(names), backend=counter)
    names = {"a", "b"}
    assert with_list(y, names).tolist() == with_list(y, names).tolist() == [3, 3]
    unless_nan = torch.compile(lambda x, bound: x if bound != bound else x * bound, backend=counter)
    assert unless_nan(y, torch.nan).tolist() == unless_nan(y, torch.nan).tolist() == [1, 1]
    assert counter.frame_count == 4


def test_programs_without_a_graph_run_as_they_are() -> None:
    def signed(x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x

    counter = CompileCounter()
    compiled = torch.compile(signed, backend=counter)
    assert compiled(torch.ones(2)).tolist() == compiled(-torch.ones(2)).tolist() == [1, 1]
    assert counter.frame_count == 0
    with pytest.raises(torch._dynamo.exc.Unsupported, match="reads elements of a tensor"):
        torch.compile(signed, backend=counter, fullgraph=True)(torch.ones(2))


def test_graphs_train_modules() -> None:
    def train(wrap) -> list[Tensor]:
        torch.manual_seed(0)
        net = Net()
        model = wrap(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.randn(32, 64)
        for _ in range(4):
            optimizer.zero_grad()
            (model(x) - x).square().mean().backward()
            optimizer.step()
        return list(net.state_dict().values())

    for e, f in zip(
        train(lambda net: net),
        train(lambda net: torch.compile(net, backend="aot_eager")),
        strict=True,
    ):
        assert torch.equal(e, f)


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


def _partly_recorded(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * x
    return y * x


@pytest.mark.parametrize("program", [_Doubled.apply, _partly_recorded])
@pytest.mark.parametrize("backend", ["inductor", "eager", "aot_eager", CompileCounter()])
def test_gradients_are_those_that_the_program_says(program: Any, backend: Any) -> None:
    grads = []
    for run in program, torch.compile(program, backend=backend, fullgraph=True):
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        run(x).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


def test_a_function_with_a_backward_of_its_own_has_no_graph() -> None:
    def forward(module: Any, inputs: Any) -> Any:
        return module.forward

    x = torch.ones(2, requires_grad=True)
    torch.compile(_Doubled.apply, backend=forward)(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]
    torch.compile(_Doubled.apply, backend=forward, fullgraph=True)(x).sum().backward()
    assert x.grad.tolist() == [4, 4]
    report = torch._dynamo.explain(_Doubled.apply)(x)
    assert "_Doubled is an autograd.Function" in report.break_reasons[0]
    assert torch.compile(_Doubled.apply, backend=forward, fullgraph=True)(x.detach()).sum() == 2


class _Holder:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


def _factor_of(holder: Any) -> Any:
    return lambda x: x * holder.factor


FACTOR = 1.0


class _Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.factors = [1.0]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale * self.factors[0] * FACTOR


def test_graphs_follow_what_a_program_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(2)
    counter = CompileCounter()
    holder = _Holder(factor=1.0)
    compiled = torch.compile(_factor_of(holder), backend=counter)
    tensor = torch.tensor([3.0, 4.0], requires_grad=True)
    for factor, result in ((1.0, [1, 1]), (2.0, [2, 2]), (tensor, [3, 4]), (1.0, [1, 1])):
        holder.factor = factor
        assert compiled(x).tolist() == result
    assert counter.frame_count == 3
    holder.factor = tensor
    compiled(x).sum().backward()  # a tensor from outside is itself, not what it held
    with torch.no_grad():
        tensor.add_(1)
    assert tensor.grad is not None and tensor.grad.tolist() == [1, 1]
    assert compiled(x).tolist() == [4, 5] and counter.frame_count == 3

    counter.clear()
    module = _Scaled()
    compiled = torch.compile(module, backend=counter)
    assert compiled(x).tolist() == [1, 1]
    module.factors[0] = 2.0
    assert compiled(x).tolist() == [2, 2]
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert compiled(x).tolist() == [6, 6]
    module.scale = nn.Parameter(torch.zeros(()))
    assert compiled(x).tolist() == [0, 0] and counter.frame_count == 4


def test_a_lazy_module_has_a_graph_when_it_has_run() -> None:
    counter = CompileCounter()
    module = nn.LazyLinear(3)
    compiled = torch.compile(lambda x: module(x) * 2, backend=counter)
    x = torch.ones(1, 2)
    first = compiled(x)
    assert all(torch.equal(first, compiled(x)) for _ in range(3)) and counter.frame_count == 1


def test_programs_change_what_they_change() -> None:
    x = torch.ones(2, requires_grad=True)
    total, seen, holder = torch.zeros(2), [], _Holder(calls=0)

    def adding(x: Tensor) -> Tensor:
        total.add_(x.detach())
        return x + torch.rand(2) * 0

    def appending(x: Tensor) -> Tensor:
        seen.append(len(seen))
        holder.calls += 1
        return x * holder.calls

    def drawing(x: Tensor, out: list[float]) -> Tensor:
        out.append(random.random())
        return torch.rand(2) + x

    def training(x: Tensor) -> Tensor:
        (x * 3).sum().backward()
        return x * 2

    def drawn(program: Any) -> tuple[list[float], list[float]]:
        torch.manual_seed(0)
        random.seed(0)
        out: list[float] = []
        return program(x, out).tolist(), out

    counter = CompileCounter()
    compiled = torch.compile(adding, backend=counter)
    for calls in (1, 2, 3):
        compiled(x)
        assert total.tolist() == [calls, calls] and counter.frame_count == 1
    compiled = torch.compile(appending, backend=counter)
    assert [compiled(x).tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]
    assert seen == [0, 1, 2]
    assert drawn(torch.compile(drawing, backend=counter)) == drawn(drawing)
    torch.manual_seed(0)
    alone = torch.compile(lambda: torch.rand(3), backend=counter)()
    torch.manual_seed(0)
    assert torch.equal(alone, torch.rand(3))
    torch.compile(training, backend=counter)(x)
    assert x.grad is not None and x.grad.tolist() == [3, 3]
    assert counter.frame_count == 2


class _Stubborn(list):
    def clear(self) -> None:
        """Leaves what is in it."""


def test_what_a_graph_cannot_do_is_done_by_the_program() -> None:
    def hooked(x: Tensor) -> Tensor:
        y = x * 2
        y.register_hook(lambda grad: grad * 10)
        return y * 3

    def setting(x: Tensor) -> Tensor:
        x.data = torch.full((3,), 4.0)
        return x * 1

    def seeded(x: Tensor) -> Tensor:
        state = torch.get_rng_state()
        first = torch.rand(2)
        torch.set_rng_state(state)
        return first - torch.rand(2) + x

    def generating(x: Tensor) -> Tensor:
        return x + torch.rand(2, generator=torch.Generator().manual_seed(1))

    def switching(x: Tensor) -> Tensor:
        torch._C._set_grad_enabled(False)
        return x * 2

    def growing(x: Tensor, items: _Stubborn) -> Tensor:
        items.append(1)
        return x * len(items)

    def writing(x: np.ndarray) -> np.ndarray:
        x += 1
        return x

    counter = CompileCounter()

    def run(program: Any, *args: Any) -> Any:
        return torch.compile(program, backend=counter)(*args)

    x = torch.ones(2, requires_grad=True)
    run(hooked, x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [60, 60]
    y = torch.zeros(2)
    assert run(setting, y).tolist() == y.tolist() == [4, 4, 4]
    assert run(seeded, torch.ones(2)).tolist() == [1, 1]
    with torch.enable_grad():
        assert not run(switching, x).requires_grad and not torch.is_grad_enabled()
    assert torch.equal(run(generating, y[:2]), generating(y[:2]))
    items = _Stubborn()
    assert run(growing, torch.ones(2), items).tolist() == [1, 1] and items == [1]
    array = np.zeros(2)
    assert run(writing, array) is array and array.tolist() == [1, 1]
    assert counter.frame_count == 0


def test_programs_whose_results_no_graph_holds_run_as_they_are() -> None:
    counter = CompileCounter()
    x = torch.ones(2)
    for program, result in (
        (lambda x: {1, 2}, {1, 2}),
        (lambda x: iter([x]), None),
        (lambda x: (x * 2).numpy().sum(), 4),
        (lambda x: torch.func.grad(lambda y: (y * y).sum())(x).tolist(), [2, 2]),
        (lambda x: print(end="") or 3, 3),
    ):
        found = torch.compile(program, backend=counter, fullgraph=result != 3)(x)
        assert result is None or found == result
    assert counter.frame_count == 0

    def failing(module: Any, inputs: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="'failing' raised:"):
        torch.compile(torch.neg, backend=failing)(x)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        torch.compile(gated, backend=counter, fullgraph=True)(x)


def test_names_of_back_ends() -> None:
    debugging = {"aot_eager", "eager"}  # examples in docstrings register others
    assert {"inductor"} == set(torch.compiler.list_backends()) & {"inductor", *debugging}
    assert set(torch._dynamo.list_backends(None)) >= {"inductor", *debugging}
    calls = []

    @torch._dynamo.register_backend
    def counting_in_tests(module, example_inputs):
        calls.append(module)
        return module.forward

    try:
        assert torch.compile(lambda x: x + 1, backend="counting_in_tests")(torch.ones(1)) == 2
        assert len(calls) == 1
    finally:
        from rushlight._dynamo.backends import registry

        del registry._back_ends["counting_in_tests"]


def test_stances() -> None:
    counter = CompileCounter()
    compiled = torch.compile(lambda x: x + 1, backend=counter)
    with torch.compiler.set_stance("force_eager"):
        compiled(torch.ones(1))
    assert counter.frame_count == 0

    @torch.compiler.set_stance("force_eager")
    def eager() -> Tensor:
        return compiled(torch.ones(1))

    eager()
    assert counter.frame_count == 0
    compiled(torch.ones(1))
    assert counter.frame_count == 1
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'nope'"):
        torch.compiler.set_stance("nope")


def test_bad_arguments() -> None:
    with pytest.raises(RuntimeError, match="Unrecognized mode=x, should be one of: default"):
        torch.compile(gated, mode="x")
    with pytest.raises(RuntimeError, match="both can't be specified"):
        torch.compile(gated, mode="default", options={})
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="Invalid backend: 'nope'"):
        torch.compile(gated, backend="nope")
    with pytest.raises(TypeError, match="a callable function is expected"):
        torch.compile(3)
    with pytest.raises(TypeError, match="unexpected keyword"):
        torch.compile(gated, modes="default")


def test_hints_for_a_compiler_change_nothing() -> None:
    x = torch.ones(2)
    torch._dynamo.mark_unbacked(x, 0)
    torch._dynamo.reset_code_caches()
    assert torch.compile(torch.neg)(x).tolist() == [-1, -1]


def test_explain_says_why_there_is_no_graph() -> None:
    report = torch._dynamo.explain(lambda x: x if x.sum() > 0 else -x)(torch.ones(2))
    assert (report.graph_count, report.graph_break_count, report.op_count) == (0, 1, 0)
    assert "reads elements of a tensor" in str(report)
    whole = torch._dynamo.explain(nn.Linear(2, 3))(torch.ones(1, 2))
    assert str(whole).startswith("Graph Count: 1\nGraph Break Count: 0\nOp Count: 1\n")


def test_the_default_back_end() -> None:
    counter = CompileCounter()
    torch.compiler.set_default_backend(counter)
    try:
        assert torch.compiler.get_default_backend() is counter
        torch.compile(lambda x: x + 1)(torch.ones(1))
    finally:
        torch.compiler.set_default_backend(None)
    assert counter.frame_count == 1 and torch.compiler.get_default_backend() == "inductor"
    with pytest.raises(torch._dynamo.exc.InvalidBackend):
        torch.compiler.set_default_backend("nope")


def test_numpy_functions_of_tensors() -> None:
    double = torch.compiler.wrap_numpy(lambda pair, scale: {"sum": sum(pair) * scale, "n": 2})
    found = double([torch.ones(2), torch.zeros(2)], scale=3)
    assert found["sum"].tolist() == [3, 3] and found["n"] == 2


def test_what_is_said_about_guards_and_caches_changes_nothing() -> None:
    assert torch.compiler.skip_guard_on_globals_unsafe([1, 2]) == [False, False]
    assert torch.compiler.keep_tensor_guards_unsafe([1], keep_parameters=True) == [False]
    assert torch.compiler.substitute_in_graph(max)(min) is min
    assert not torch.compiler.set_enable_guard_collectives(True)
    torch.compiler.load_cache_artifacts(torch.compiler.save_cache_artifacts() or b"")
    config = torch._dynamo.config
    with config.patch(cache_size_limit=max(config.cache_size_limit, 64)):
        assert config.cache_size_limit == 64
