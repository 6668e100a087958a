"""torch.export: what the recording of a module does is what the module does."""

import dataclasses
import io
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.export import Dim, ExportedProgram, export
from rushlight.export.graph_signature import InputKind

BATCH = Dim("batch")


class Block(nn.Module):
    """Uses a parameter twice, all kinds of tensors, writes in place, and a size."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.tied = self.inner
        self.register_buffer("shift", torch.arange(4.0))
        self.register_buffer("gone", torch.ones(1), persistent=False)
        self.plain = torch.full((4,), 2.0)

    def forward(self, x: Tensor, y: Any = None, *more: Any, k: int = 1, **named: Any) -> Any:
        rows = x.shape[0]
        z = self.inner(x) + self.shift * self.gone + self.plain
        z[:, 0] = k
        z[1:] += 1
        z = z.view(rows * 2, 2).reshape(rows, -1)
        for item in more:
            z = z + item["q"].sum()
        left, right = z.chunk(2, 1)
        z = torch.cat([left, 1 - right], 1) * named["w"]
        return {
            "out": z.to(torch.float64),
            "list": [x * 2, rows * 4, None],
            "t": torch.arange(rows),
        }


def block_arguments(rows: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    torch.manual_seed(rows)
    return (torch.rand(rows, 3), None, {"q": torch.rand(2)}), {"k": 3, "w": torch.rand(4)}


def exported(module: nn.Module, *args: Any, **options: Any) -> ExportedProgram:
    return export(module.eval(), args, **options)


def through_file(program: ExportedProgram) -> ExportedProgram:
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


@pytest.fixture(scope="module")
def block() -> tuple[Block, ExportedProgram]:
    module = Block().eval()
    args, kwargs = block_arguments(1)
    return module, export(module, args, kwargs, dynamic_shapes={"x": {0: BATCH}})


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_recording_does_what_the_module_does(
    block: tuple[Block, ExportedProgram], rows: int, reads: bool
) -> None:
    module, program = block
    args, kwargs = block_arguments(rows)
    recorded = (through_file(program) if reads else program).module()
    torch.testing.assert_close(recorded(*args, **kwargs), module(*args, **kwargs))


def test_files_keep_names_tensors_and_ties(block: tuple[Block, ExportedProgram]) -> None:
    module, program = block
    loaded = through_file(program)
    recorded: Any = loaded.module()
    assert list(loaded.state_dict) == list(program.state_dict)
    assert loaded.state_dict.keys() == module.state_dict().keys() == recorded.state_dict().keys()
    assert recorded.inner.weight is recorded.tied.weight
    assert [n for n, _ in loaded.named_parameters()] == [
        "inner.weight", "inner.bias", "tied.weight", "tied.bias"
    ]  # fmt: skip
    assert loaded.graph_signature == program.graph_signature
    assert str(loaded.graph_module.code) == str(program.graph_module.code)


def test_signature_says_what_inputs_mean(block: tuple[Block, ExportedProgram]) -> None:
    signature = block[1].graph_signature
    assert signature.inputs_to_parameters["p_inner_weight"] == "inner.weight"
    assert signature.buffers == ("shift", "gone")
    assert signature.non_persistent_buffers == ("gone",)
    assert signature.user_inputs == ("x", "more_0", "named_0")
    assert [s.target for s in signature.input_specs if s.kind is InputKind.CONSTANT_TENSOR] == [
        "plain"
    ]
    assert None in signature.user_outputs and "\nNone: USER_OUTPUT" in str(signature)
    assert block[1].range_constraints == {"batch": BATCH}
    assert set(block[1].constants) == {"gone", "plain"}


def test_graph_module_takes_parameters_before_inputs() -> None:
    module = nn.Linear(2, 3)
    program = exported(module, torch.ones(1, 2))
    x = torch.rand(1, 2)
    (result,) = program.graph_module(module.weight, module.bias, x)
    torch.testing.assert_close(result, module(x))


def test_gradients_reach_the_shared_parameters() -> None:
    module = nn.Linear(2, 1)
    exported(module, torch.ones(4, 2)).module()(torch.ones(4, 2)).sum().backward()
    assert module.weight.grad is not None
    torch.testing.assert_close(module.weight.grad, torch.full((1, 2), 4.0))


def test_recording_leaves_buffers_and_inputs_as_they_were() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(2)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls = self.calls + 1
            return self.norm(x.mul_(2))

    module: Any = Counts()
    x = torch.rand(4, 2)
    calls, kept = module.calls, x.clone()
    recorded: Any = export(module, (x,)).module()
    assert module.calls is calls and calls.item() == 0 and torch.equal(x, kept)
    assert torch.equal(module.norm.running_mean, torch.zeros(2))
    for expected in (1, 2):
        recorded(x.clone())
        assert recorded.calls.item() == expected == recorded.norm.num_batches_tracked.item()
    module.norm.reset_running_stats()
    torch.testing.assert_close(recorded(x.clone()), module(x.clone()))


def test_constants_are_where_modules_have_them() -> None:
    class Inner(nn.Module):
        def __init__(self, shared: Tensor) -> None:
            super().__init__()
            self.factor = torch.full((1,), 3.0)
            self.shared = shared

        def forward(self, x: Tensor) -> Tensor:
            return x * self.factor + self.shared + torch.tensor([10.0])

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared = torch.ones(1)
            self.inner = Inner(self.shared)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x).mul_(self.shared)

    program = exported(Outer(), torch.ones(1))
    names = {"inner.factor", "shared", "_tensor_constant0"}
    assert set(program.constants) == set(program.graph_signature.lifted_tensor_constants) == names
    recorded = program.module()
    assert recorded.inner.factor.item() == 3 and not recorded.state_dict()
    assert [recorded(torch.ones(1)).item() for _ in range(2)] == [14, 14]
    again = torch.export.unflatten(program)
    assert again(torch.ones(1)).item() == 14 and again.inner.factor.item() == 3


def test_constants_that_the_program_writes_to_start_anew() -> None:
    class Sums(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.tensor([0.0]).add_(x.sum())

    recorded = exported(Sums(), torch.ones(3)).module()
    assert [recorded(torch.ones(3)).item() for _ in range(2)] == [3.0, 3.0]


class Sized(nn.Module):
    """Reads sizes in many ways; both dimensions may change."""

    def forward(self, x: Tensor, y: Tensor) -> Any:
        b, t = x.shape
        pairs = x.view(b * t).repeat(3)[: b * t + 1]
        mask = torch.ones(t, t).tril()[None].expand(b, -1, -1)
        return pairs.sum(), mask @ y[:, :t].unsqueeze(-1), x.new_zeros(2 * t - 1), x.reshape(-1, t)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 5), (9, 4)])
def test_sizes_are_computed_from_the_inputs(sizes: tuple[int, int]) -> None:
    rows, steps = Dim("rows"), Dim("steps", max=64)
    shapes = {"x": {0: rows, 1: steps}, "y": (rows, 2 * steps)}
    program = exported(Sized(), torch.ones(2, 4), torch.ones(2, 8), dynamic_shapes=shapes)
    b, t = sizes
    x, y = torch.rand(b, t), torch.rand(b, 2 * t)
    torch.testing.assert_close(through_file(program).module()(x, y), Sized()(x, y))


class Calls(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda x: x.view(2, 3), "fails with batch = 3"),
        (lambda x: x * 2 if x.shape[0] > 2 else x + 1, "which ops run depends on batch"),
        (lambda x: x + torch.tensor(x.shape[0]), "makes a constant"),
        (lambda x: x / x.shape[0] ** 0.5, "has an argument that depends on batch"),
        (lambda x: (x, [x] * x.shape[0]), "how results are nested"),
    ],
)
def test_programs_that_depend_on_a_size_are_refused(function: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        exported(Calls(function), torch.ones(2, 3), dynamic_shapes=({0: BATCH},))
    exported(Calls(function), torch.ones(2, 3))  # a static size is no problem


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * x.max().item(),
        lambda x: x + torch.from_numpy(x.numpy()),
        lambda x: torch.tensor([float(x[0, 0])]),
        lambda x: torch.tensor(x),
        lambda x: x if torch.equal(x, x) else -x,
        lambda x: x[0].tolist(),
        lambda x: torch.tensor([0.0]).add_(x.sum()).item(),
        lambda x: x[x > 0].sum(),
        lambda x: x.nonzero() + 1,
        lambda x: torch.where(x > 0)[0] * 2,
    ],
)
def test_programs_that_read_elements_are_refused(function: Any) -> None:
    with pytest.raises(RuntimeError, match=r"test_export.py:\d+ reads elements"):
        exported(Calls(function), torch.ones(2, 3))


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: (self.layer(x), 1), lambda x: (-x, 1), (x,))


def test_cond_records_both_branches() -> None:
    module, x = Branches(), torch.ones(2, 3)
    run = exported(module, x).module()
    traced = torch.jit.trace(module, (x,))
    for value in (x, -x):
        torch.testing.assert_close(run(value), module(value))
        torch.testing.assert_close(traced(value), module(value))


@pytest.mark.parametrize(
    ("branch", "message"),
    [
        (lambda x: x.sum(), r"\(\(\), torch.float32\)"),
        (lambda x: x > 0, "torch.bool"),
        (lambda x: (x, x), "must be alike"),
        (lambda x: x.add_(1), "writes to an operand"),
    ],
)
def test_branches_that_cannot_be_recorded(branch: Any, message: str) -> None:
    function = Calls(lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, branch, (x,)))
    with pytest.raises(RuntimeError, match=message):
        exported(function, torch.ones(2, 3))


def test_decompositions_have_nothing_to_do() -> None:
    program = exported(nn.Linear(3, 3), torch.ones(2, 3))
    assert str(program.run_decompositions()) == str(program.run_decompositions({})) == str(program)
    with pytest.raises(NotImplementedError, match="cannot name"):
        program.run_decompositions({torch.ops.aten.mm.default: torch.mm})


def test_results_whose_size_depends_on_elements_may_be_returned() -> None:
    program = exported(Calls(lambda x: (x[x > 0], x.nonzero())), torch.ones(2))
    x = torch.tensor([1.0, 0.0])
    torch.testing.assert_close(program.module()(x), (x[:1], torch.tensor([[0]])))


def test_elements_of_constants_may_be_read() -> None:
    program = exported(Calls(lambda x: x * torch.arange(3).sum().item()), torch.ones(2))
    torch.testing.assert_close(program.module()(torch.ones(2)), torch.full((2,), 3.0))


def test_data_is_the_tensor_without_history() -> None:
    program = exported(Calls(lambda x: (x * 2).data + 1), torch.ones(2))
    torch.testing.assert_close(program.module()(torch.zeros(2)), torch.ones(2))


def test_transforms_and_autocast_are_refused() -> None:
    with pytest.raises(RuntimeError, match="inside a transform"):
        exported(Calls(torch.vmap(lambda row: row * 2)), torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="under autocast"), torch.autocast("cpu"):
        exported(nn.Linear(2, 2), torch.ones(1, 2))


def test_arguments_that_are_no_tensors_must_be_the_same() -> None:
    for given, other in [(float("nan"), 1.0), (np.ones(2), np.zeros(2)), ("a", "b"), (1, True)]:
        recorded = exported(Calls(lambda x: x[1] + 1), [given, torch.ones(2)]).module()
        assert recorded([given, torch.ones(2)]).tolist() == [2, 2]
        with pytest.raises(ValueError, match="was recorded with"):
            recorded([other, torch.ones(2)])


def test_modules_without_shapes_are_refused() -> None:
    net = nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="export: weight of the module gets its shape"):
        exported(net, torch.ones(2, 4))
    net(torch.ones(2, 4))
    exported(net, torch.ones(2, 4))


def test_dims_of_one_name_are_one_size() -> None:
    class Sum(nn.Module):
        def forward(self, *args: Tensor) -> Tensor:
            return torch.cat([args[0], args[0]]) + args[1]

    shapes = {"args": ({0: Dim("n")}, {0: 2 * Dim("n")})}
    program = exported(Sum(), torch.ones(2), torch.ones(4), dynamic_shapes=shapes).module()
    assert program(torch.ones(5), torch.ones(10)).shape == (10,)
    with pytest.raises(AssertionError, match="Another input says that it is 10"):
        program(torch.ones(5), torch.ones(12))


class Add(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class Total(nn.Module):
    def forward(self, x: Tensor, y: dict[str, Any], k: Tensor | None = None) -> Tensor:
        return x.sum() + y["a"].sum() * y["b"] + (0 if k is None else k.sum())


def example_of_total(rows: int, b: int = 3) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (torch.zeros(rows, 3), {"a": torch.zeros(2), "b": b}), {"k": torch.zeros(2)}


def test_sizes_are_said_of_the_tensors_themselves() -> None:
    args, kwargs = example_of_total(4)
    said = torch.export.ShapesCollection()
    said[args[0]] = {0: BATCH}
    said[args[1]["a"]] = (Dim.DYNAMIC,)
    named = {"x": {0: BATCH}, "y": {"a": (Dim.DYNAMIC,), "b": None}, "k": None}
    assert said.dynamic_shapes(Total(), args, kwargs) == named
    assert (len(said), said[args[0]]) == (2, {0: BATCH})
    run = export(Total(), args, kwargs, dynamic_shapes=said).module()
    run(torch.ones(7, 3), {"a": torch.ones(5), "b": 3}, k=torch.zeros(2))
    with pytest.raises(AssertionError, match="has .* already"):
        said[args[0]] = {1: BATCH}
    with pytest.raises(AssertionError, match="'x' is no tensor"):
        said["x"] = None  # pyright: ignore[reportArgumentType]
    said[torch.zeros(4, 3)] = {0: BATCH}
    with pytest.raises(ValueError, match="1 of its tensors are not among"):
        said.dynamic_shapes(Total(), args, kwargs)


def test_arguments_may_have_the_names_of_parts_of_others() -> None:
    class Sum(nn.Module):
        def forward(self, x: Any, x_0: Any, x_0_1: Any) -> Any:
            return x[0] + 2 * x_0 + 3 * x_0_1

    one = torch.ones(1)
    program = export(Sum(), ([one], one, one))
    assert program.graph_signature.user_inputs == ("x_0", "x_0_1", "x_0_1_1")
    assert program.module()([one], 10 * one, 100 * one).tolist() == [321]


def test_sizes_without_a_name_have_a_range() -> None:
    ranged = Dim.AUTO(min=2, max=8)
    assert repr(ranged) == "DimHint(AUTO, min=2, max=8)" and ranged == Dim.AUTO(min=2, max=8)
    assert repr(Dim.DYNAMIC) == "DimHint(DYNAMIC)" and Dim.DYNAMIC(max=3) != Dim.DYNAMIC
    shapes = ({0: ranged}, {0: Dim.DYNAMIC(max=6)})  # equal in the example, and so one size
    program = exported(Add(), torch.ones(4), torch.ones(4), dynamic_shapes=shapes)
    assert [(d.min, d.max) for d in program.range_constraints.values()] == [(2, 6)]
    assert program.module()(torch.ones(6), torch.ones(6)).shape == (6,)
    for size in (1, 7):
        with pytest.raises(AssertionError):
            program.module()(torch.ones(size), torch.ones(size))
    with pytest.raises(ValueError, match="no value of"):
        exported(nn.ReLU(), torch.ones(4), dynamic_shapes=({0: Dim.DYNAMIC(min=5)},))
    for min, max in ((5, 2), (-1, None), (None, -1)):
        with pytest.raises(AssertionError, match=r"min must be|max must be"):
            Dim.AUTO(min, max)
    with pytest.raises(TypeError, match="range is given"):
        ranged(max=3)


def test_auto_sizes_are_fixed_where_the_program_does_not_let_them_change() -> None:
    def fixes(x: Tensor) -> Tensor:
        return x.view(2, 3)

    program = exported(Calls(fixes), torch.ones(6), dynamic_shapes=({0: Dim.AUTO},))
    assert program.module()(torch.ones(6)).shape == (2, 3) and not program.range_constraints
    with pytest.raises(ValueError, match="fails with"):
        exported(Calls(fixes), torch.ones(6), dynamic_shapes=({0: Dim.DYNAMIC},))


def test_sizes_are_learned_from_more_examples() -> None:
    args, kwargs = example_of_total(4)
    more = torch.export.AdditionalInputs()
    more.add(*example_of_total(4))
    more.add(*example_of_total(5))
    named = {"x": (Dim.DYNAMIC, None), "y": {"a": (None,), "b": None}, "k": (None,)}
    assert more.dynamic_shapes(Total(), args, kwargs) == named
    more.verify(export(Total(), args, kwargs, dynamic_shapes=more))
    with pytest.raises(AssertionError):
        more.verify(export(Total(), args, kwargs))
    more.add(*example_of_total(4, b=2))
    with pytest.raises(ValueError, match="3 has another value"):
        more.dynamic_shapes(Total(), args, kwargs)
    with pytest.raises(AssertionError, match="must be a tuple"):
        more.add(torch.zeros(1))  # pyright: ignore[reportArgumentType]


def test_nodes_know_what_they_are_in_the_example() -> None:
    program = exported(nn.Linear(3, 2), torch.ones(4, 3))
    shapes = [tuple(node.meta["val"].shape) for node in program.graph.nodes if node.op != "output"]
    assert shapes == [(2, 3), (2,), (4, 3), (4, 2)]
    (x,), kwargs = program.example_inputs
    assert (x.shape, kwargs) == ((4, 3), {})
    ordered = exported(nn.MaxPool1d(2, return_indices=True), torch.ones(1, 1, 4))
    values, places = ordered.graph.find_nodes(op="call_function")[0].meta["val"]
    assert values.is_meta and places.dtype is torch.int64


def test_arguments_must_fit_the_recording() -> None:
    dim = Dim("batch", min=2, max=8)
    program = exported(
        Calls(lambda x: x["a"] + x["b"]),
        {"a": torch.ones(2, 3), "b": torch.ones(2, 3)},
        dynamic_shapes={"x": {"a": {0: dim}, "b": {0: dim}}},
    )
    recorded = program.module()
    ones = torch.ones
    recorded({"a": ones(8, 3), "b": ones(8, 3)})
    for a, b in [(ones(8, 3), ones(7, 3)), (ones(9, 3),) * 2, (ones(2, 4),) * 2, (ones(2),) * 2]:
        with pytest.raises(AssertionError, match=r"x_\d has"):
            recorded({"a": a, "b": b})
    with pytest.raises(AssertionError, match="dtype"):
        recorded({"a": ones(2, 3), "b": ones(2, 3).double()})
    with pytest.raises(ValueError, match="nested"):
        recorded([ones(2, 3), ones(2, 3)])
    with pytest.raises(TypeError, match="must be a Tensor"):
        recorded({"a": ones(2, 3), "b": 1})
    with pytest.raises(RuntimeError, match="Unable to call"):
        program(ones(2, 3))


def test_mistakes_in_the_call_of_export() -> None:
    with pytest.raises(ValueError, match="instance of"):
        export(lambda x: x, (torch.ones(2),))
    with pytest.raises(RuntimeError, match="Expecting `args`"):
        export(nn.ReLU(), torch.ones(2))
    for shapes in (
        {"z": None},
        ({0: BATCH}, None),
        ({5: BATCH},),
        ({0: 3},),
        ({0: "b"},),
        (BATCH,),
    ):
        with pytest.raises(ValueError, match="dynamic_shapes"):
            exported(nn.ReLU(), torch.ones(2), dynamic_shapes=shapes)
    for shapes in (3, "x"):
        with pytest.raises(TypeError, match="dynamic_shapes"):
            exported(nn.ReLU(), torch.ones(2), dynamic_shapes=shapes)
    with pytest.raises(ValueError, match="says 3 of input"):
        exported(nn.ReLU(), [torch.ones(2)], dynamic_shapes=(3,))
    with pytest.raises(TypeError, match=r"export: got an unexpected .* ReLU.forward\(input\)"):
        export(nn.ReLU(), (torch.ones(2),), {"z": torch.ones(2)})
    with pytest.raises(TypeError, match="kwargs is"):
        export(nn.ReLU(), (), [torch.ones(2)])
    with pytest.raises(RuntimeError, match="returns <object"):
        exported(Calls(lambda x: [x, object()]), torch.ones(2))
    with pytest.raises(ValueError, match="no value of"):
        exported(nn.ReLU(), torch.ones(2), dynamic_shapes=({0: Dim("n", min=3)},))
    shapes = ([{0: Dim("n", max=9)}, {0: Dim("n")}],)
    with pytest.raises(ValueError, match="different definitions"):
        exported(Calls(torch.cat), [torch.ones(2), torch.ones(2)], dynamic_shapes=shapes)
    with pytest.raises(ValueError, match="too few sizes"):
        exported(nn.ReLU(), torch.ones(2), dynamic_shapes=({0: Dim("n", min=2, max=3)},))
    with pytest.raises(AssertionError, match="inconsistent"):
        Dim("n", min=3, max=2)
    with pytest.raises(AssertionError, match="identifier"):
        Dim("1")


def test_only_ops_can_be_written() -> None:
    program = exported(Calls(lambda x: x * 2), torch.ones(2))
    node = next(iter(program._program.graph.find_nodes(op="call_function")))
    node.target = print
    with pytest.raises(RuntimeError, match="no op of"):
        torch.export.save(program, io.BytesIO())


def test_data_classes_are_arguments_and_results() -> None:
    @dataclasses.dataclass
    class Pair:
        x: torch.Tensor
        y: torch.Tensor

    class Swapped(nn.Module):
        def forward(self, pair: Pair) -> Pair:
            return Pair(2 * pair.y, pair.x)

    torch.export.register_dataclass(Pair)
    program = torch.export.export(Swapped(), (Pair(torch.ones(2), torch.zeros(2)),))
    result = program.module()(Pair(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])))
    assert isinstance(result, Pair) and (result.x.tolist(), result.y.tolist()) == ([6, 8], [1, 2])
    with pytest.raises(AssertionError, match="Only dataclasses can be registered"):
        torch.export.register_dataclass(int)
