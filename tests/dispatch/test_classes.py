"""Classes of tensors that ops are dispatched to: __torch_dispatch__, with and without elements."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.utils import _pytree as pytree
from rushlight.utils._mode_utils import no_dispatch
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)

aten = torch.ops.aten
F = nn.functional
X = torch.arange(6.0).view(2, 3) + 1


class Wrapped(torch.Tensor):
    """A tensor inside another one, which has none of its elements."""

    inner: torch.Tensor
    names: ClassVar[list[str]] = []

    @staticmethod
    def __new__(cls, inner: torch.Tensor, requires_grad: bool = False) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )

    def __init__(self, inner: torch.Tensor, requires_grad: bool = False) -> None:
        self.inner = inner

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(parts: Any, spec: Any, size: Any, stride: Any) -> Wrapped:
        return Wrapped(parts["inner"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Wrapped.names.append(str(func))
        assert types == (Wrapped,)

        def unwrap(x: Any) -> Any:
            return x.inner if isinstance(x, Wrapped) else x

        def wrap(x: Any) -> Any:
            return cls(x) if isinstance(x, torch.Tensor) else x

        inside = pytree.tree_map(unwrap, (args, kwargs or {}))
        result = pytree.tree_map(wrap, func(*inside[0], **inside[1]))
        return return_and_correct_aliasing(func, args, kwargs, result)


@pytest.fixture(autouse=True)
def forget_names() -> None:
    Wrapped.names.clear()


def test_a_wrapper_looks_like_a_tensor() -> None:
    w = Wrapped(X)
    assert w.shape == (2, 3) and w.dtype is torch.float32 and w.stride() == (3, 1)
    assert w.is_contiguous() and w.numel() == 6 and not w.requires_grad and w.is_leaf
    assert w.device == torch.device("cpu") and w.layout is torch.strided
    assert isinstance(w, torch.Tensor) and type(w) is Wrapped
    assert repr(w) == "Wrapped(..., size=(2, 3), dtype=torch.float32)"
    assert Wrapped.names == []


def test_every_op_goes_to_the_class() -> None:
    w = Wrapped(X)
    y = (w + 1).exp().sum(0)
    assert type(y) is Wrapped and torch.equal(y.inner, (X + 1).exp().sum(0))
    assert Wrapped.names == ["aten.add.Tensor", "aten.exp.default", "aten.sum.dim_IntList"]
    z = torch.cat([X, w])
    assert type(z) is Wrapped and z.inner.shape == (4, 3)
    values, places = w.max(1)
    assert torch.equal(values.inner, X.max(1).values) and torch.equal(
        places.inner, X.max(1).indices
    )
    a, b = w.split(1)
    assert torch.equal(a.inner, X[:1]) and torch.equal(b.inner, X[1:])
    assert torch.equal((X @ w.T).inner, X @ X.T)
    assert torch.equal(w[0, 1:].inner, X[0, 1:])
    assert torch.equal(w[torch.tensor([1])].inner, X[1:])
    assert torch.equal(torch.zeros_like(w).inner, torch.zeros(2, 3))
    assert torch.equal(w.double().inner, X.double())
    assert torch.equal(F.layer_norm(w, (3,)).inner, F.layer_norm(X, (3,)))
    assert torch.equal(F.softmax(w, -1).inner, F.softmax(X, -1))


def test_numbers_come_by_the_handler() -> None:
    w = Wrapped(torch.tensor(3.0))
    assert w.item() == 3 and float(w) == 3 and bool(w) and int(w) == 3
    assert set(Wrapped.names) == {"aten._local_scalar_dense.default"}
    assert torch.equal(Wrapped(X), Wrapped(X)) is True


def test_elements_are_refused() -> None:
    w = Wrapped(X)
    for read in (w.numpy, w.tolist, lambda: np.asarray(w)):
        with pytest.raises(RuntimeError, match="_make_wrapper_subclass"):
            read()
    for read in (lambda: memoryview(w), w.__dlpack__):
        with pytest.raises((BufferError, TypeError)):
            read()
    assert w.data_ptr() == 0 and w.untyped_storage().nbytes() == 0
    with pytest.raises(RuntimeError, match="_make_wrapper_subclass"):
        X.clone().data = w
    for use in (w.sin, lambda: w + 1, lambda: X @ w.T, lambda: X.clone().add_(w), w.detach):
        with no_dispatch(), pytest.raises(RuntimeError, match="_make_wrapper_subclass"):
            use()


def test_in_place_ops_and_views() -> None:
    w = Wrapped(X.clone())
    returned = w.add_(1)
    assert returned is w and torch.equal(w.inner, X + 1) and w._version == 1
    row = w[0]
    assert row._base is w
    row.zero_()
    assert torch.equal(w.inner[0], torch.zeros(3)) and w._version == 2
    plain = X.clone()
    with torch.no_grad():
        assert w.copy_(plain) is w
    assert torch.equal(w.inner, X)


def test_gradients_are_of_the_class() -> None:
    w = Wrapped(X, requires_grad=True)
    y = (w * w).exp().sum()
    assert y.requires_grad and y.grad_fn.name() == "SumBackward0" and not y.inner.requires_grad
    y.backward()
    assert type(w.grad) is Wrapped
    torch.testing.assert_close(w.grad.inner, 2 * X * (X * X).exp())
    (w * 1).sum().backward()
    torch.testing.assert_close(w.grad.inner, 2 * X * (X * X).exp() + 1)


def test_gradients_of_what_meets_a_wrapper() -> None:
    weight = X.clone().requires_grad_()
    Wrapped(X).mul(weight).tanh().sum().backward()
    torch.testing.assert_close(weight.grad.inner, X * (1 - (X * X).tanh() ** 2))


def test_gradients_through_in_place_ops() -> None:
    w = Wrapped(X, requires_grad=True)
    y = w * w
    y.mul_(3)
    (grad,) = torch.autograd.grad(y.sum(), w)
    torch.testing.assert_close(grad.inner, 6 * X)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        w.add_(1)


def test_second_gradients() -> None:
    w = Wrapped(torch.tensor(2.0), requires_grad=True)
    (first,) = torch.autograd.grad(w.exp() * w, w, create_graph=True)
    (second,) = torch.autograd.grad(first, w)
    torch.testing.assert_close(second.inner, 4 * torch.tensor(2.0).exp())


def test_layers_train() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 2))
    twin = copy.deepcopy(net)
    for layer in net:
        for name, param in list(layer.named_parameters(recurse=False)):
            setattr(layer, name, nn.Parameter(Wrapped(param.detach())))
    assert all(isinstance(p, nn.Parameter) and type(p) is Wrapped for p in net.parameters())
    assert len(list(net.parameters())) == 6
    for each in net, twin:
        opt = torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            opt.zero_grad()
            each(X).square().mean().backward()
            opt.step()
    for a, b in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a.inner, b.detach(), rtol=1e-4, atol=1e-5)


def test_parameters_stay_of_their_class() -> None:
    param = nn.Parameter(Wrapped(X))
    assert type(param) is Wrapped and isinstance(param, nn.Parameter) and param.requires_grad
    assert not isinstance(Wrapped(X), nn.Parameter)
    assert not isinstance(param, nn.parameter.UninitializedParameter)

    class Forgetful(Wrapped):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return X.clone()

    with pytest.raises(RuntimeError, match=r"detach\(\) of a Forgetful returned a Tensor"):
        nn.Parameter(Forgetful(X))


def test_modules_convert() -> None:
    layer = nn.Linear(3, 2)
    layer.weight = nn.Parameter(Wrapped(layer.weight.detach()))
    layer.double()
    assert layer.weight.dtype is torch.float64 and type(layer.weight) is Wrapped
    assert layer.weight.inner.dtype is torch.float64
    state = layer.state_dict()
    assert type(state["weight"]) is Wrapped
    layer.load_state_dict({"weight": torch.zeros(2, 3), "bias": torch.zeros(2)})
    assert layer.weight.inner.abs().sum() == 0


def test_copies_and_files() -> None:
    w = Wrapped(X.clone(), requires_grad=True)
    for other in copy.deepcopy(w), copy.copy(w), pickle.loads(pickle.dumps(w)):
        assert type(other) is Wrapped and other is not w and other.requires_grad
        assert torch.equal(other.inner, X) and other.shape == w.shape
    assert copy.deepcopy(w).inner.data_ptr() != w.inner.data_ptr()
    file = io.BytesIO()
    torch.save({"w": w, "p": nn.Parameter(Wrapped(X))}, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([Wrapped]):
        loaded = torch.load(file)
    assert type(loaded["w"]) is Wrapped and torch.equal(loaded["w"].inner, X)
    assert loaded["w"].requires_grad and isinstance(loaded["p"], nn.Parameter)


def test_taken_apart() -> None:
    w = Wrapped(X)
    assert is_traceable_wrapper_subclass(w)
    assert not is_traceable_wrapper_subclass(X)
    twice = transform_subclass(w, lambda name, part: part * 2)
    assert type(twice) is Wrapped and torch.equal(twice.inner, X * 2)


def test_modes_come_before_classes() -> None:
    seen: list[Any] = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((str(func), types))
            if types:
                return NotImplemented
            return func(*args, **(kwargs or {}))

    with Log():
        y = Wrapped(X).exp()
    assert torch.equal(y.inner, X.exp())
    assert ("aten.exp.default", (Wrapped,)) in seen and ("aten.exp.default", ()) in seen


class Further(Wrapped):
    """Is asked before its base."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return types


def test_subclasses_are_asked_first() -> None:
    with pytest.raises(TypeError, match="returned tuple for .*add"):
        Wrapped(X) + Further(X)

    class Shy(Wrapped):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match="All of them returned NotImplemented"):
        Shy(X).exp()


class Seen(torch.Tensor):
    """Has elements of its own, and notes what is done to them."""

    names: ClassVar[list[str]] = []

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.names.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


def test_a_class_with_elements() -> None:
    Seen.names.clear()
    for make in (lambda: X.as_subclass(Seen), lambda: torch.Tensor._make_subclass(Seen, X)):
        s = make()
        assert torch.equal(s + 1, X + 1) and s.data_ptr() == X.data_ptr()
    assert Seen.names.count("aten.add.Tensor") == 2
    x = X.clone().requires_grad_()
    (x.as_subclass(Seen) * 2).sum().backward()
    assert torch.equal(x.grad, torch.full((2, 3), 2.0))
    assert "aten.mul.Tensor" in Seen.names
    assert "aten.cos.default" not in Seen.names
    with no_dispatch():
        X.as_subclass(Seen).cos()
    assert "aten.cos.default" not in Seen.names
    assert repr(X.as_subclass(Seen)).startswith("Seen(")


def test_with_torch_function() -> None:
    calls: list[str] = []

    class Both(Wrapped):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            calls.append(func.__name__)
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            calls.append(str(func))
            return func(*[x.inner if isinstance(x, Both) else x for x in args], **(kwargs or {}))

    y = F.relu(Both(X))
    assert type(y) is torch.Tensor and calls == ["relu", "aten.relu.default"]


def test_wrong_wrappers_are_refused() -> None:
    make = torch.Tensor._make_wrapper_subclass
    with pytest.raises(TypeError, match="cls must be a subclass of Tensor"):
        make(int, (2,))
    with pytest.raises(RuntimeError, match="Tensor has no __torch_dispatch__"):
        make(torch.Tensor, (2,))
    with pytest.raises(RuntimeError, match="negative"):
        make(Wrapped, (-2,))
    with pytest.raises(RuntimeError, match="storage_offset must not be negative"):
        make(Wrapped, (2,), storage_offset=-1)
    with pytest.raises(RuntimeError):
        make(Wrapped, (2**62, 2**62))
    with pytest.raises(RuntimeError):
        make(Wrapped, (2,), strides=(2**62,), storage_offset=2**62)
    with pytest.raises(RuntimeError, match="can require gradients, got int64"):
        make(Wrapped, (2,), dtype=torch.int64, requires_grad=True)
    with pytest.raises(TypeError, match="cannot be one of Seen too"):
        Wrapped(X).as_subclass(Seen)
    w = make(Wrapped, (2, 3), device="meta", memory_format=torch.contiguous_format)
    assert w.device.type == "meta"


def test_endless_recursion_is_an_error() -> None:
    class Again(Wrapped):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    with pytest.raises(RecursionError):
        Again(X).exp()


def test_a_class_that_handles_ops_opts_out_of_functions_unless_it_says_otherwise() -> None:
    class Seen(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return super().__torch_dispatch__(func, types, args, kwargs)

    class Both(Seen):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return torch.Tensor.__torch_function__.__func__(cls, func, types, args, kwargs)

    assert Seen.__torch_function__ is torch._C._disabled_torch_function_impl
    assert type(X.as_subclass(Seen) + 1) is torch.Tensor
    assert type(X.as_subclass(Both) + 1) is Both


def test_modes_classes_and_graphs_see_the_operators_of_programs() -> None:
    @torch.library.custom_op("dispatched::double", mutates_args=())
    def double(xs: list[torch.Tensor], factor: float = 2.0) -> torch.Tensor:
        return torch.from_numpy(xs[0].numpy() * factor)

    double.register_autograd(lambda ctx, grad: ([grad * 2], None))
    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func, args, kwargs))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Log():
        y = double([x])
        double([x], 3.0)
    assert [call[0] for call in seen] == [torch.ops.dispatched.double.default] * 2
    assert [len(call[1]) for call in seen] == [1, 2]  # without what is as the default says
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    z = double([Wrapped(torch.ones(2))])
    assert type(z) is Wrapped and z.inner.tolist() == [2, 2]
    graph = make_fx(lambda x: double([x]) + 1)(torch.ones(2))
    assert [node.target for node in graph.graph.nodes][1] is torch.ops.dispatched.double.default
    assert graph(torch.zeros(2)).tolist() == [1, 1]


def test_the_class_of_out_is_asked_to_write_into_it() -> None:
    x, y = Wrapped(-X), Wrapped(torch.zeros(2, 3))
    assert torch.abs(x, out=y) is y and torch.equal(y.inner, X)
    torch.cat([X, X], out=(z := Wrapped(torch.empty(4, 3))))
    assert torch.equal(z.inner[2:], X) and Wrapped.names == ["aten.abs.out", "aten.cat.out"]
