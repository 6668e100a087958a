"""Modes that see every op below autograd: TorchDispatchMode."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
    is_in_torch_dispatch_mode,
)
from rushlight.utils.checkpoint import checkpoint

aten = torch.ops.aten
F = nn.functional


class Log(TorchDispatchMode):
    """Notes each op and runs it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((func, types, args, kwargs))
        return func(*args, **(kwargs or {}))

    @property
    def names(self) -> list[str]:
        return [str(call[0]) for call in self.calls]


def names_of(function: Any) -> list[str]:
    with Log() as log:
        function()
    return log.names


X = torch.arange(6.0).view(2, 3) + 1
ROWS = torch.tensor([0, 1])

# As PyTorch 2.13 shows them.
SEEN = {
    "aten.add.Tensor": lambda: X + 2,
    "aten.mul.Tensor": lambda: 2 * X,
    "aten.div.Tensor": lambda: X / X,
    "aten.rsub.Scalar": lambda: 3 - X,
    "aten.pow.Tensor_Scalar": lambda: X**2,
    "aten.pow.Tensor_Tensor": lambda: X**X,
    "aten.pow.Scalar": lambda: 2**X,
    "aten.gt.Scalar": lambda: X > 0,
    "aten.eq.Tensor": lambda: X == X,
    "aten.floor_divide.default": lambda: X // 2,
    "aten.remainder.Scalar": lambda: X % 2,
    "aten.neg.default": lambda: -X,
    "aten.sum.default": lambda: X.sum(),
    "aten.sum.dim_IntList": lambda: X.sum(0),
    "aten.mean.default": lambda: X.mean(),
    "aten.mean.dim": lambda: X.mean(0),
    "aten.max.default": lambda: X.max(),
    "aten.max.dim": lambda: X.max(0),
    "aten.amax.default": lambda: X.amax(0),
    "aten.select.int": lambda: X[0],
    "aten.slice.Tensor": lambda: X[:, 1:],
    "aten.index.Tensor": lambda: X[ROWS],
    "aten.view.default": lambda: X.view(3, 2),
    "aten.t.default": lambda: X.t(),
    "aten.transpose.int": lambda: X.transpose(0, -1),
    "aten.permute.default": lambda: X.permute(1, 0),
    "aten.unsqueeze.default": lambda: X.unsqueeze(0),
    "aten.expand.default": lambda: X.expand(4, 2, 3),
    "aten.clone.default": lambda: X.clone(),
    "aten.detach.default": lambda: X.detach(),
    "aten._to_copy.default": lambda: X.double(),
    "aten.cat.default": lambda: torch.cat([X, X]),
    "aten.stack.default": lambda: torch.stack([X, X]),
    "aten.unbind.int": lambda: X.unbind(),
    "aten.zeros.default": lambda: torch.zeros(2),
    "aten.full.default": lambda: torch.full((2,), 3.0),
    "aten.empty.memory_format": lambda: torch.empty(2),
    "aten.arange.default": lambda: torch.arange(5),
    "aten.arange.start_step": lambda: torch.arange(1, 5, 2),
    "aten.eye.default": lambda: torch.eye(3),
    "aten.randn.default": lambda: torch.randn(2),
    "aten.randperm.default": lambda: torch.randperm(4),
    "aten.zeros_like.default": lambda: torch.zeros_like(X),
    "aten.new_zeros.default": lambda: X.new_zeros(3),
    "aten.relu.default": lambda: X.relu(),
    "aten.gelu.default": lambda: F.gelu(X),
    "aten._softmax.default": lambda: F.softmax(X, -1),
    "aten._log_softmax.default": lambda: F.log_softmax(X, -1),
    "aten.native_layer_norm.default": lambda: F.layer_norm(X, (3,)),
    "aten._fused_rms_norm.default": lambda: F.rms_norm(X, (3,)),
    "aten.convolution.default": lambda: F.conv1d(X[None].detach(), CONV),
    "aten.embedding.default": lambda: F.embedding(ROWS, X),
    "aten.where.self": lambda: torch.where(X > 0, X, X),
    "aten.masked_fill.Scalar": lambda: X.masked_fill(X > 0, 0.0),
    "aten.clamp.default": lambda: X.clamp(0, 1),
    "aten.cumsum.default": lambda: X.cumsum(0),
    "aten.sort.default": lambda: X.sort(),
    "aten.topk.default": lambda: X.topk(2),
    "aten.argmax.default": lambda: X.argmax(),
    "aten.gather.default": lambda: X.gather(0, ROWS[None]),
    "aten.var.correction": lambda: X.var(0),
    "aten.bmm.default": lambda: torch.bmm(X[None], X.T[None]),
    "aten.mm.default": lambda: X @ X.T,
    "aten.add_.Tensor": lambda: X.clone().add_(1),
    "aten.zero_.default": lambda: X.clone().zero_(),
    "aten.copy_.default": lambda: X.clone().copy_(X),
    "aten.fill_.Scalar": lambda: X.clone().fill_(1.0),
    "aten.add.out": lambda: torch.add(X, X, out=torch.empty(2, 3)),
    "aten._local_scalar_dense.default": lambda: X.sum().item(),
    "aten.equal.default": lambda: torch.equal(X, X),
    "aten.nonzero.default": lambda: X.nonzero(),
    "aten.flip.default": lambda: X.flip(0),
    "aten.roll.default": lambda: X.roll(1, 0),
    "aten.lerp.Scalar": lambda: torch.lerp(X, X, 0.5),
    "aten.uniform_.default": lambda: X.clone().uniform_(),
    "aten.bernoulli_.float": lambda: X.clone().bernoulli_(0.5),
    "aten.logsumexp.default": lambda: X.logsumexp(0),
    "aten.isnan.default": lambda: torch.isnan(X),
}
CONV = torch.ones(1, 2, 2)


def test_ops_have_pytorchs_names() -> None:
    wrong = {
        name: seen for name, function in SEEN.items() if name not in (seen := names_of(function))
    }
    assert not wrong


def test_what_only_looks_is_not_seen() -> None:
    for function in (
        lambda: X.shape,
        lambda: X.is_contiguous(),
        lambda: X.contiguous(),
        lambda: X.to(torch.float32),
        lambda: X.is_floating_point(),
        lambda: repr(X),
        lambda: X.tolist(),
    ):
        assert names_of(function) == []


def test_func_is_what_torch_ops_has() -> None:
    with Log() as log:
        X @ X.T
        X + 1
    func = log.calls[-1][0]
    assert func is aten.add.Tensor
    assert [call[0] for call in log.calls][-2] is aten.mm.default
    counts = Counter(call[0].overloadpacket for call in log.calls)
    assert counts[aten.mm] == 1
    assert {aten.add.Tensor: 1}[func] == 1
    assert func.__name__ == "add.Tensor" and str(func) == "aten.add.Tensor"
    assert func.name() == "aten::add.Tensor" and func._schema.name == "aten::add"
    assert isinstance(func, torch._ops.OpOverload)
    assert isinstance(func.overloadpacket, torch._ops.OpOverloadPacket)


def test_arguments_are_without_defaults() -> None:
    with Log() as log:
        X.sum()
        X.sum(1, keepdim=True)
        X + 2
        torch.zeros(2, dtype=torch.float64)
        torch.cat([X, X], 1)
    arguments = [call[2:] for call in log.calls]
    assert arguments[0] == ((X,), {})
    assert arguments[1][0][1:] == ([1], True)
    assert arguments[2][0][1:] == (2,)
    assert arguments[3] == (([2],), {"dtype": torch.float64})
    assert isinstance(arguments[4][0][0], list) and arguments[4][0][1] == 1


def test_arguments_are_the_objects_of_the_program() -> None:
    weight = nn.Parameter(torch.ones(3, 3))
    with Log() as log:
        X @ weight
    assert log.calls[0][2][0] is X and log.calls[0][2][1] is weight
    assert weight.requires_grad


def test_a_result_has_the_history_of_the_op() -> None:
    x = X.clone().requires_grad_()
    with Log():
        y = (x.exp() * 3).sum()
    assert y.grad_fn.name() == "SumBackward0"
    (grad,) = torch.autograd.grad(y, x)
    assert torch.equal(grad, X.exp() * 3)


def test_the_handler_runs_unrecorded_and_decides() -> None:
    class Negate(TorchDispatchMode):
        recorded = False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            self.recorded |= result.requires_grad
            return -result if func is aten.exp.default else result

    x = X.clone().requires_grad_()
    with Negate() as mode:
        y = x.exp()
    assert torch.equal(y, -X.exp()) and not mode.recorded
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(grad, -X.exp())  # exp saves its result


def train(mode: Any) -> tuple[list[torch.Tensor], Any]:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 3)
    )
    opt = torch.optim.Adam(net.parameters(), lr=0.1)
    inputs, targets = torch.randn(5, 6), torch.tensor([0, 1, 2, 0, 1])
    with mode:
        for _ in range(2):
            opt.zero_grad()
            F.cross_entropy(net(inputs), targets).backward()
            opt.step()
    return [p.detach() for p in net.parameters()], mode


def test_training_gives_the_same_numbers() -> None:
    expected, _ = train(torch.enable_grad())
    found, log = train(Log())
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert Counter(log.names)["aten.linear.default"] == 6
    assert any("mm" in name for name in log.names)  # of backward


def test_backward_is_seen() -> None:
    x = X.clone().requires_grad_()
    y = (x * x).tanh().sum()
    with Log() as log:
        y.backward()
    assert "aten.expand.default" in log.names and "aten.mul.Tensor" in log.names
    assert torch.allclose(x.grad, 2 * X * (1 - (X * X).tanh() ** 2))


def test_second_gradients() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    with Log():
        (first,) = torch.autograd.grad(x.exp() * x, x, create_graph=True)
        (second,) = torch.autograd.grad(first, x)
    e = torch.tensor(2.0).exp()
    torch.testing.assert_close(first.detach(), 3 * e)
    torch.testing.assert_close(second, 4 * e)


def test_in_place_ops() -> None:
    x = X.clone().requires_grad_()
    with Log() as log:
        y = x.exp()
        returned = y.mul_(3)
        y[0].zero_()
    assert returned is y
    assert log.names == [
        "aten.exp.default", "aten.mul_.Tensor", "aten.select.int", "aten.zero_.default",
    ]  # fmt: skip
    assert y._version == 2
    with pytest.raises(RuntimeError, match="exp saved its result"):
        y.sum().backward()
    with Log():
        z = x * x
        z[0].mul_(3)
    (grad,) = torch.autograd.grad(z.sum(), x)
    assert torch.equal(grad, 2 * X * torch.tensor([[3.0], [1.0]]))
    with Log(), pytest.raises(RuntimeError, match="leaf Variable"):
        x.add_(1)


def test_views_are_views() -> None:
    base = X.clone()
    with Log():
        view = base.view(6)
        row = base[1]
        parts = base.split(1)
    assert view._base is base and row._base is base and parts[0]._base is base
    view[0] = 9
    assert base[0, 0] == 9
    leaf = X.clone().requires_grad_()
    with Log():
        window = (leaf * 1)[0]
    window.mul_(2)  # not made in no_grad, as a program sees it
    assert window.grad_fn is not None


def test_out_and_inplace_arguments() -> None:
    out = torch.empty(2, 3)
    with Log() as log:
        returned = torch.mul(X, 2, out=out)
        y = X - 3
        F.relu(y, inplace=True)
    assert returned is out and torch.equal(out, X * 2)
    assert log.names == ["aten.mul.out", "aten.sub.Tensor", "aten.relu_.default"]
    assert log.calls[0][3]["out"] is out
    assert torch.equal(y, (X - 3).relu())


def test_modes_nest() -> None:
    seen: list[str] = []

    class Named(TorchDispatchMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(f"{self.name} {func}")
            assert _get_current_dispatch_mode() is not self
            if self.name == "inner":
                return func(*args, **(kwargs or {})) + 0
            return func(*args, **(kwargs or {}))

    assert not is_in_torch_dispatch_mode()
    with Named("outer") as outer, Named("inner") as inner:
        assert _get_current_dispatch_mode_stack() == [outer, inner]
        X.exp()
    assert seen == ["inner aten.exp.default", "outer aten.exp.default", "outer aten.add.Tensor"]
    assert _get_current_dispatch_mode() is None


def test_a_mode_may_stand_in_its_own_handler() -> None:
    class Parts(Log):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is aten.tanh.default:
                with self:
                    e = (2 * args[0]).exp()
                    return (e - 1) / (e + 1)
            return super().__torch_dispatch__(func, types, args, kwargs)

    with Parts() as log:
        y = X.tanh()
    torch.testing.assert_close(y, X.tanh())
    assert "aten.exp.default" in log.names and "aten.tanh.default" not in log.names


def test_errors_of_handlers_arrive() -> None:
    class Refuse(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError(str(func))

    with Refuse(), pytest.raises(KeyError, match=r"aten\.exp\.default"):
        X.exp()
    assert not is_in_torch_dispatch_mode()
    y = X.clone().requires_grad_().exp().sum()
    with Refuse(), pytest.raises(KeyError, match=r"aten\."):
        y.backward()
    assert (X + 1).sum() == 27


class Returns(TorchDispatchMode):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.value


def test_wrong_results_are_refused() -> None:
    with Returns(None), pytest.raises(TypeError, match="returned NoneType for .*exp"):
        X.exp()
    with Returns(3), pytest.raises(TypeError, match="returned int for .*sort"):
        X.sort()
    with Returns((X,)), pytest.raises(TypeError, match=r"returned 1 results for .*sort.* has 2"):
        X.sort()
    with Returns(X.double()), pytest.raises(RuntimeError, match="returned float64 of shape"):
        X.exp()
    with Returns(X), pytest.raises(RuntimeError, match="for sum, whose result is float32"):
        X.sum()
    with Returns("x"), pytest.raises(TypeError, match="returned str for .*equal"):
        torch.equal(X, X)
    with Returns(NotImplemented), pytest.raises(TypeError, match="no __torch_dispatch__ takes it"):
        X.exp()
    with TorchDispatchMode(), pytest.raises(NotImplementedError):
        X.exp()


def test_a_mode_is_of_its_thread() -> None:
    other: list[str] = []

    def run() -> None:
        other.extend(names_of(lambda: X.exp()))
        X.sin()

    with Log() as log:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert log.names == [] and other == ["aten.exp.default"]


def test_no_grad_inference_and_autocast() -> None:
    x = X.clone().requires_grad_()
    with Log(), torch.no_grad():
        assert not (x * 2).requires_grad
    with Log(), torch.inference_mode():
        assert (x * 2).is_inference()
    with Log() as log, torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ X.T
    assert y.dtype is torch.bfloat16
    assert "aten._to_copy.default" in log.names
    product = next(call for call in log.calls if call[0] is aten.mm.default)
    assert all(tensor.dtype is torch.bfloat16 for tensor in product[2])


def test_with_a_profiler() -> None:
    with torch.profiler.profile() as profile, Log() as log:
        (X.exp() + 1).sum()
    assert len(log.names) == 3
    keys = {event.key for event in profile.key_averages()}
    assert {"aten::exp", "aten::add", "aten::sum"} <= keys


def test_transforms_stand_above() -> None:
    with Log() as log:
        batched = torch.vmap(lambda x: (x * x).sum())(X)
    assert torch.equal(batched, (X * X).sum(1))
    product = next(call for call in log.calls if call[0] is aten.mul.Tensor)
    assert product[2][0].shape == (2, 3)
    with Log() as log:
        value, tangent = torch.func.jvp(torch.sin, (X,), (torch.ones_like(X),))
    assert torch.equal(value, X.sin()) and torch.allclose(tangent, X.cos())
    assert "aten.sin.default" in log.names and "aten.cos.default" in log.names
    with Log() as log:
        grads = torch.vmap(torch.func.grad(lambda x: x.exp().sum()))(X)
    assert torch.allclose(grads, X.exp()) and "aten.exp.default" in log.names


def test_functions_of_autograd_and_checkpoints() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * 2

    x = X.clone().requires_grad_()
    with Log() as log:
        y = checkpoint(lambda x: Double.apply(x).sin(), x, use_reentrant=False)
        y.sum().backward()
    assert log.names.count("aten.mul.Tensor") >= 2 and "aten.cos.default" in log.names
    assert torch.allclose(x.grad, 2 * (2 * X).cos())


def test_what_the_core_trusts_is_called_as_it_was() -> None:
    inputs, targets = X.clone().requires_grad_(), ROWS
    with Log() as log:
        F.cross_entropy(inputs, targets)
    func, _, args, kwargs = next(c for c in log.calls if c[0].namespace == "rushlight")
    again = func(*args, **kwargs)
    assert torch.equal(again[0], F.cross_entropy(X, targets))
    with pytest.raises(RuntimeError, match=r"is internal: it was never called with tensors"):
        func(X[:, :2], *args[1:])
    with pytest.raises(RuntimeError, match=r"is internal: integers from 7 to 7 were passed"):
        func(args[0], torch.tensor([7, 7]), *args[2:])
    with pytest.raises(RuntimeError, match="is internal"):
        func()
    assert not hasattr(torch.ops.rushlight, "nothing")


def test_windows_at_given_places_have_gradients() -> None:
    x = torch.arange(16.0).view(1, 1, 4, 4).requires_grad_()
    with Log():
        y = F.fractional_max_pool2d(x, 2, output_size=2)
        z = F.max_unpool2d(y, torch.arange(4).view(1, 1, 2, 2), 2)
    z.sum().backward()
    assert x.grad.sum().item() == 4


def test_sparse_layouts_have_gradients() -> None:
    for layout in torch.sparse_coo, torch.sparse_csr:
        x = (2 * torch.eye(3)).requires_grad_()
        with Log():
            torch.sparse.mm(x.to_sparse(layout=layout), X.T).sum().backward()
        assert torch.equal(x.grad.to_dense(), torch.eye(3) * X.sum(0))


def test_random_numbers_are_the_same() -> None:
    def draw() -> list[torch.Tensor]:
        torch.manual_seed(3)
        generator = torch.Generator().manual_seed(5)
        return [
            torch.randn(3), F.dropout(X), torch.rand(2, generator=generator), X.clone().normal_(),
            torch.randint(5, (4,)), torch.multinomial(X, 2),
        ]  # fmt: skip

    expected = draw()
    with Log():
        found = draw()
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_endless_recursion_is_an_error() -> None:
    class Again(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with self:
                return func(*args, **(kwargs or {}))

    with Again(), pytest.raises(RecursionError):
        X.exp()


def test_a_mode_that_ends_itself() -> None:
    class Ends(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            torch._C._pop_dispatch_mode()
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="no mode is in force"), Ends():
        X.exp()
    with pytest.raises(RuntimeError, match="no mode is in force"):
        torch._C._pop_dispatch_mode()


def test_equal_to_the_function() -> None:
    assert aten.mm.default == torch.mm and torch.mm == aten.mm.default
    assert {aten.mm.default: 1}[torch.mm] == 1 and {torch.mm: 1}[aten.mm.default] == 1
    assert aten.add.Tensor != aten.add.Scalar and aten.mm.default != torch.add


def test_modes_of_tools_may_be_left_out() -> None:
    class Tool(TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls) -> bool:
            return True

    class Wrong(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Tool():
        assert is_in_torch_dispatch_mode() and not is_in_torch_dispatch_mode(False)
        with TorchDispatchMode():
            assert is_in_torch_dispatch_mode(False)
    with pytest.raises(RuntimeError, match="plain method"), Wrong():
        pass
    assert not is_in_torch_dispatch_mode()
