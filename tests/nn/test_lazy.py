"""Lazy modules: their shapes come from the first input or from loaded state."""

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules.lazy import LazyModuleMixin

LAYERS = [
    (nn.LazyLinear, (4,), nn.Linear, (5, 4), (2, 3, 5)),
    *(
        (
            getattr(nn, f"LazyConv{kind}{n}d"),
            (4, 2),
            getattr(nn, f"Conv{kind}{n}d"),
            (5, 4, 2),
            (2, 5, *[6] * n),
        )
        for kind in ("", "Transpose")
        for n in (1, 2, 3)
    ),
    *(
        (
            getattr(nn, f"Lazy{kind}Norm{n}d"),
            (1e-5, 0.1, True, True),
            getattr(nn, f"{kind}Norm{n}d"),
            (5, 1e-5, 0.1, True, True),
            (2, 5, *[6] * n),
        )
        for kind in ("Batch", "Instance")
        for n in (1, 2, 3)
    ),
]


def lazy_linear() -> nn.LazyLinear:
    return nn.LazyLinear(4)


@pytest.mark.parametrize(("lazy", "args", "ordinary", "full_args", "shape"), LAYERS)
def test_first_forward_makes_the_ordinary_layer(lazy, args, ordinary, full_args, shape) -> None:
    torch.manual_seed(3)
    layer, expected = lazy(*args), ordinary(*full_args)
    assert layer.has_uninitialized_params()
    torch.manual_seed(3)
    x = torch.rand(*shape)
    layer(x)
    assert type(layer) is ordinary
    assert repr(layer) == repr(expected)
    assert {n: t.shape for n, t in layer.state_dict().items()} == {
        n: t.shape for n, t in expected.state_dict().items()
    }
    assert all(type(p) is nn.Parameter and p.requires_grad for p in layer.parameters())
    again = ordinary(*full_args)
    again.load_state_dict(layer.state_dict())
    layer.eval(), again.eval()
    np.testing.assert_array_equal(layer(x).detach().numpy(), again(x).detach().numpy())


def test_parameters_start_as_those_of_the_ordinary_layer() -> None:
    torch.manual_seed(1)
    layer = nn.LazyConv2d(4, 3)
    layer(torch.zeros(1, 2, 5, 5))
    torch.manual_seed(1)
    expected = nn.Conv2d(2, 4, 3)
    assert torch.equal(layer.weight, expected.weight)
    assert torch.equal(layer.bias, expected.bias)


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p + 1,
        lambda p: p.sum(),
        lambda p: torch.sum(p),
        lambda p: p[0],
        lambda p: p.dim(),
        lambda p: p.numel(),
        lambda p: nn.init.ones_(p),
    ],
)
def test_use_before_the_first_forward_raises(use) -> None:
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        use(lazy_linear().weight)


def test_shape_and_memory_are_refused() -> None:
    layer = lazy_linear()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        _ = layer.weight.shape
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized"):
        layer.share_memory()


def test_dtype_and_device_may_change_before() -> None:
    layer = nn.Sequential(nn.LazyBatchNorm1d(), nn.LazyLinear(2)).double()
    layer(torch.zeros(3, 4, dtype=torch.float64))
    assert all(t.dtype in (torch.float64, torch.int64) for t in layer.state_dict().values())
    on_meta = lazy_linear().to("meta")
    assert on_meta.weight.device.type == "meta"
    on_meta(torch.zeros(2, 3, device="meta"))
    assert on_meta.weight.shape == (4, 3)


def test_loading_gives_the_shapes() -> None:
    source = nn.Linear(3, 4)
    layer = lazy_linear()
    layer.load_state_dict(source.state_dict())
    assert torch.equal(layer.weight, source.weight)
    x = torch.rand(2, 3)
    assert torch.equal(layer(x), source(x))
    assert repr(layer) == repr(source)


def test_state_without_shapes_loads_only_into_lazy_layers() -> None:
    state = lazy_linear().state_dict()
    assert list(state) == ["weight", "bias"]
    other = lazy_linear()
    other.load_state_dict(state)
    assert other.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        nn.Linear(3, 4).load_state_dict(state)


def test_state_without_shapes_is_saved_and_read() -> None:
    state = nn.LazyBatchNorm1d(dtype=torch.float64).state_dict()
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    read = torch.load(file)
    assert {name: type(value) for name, value in read.items()} == {
        name: type(value) for name, value in state.items()
    }
    assert read["weight"].dtype == torch.float64
    assert read["weight"].requires_grad
    assert not read["running_mean"].requires_grad


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_lazy_by_themselves(clone) -> None:
    layer = lazy_linear()
    twin = clone(layer)
    twin(torch.zeros(2, 3))
    assert type(twin) is nn.Linear
    assert layer.has_uninitialized_params()
    layer(torch.zeros(2, 5))
    assert layer.in_features == 5


def test_an_optimizer_sees_what_becomes_of_the_parameters() -> None:
    layer = nn.LazyLinear(1, bias=False)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    layer(torch.ones(1, 2)).sum().backward()
    before = layer.weight.detach().clone()
    optimizer.step()
    np.testing.assert_allclose(layer.weight.detach().numpy(), before.numpy() - 1, rtol=1e-6)


class Scale(LazyModuleMixin, nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factors = nn.UninitializedParameter()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors


class Forgetful(Scale):
    def initialize_parameters(self, x: torch.Tensor) -> None:
        pass


def test_initialize_parameters_must_do_its_work() -> None:
    with pytest.raises(NotImplementedError, match="not implemented for Scale"):
        Scale()(torch.ones(2))
    with pytest.raises(RuntimeError, match="Forgetful has not been fully initialized"):
        Forgetful()(torch.ones(2))


def test_wrong_inputs_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input"):
        nn.LazyConv2d(4, 3)(torch.ones(2, 3))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.LazyConv2d(4, 3, groups=2)(torch.ones(2, 3, 5, 5))


def test_an_input_without_samples_has_its_channels_first() -> None:
    layer = nn.LazyInstanceNorm2d()
    layer(torch.rand(3, 4, 5))
    assert layer.weight.shape == (3,)


def test_a_lazy_buffer_is_a_buffer_when_it_is_assigned() -> None:
    module = nn.Module()
    module.steps = nn.UninitializedBuffer()
    assert list(module._buffers) == ["steps"]
    module.steps.materialize(4)
    assert type(module.steps) is torch.Tensor and tuple(module.steps.shape) == (4,)
