"""Fake tensors: what programs learn from them without data, and what they refuse."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from dispatch.test_all_ops import function_of, leaf
from samples import OpSamples, Sample, load_all

import rushlight as torch
from rushlight import fx, nn
from rushlight._guards import active_fake_mode, detect_fake_mode
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeCopyMode,
    FakeTensor,
    FakeTensorConverter,
    FakeTensorDeviceMismatchError,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
    is_fake,
    maybe_get_fake_mode,
    unset_fake_temporarily,
)
from rushlight.fx.passes.fake_tensor_prop import FakeTensorProp
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode

X = torch.arange(6.0).view(2, 3)


def test_a_network_is_made_trained_and_asked_without_data() -> None:
    width = 1_000_000
    with FakeTensorMode() as mode:
        net = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())
        optimizer = torch.optim.AdamW(net.parameters())
        for _ in range(2):
            loss = net(torch.randn(8, width)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    weight = net[0].weight
    assert isinstance(weight, FakeTensor) and isinstance(weight, nn.Parameter)
    assert weight.shape == (width, width) and weight.fake_mode is mode
    assert weight.grad.shape == weight.shape and is_fake(weight.grad)
    assert weight.untyped_storage().nbytes() == 4 * width**2 and weight.data_ptr() == 0
    state = optimizer.state_dict()["state"][0]
    assert state["exp_avg"].shape == weight.shape and state["step"].item() == 2
    assert {name: t.shape for name, t in net.state_dict().items()}["1.running_mean"] == (width,)


def test_tensors_are_where_the_program_says() -> None:
    with FakeTensorMode():
        x = torch.ones(2, device="cuda")
        assert x.device == torch.device("cuda", 0) and x.is_cuda and not x.is_meta
        assert (x * 2).device == x.device and x.cpu().device.type == "cpu"
        assert x.cpu().cuda().device == x.device and x.to("cpu", torch.half).dtype is torch.half
        assert torch.zeros_like(x).device == x.device and x.new_ones(3).device == x.device
        assert torch.zeros_like(x, device="cpu").is_cpu and torch.ones(1, device="meta").is_meta
        assert (x + torch.tensor(2.0)).device == x.device
        assert torch.zeros(2).copy_(x).is_cpu
        assert x[torch.tensor([0])].device == x.device
        assert nn.Linear(2, 3).to("cuda").weight.device == x.device
        with torch.device("cuda"):
            assert torch.ones(2).is_cuda and torch.tensor([1]).is_cuda
        with pytest.raises(FakeTensorDeviceMismatchError, match="cuda:0 and cpu") as info:
            x + torch.ones(2)
        assert info.value.func is torch.ops.aten.add.Tensor
    assert x.device.type == "cuda" and repr(x).startswith(
        "FakeTensor(..., device='cuda:0', size=(2,)"
    )


def test_data_is_refused() -> None:
    with FakeTensorMode():
        x = torch.randn(3)
        for read in (x.sum().item, lambda: bool(x.any()), x.tolist, lambda: int(x[0])):
            with pytest.raises(DataDependentOutputException, match="_local_scalar_dense"):
                read()
        with pytest.raises(DataDependentOutputException, match=r"aten\.equal\.default"):
            torch.equal(x, x)
        for op in (x.nonzero, lambda: x[x > 0], x.unique, lambda: torch.where(x)):
            with pytest.raises(DynamicOutputShapeException) as info:
                op()
            assert isinstance(info.value, RuntimeError) and str(info.value) == str(info.value.func)
        x[x > 0] = 1.0
        with pytest.raises((RuntimeError, BufferError)):
            x.numpy()
    with pytest.raises(RuntimeError, match="no data to save"):
        pickle.dumps(x)


def test_numbers_that_the_program_gave_are_known() -> None:
    with FakeTensorMode():
        three = torch.tensor(3)
        assert is_fake(three) and three.item() == 3 and three.constant.item() == 3
        assert list(range(three)) == [0, 1, 2] and torch.zeros(three).shape == (3,)
        assert (three * 2 - 1).item() == 5 and three.view(1).tolist() == [3]
        assert torch.zeros(2, 5)[:, three].shape == (2,)
        alias = three.view(1)
        three.add_(1)
        assert three.item() == alias.item() == 4
        alias.copy_(torch.arange(5).sum())
        for lost in (alias, three):
            with pytest.raises(DataDependentOutputException):
                lost.item()
        with pytest.raises(DataDependentOutputException):
            torch.rand_like(torch.tensor(3.0)).item()
    array = np.ones(1)
    with FakeTensorMode():
        one = torch.from_numpy(array)
        array[0] = 2
        assert one.item() == 1 and one.dtype is torch.float64


def test_real_tensors_are_refused_unless_they_are_allowed() -> None:
    with FakeTensorMode() as mode:
        fake = torch.ones(2, 3)
        for use in (lambda: X + 1, lambda: X + fake, lambda: fake.copy_(X)):
            with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors"):
                use()
    with pytest.raises(AssertionError, match="Please convert"):
        fake + X
    with FakeTensorMode(allow_non_fake_inputs=True) as other:
        assert (X + 1).shape == (2, 3) and is_fake(X + torch.ones(3))
        assert (fake + 1).fake_mode is other
    assert (fake + 1).fake_mode is mode
    with FakeTensorMode(), pytest.raises(AssertionError, match="Mixing fake modes"):
        fake + 1
    with pytest.raises(NotImplementedError, match="shape_env"):
        FakeTensorMode(shape_env=object())  # pyright: ignore[reportArgumentType]


def test_fake_tensors_look_like_those_they_are_made_from() -> None:
    mode = FakeTensorMode()
    base = torch.ones(3, 4)
    view = base.t()[1:]
    fake = mode.from_tensor(view)
    assert mode.from_tensor(view) is fake and mode.from_tensor(fake) is fake
    assert fake.shape == view.shape and fake.stride() == view.stride()
    assert fake.storage_offset() == 1 and fake._base is mode.from_tensor(base)
    assert fake.untyped_storage().nbytes() == 48
    param = nn.Parameter(torch.ones(2))
    param.grad = torch.ones(2)
    made = mode.from_tensor(param)
    assert isinstance(made, nn.Parameter) and made.requires_grad and is_fake(made.grad)
    grown = torch.ones(2, requires_grad=True) * 2
    assert mode.from_tensor(grown).requires_grad and not mode.from_tensor(grown).is_leaf
    assert not mode.from_tensor(grown.detach()).requires_grad
    assert FakeTensor.from_tensor(base, mode) is mode.from_tensor(base)
    assert FakeTensor(mode, torch.ones(2, device="meta"), "cuda").fake_device.type == "cuda"
    with pytest.raises(AssertionError, match="must be 'meta'"):
        FakeTensor(mode, torch.ones(2), "cpu")
    with pytest.raises(UnsupportedFakeTensorException):
        mode.from_tensor(torch.eye(2).to_sparse())


def test_operators_of_programs_run_by_their_fake_forms() -> None:
    @torch.library.custom_op("fake_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x])

    twice.register_fake(lambda x: x.new_empty((2 * x.shape[0], *x.shape[1:])))

    @torch.library.custom_op("fake_tests::increase", mutates_args=("x",))
    def increase(x: torch.Tensor) -> None:
        x.add_(1)

    @torch.library.custom_op("fake_tests::real", mutates_args=())
    def real(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    with FakeTensorMode():
        x, three = torch.ones(2, 3, device="cuda"), torch.tensor(3)
        assert twice(x).shape == (4, 3) and twice(x).device == x.device
        increase(three)
        assert three.item() == 4
        with pytest.raises(UnsupportedOperatorException, match=r"fake_tests\.real"):
            real(x)


def test_training_needs_no_data() -> None:
    with FakeTensorMode():
        net = nn.Linear(3, 2)
        x = torch.randn(4, 3)
        torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).sum().backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        assert is_fake(norm) and is_fake(net.weight.grad)
        assert torch.func.vmap(lambda row: row.sin().sum())(x).shape == (4,)
        assert torch.func.grad(lambda x: net(x).sum())(x).shape == x.shape
        with torch.autocast("cpu", torch.bfloat16):
            assert net(x).dtype is torch.bfloat16
        net.load_state_dict(nn.Linear(3, 2).state_dict())
        assert nn.functional.one_hot(torch.tensor([1, 2]), 5).shape == (2, 5)


def test_shapes_change_in_place() -> None:
    with FakeTensorMode():
        x = torch.zeros(2, 1)
        assert x.squeeze_(1).shape == x.shape == (2,)
        assert x.resize_(5).shape == (5,)
        out = torch.empty(0)
        torch.add(torch.ones(3), 1, out=out)
        assert out.shape == (3,)


def test_modes_are_found() -> None:
    assert active_fake_mode() is detect_fake_mode() is detect_fake_mode([X]) is None
    with FakeTensorMode() as mode:
        fake = torch.ones(1)
        assert active_fake_mode() is mode
        with unset_fake_temporarily() as found:
            assert found is mode and torch.ones(1).item() == 1
        assert is_fake(torch.ones(1))
    with unset_fake_temporarily() as found:
        assert found is None
    assert detect_fake_mode({"x": [fake]}) is mode is maybe_get_fake_mode(fake)
    with FakeTensorMode(), pytest.raises(AssertionError, match="doesn't match"):
        detect_fake_mode(fake)
    assert not is_fake(X) and not is_fake(torch.ones(1, device="meta")) and not is_fake(None)


def test_copies_are_fake() -> None:
    net = nn.Linear(2, 3)
    with FakeCopyMode(FakeTensorMode()):
        fake = copy.deepcopy(net)
    assert is_fake(fake.weight) and isinstance(fake.weight, nn.Parameter)
    assert not is_fake(net.weight)
    again = copy.deepcopy(fake)
    assert is_fake(again.weight) and again.weight.fake_mode is fake.weight.fake_mode
    assert again.weight is not fake.weight and copy.copy(fake.bias).requires_grad


def test_other_modes_see_the_ops_of_the_program() -> None:
    class Log(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.names: list[str] = []

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    with FakeTensorMode(), Log() as inside:
        (torch.tensor([1.0, 2.0]) + 1).sum()
    assert inside.names == ["aten.lift_fresh.default", "aten.add.Tensor", "aten.sum.default"]
    with Log() as outside, FakeTensorMode():
        (torch.tensor([1.0]) + 1).sum()
    assert outside.names == []


def test_loaded_tensors_are_fake(tmp_path: Any) -> None:
    torch.save({"x": X, "n": 3}, tmp_path / "x.pt")
    with FakeTensorMode():
        loaded = torch.load(tmp_path / "x.pt")
    assert is_fake(loaded["x"]) and loaded["x"].shape == (2, 3) and loaded["n"] == 3


def test_zeros_are_saved_for_fake_tensors(tmp_path: Any) -> None:
    mode, path = FakeTensorMode(), tmp_path / "x.pt"
    x = FakeTensorConverter().from_real_tensor(mode, X)
    with mode:
        weight = nn.Parameter(torch.ones(3, 2, dtype=torch.bfloat16, device="cuda"))
    for is_on in (False, True):
        with torch.serialization.skip_data(materialize_fake_tensors=True):
            if is_on:
                with mode:
                    torch.save({"x": x, "view": x[1:], "weight": weight, "real": X}, path)
            else:
                torch.save({"x": x, "view": x[1:], "weight": weight, "real": X}, path)
        loaded = torch.load(path)
        assert loaded["x"].tolist() == loaded["real"].tolist() == [[0.0] * 3] * 2
        loaded["view"].fill_(1)
        assert loaded["x"].tolist() == [[0.0] * 3, [1.0] * 3]
        assert isinstance(loaded["weight"], nn.Parameter) and loaded["weight"].is_cpu
        assert loaded["weight"].dtype is torch.bfloat16 and loaded["weight"].requires_grad
    with pytest.raises(RuntimeError, match="no data to save"), torch.serialization.skip_data():
        torch.save(x, path)


def test_graphs_learn_what_their_nodes_give() -> None:
    net = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    result = FakeTensorProp(net).propagate(torch.ones(4, 2))
    assert is_fake(result) and result.requires_grad
    shapes = [tuple(node.meta["val"].shape) for node in net.graph.nodes]
    assert shapes == [(4, 2), (4, 3), (4, 3), (4, 3)]
    assert not any(node.meta["val"].requires_grad for node in net.graph.nodes)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fake = mode.from_tensor(torch.ones(5, 2))
    assert FakeTensorProp(net, mode).propagate_dont_convert_inputs(fake).shape == (5, 3)


# ---- all ops ------------------------------------------------------------------------------------

REFUSED = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
# Ops that make a tensor with data on the way, or look at a storage.
NOT_RUN = {"as_strided_scatter", "combinations", "embedding_bag", "nn.functional.ctc_loss.IntList"}


def look_of(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return type(x)
    return x.shape, x.dtype, x.stride(), x.device, x.requires_grad


def looks(function: Any, call: Sample) -> list[Any]:
    """What the results and the gradients of a call look like."""
    results = pytree.tree_leaves(function(*call.args, **call.kwargs))
    roots = [t.sum() for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
    roots = [t for t in roots if not t.is_complex()]
    if roots:
        torch.autograd.backward(roots)
    leaves = pytree.tree_leaves((call.args, call.kwargs))
    grads = [t.grad for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
    return [look_of(x) for x in [*results, *grads]]


def looks_without_data(function: Any, sample: Sample) -> list[Any]:
    mode = FakeTensorMode()
    with mode:
        return looks(function, sample.map(lambda array: mode.from_tensor(leaf(array))))


def differs(op: OpSamples) -> bool:
    function = function_of(op.name)
    for sample in op.all[:3]:
        try:
            expected = looks(function, sample.map(leaf))
        except (RuntimeError, TypeError, ValueError, IndexError):
            continue
        try:
            if looks_without_data(function, sample) != expected:
                return True
        except REFUSED:
            continue
    return False


@pytest.mark.filterwarnings("ignore")
def test_all_ops_look_the_same_without_data() -> None:
    ops = [op for name, op in load_all().items() if callable(function_of(name))]
    assert not [op.name for op in ops if op.name not in NOT_RUN and differs(op)]
