"""Quantization as PyTorch's: scales, integers, gradients, networks, graphs and files."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
LIBRARIES = (torch, pytorch)
rng = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    engines = [lib.backends.quantized.engine for lib in LIBRARIES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    for lib, engine in zip(LIBRARIES, engines, strict=True):
        lib.backends.quantized.engine = engine


@pytest.fixture(autouse=True)
def numbers_of_each_test() -> None:
    """Draws the same numbers in any order of the tests."""
    global rng
    rng = np.random.default_rng(0)


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return rng.normal(scale=scale, size=shape).astype(np.float32)


def both(function: Any) -> tuple[Any, Any]:
    return function(torch), function(pytorch)


def same(function: Any, tolerance: float = 0.0) -> None:
    ours, theirs = (np.asarray(part) for part in both(function))
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["quint8", "qint8", "qint32"])
def test_integers(dtype: str) -> None:
    x = np.concatenate([normal(500, scale=3), np.arange(-10, 10, 0.05, dtype=np.float32)])
    same(
        lambda lib: lib.quantize_per_tensor(
            lib.tensor(x), 0.1, 7, getattr(lib, dtype)
        ).int_repr().numpy(),
        1 / 90,  # PyTorch 2.14 rounds a number to the other side: -93, not -92
    )  # fmt: skip


def test_integers_by_channel() -> None:
    x, scales = normal(4, 5, 3), rng.uniform(0.01, 0.2, 5)
    zero_points = np.array([0, 1, -3, 7, 100])

    def program(lib: Any) -> Any:
        arguments = lib.tensor(scales), lib.tensor(zero_points), 1, lib.qint8
        return lib.quantize_per_channel(lib.tensor(x), *arguments)

    same(lambda lib: program(lib).int_repr().numpy())
    same(lambda lib: program(lib).dequantize().numpy(), 1e-7)
    assert repr(program(torch)) == repr(program(pytorch))


@pytest.mark.parametrize("reduce_range", [False, True])
def test_dynamic_forms(reduce_range: bool) -> None:
    for x in (normal(50), np.abs(normal(50)), normal(50) * 1e-6, -np.abs(normal(9)), np.zeros(3)):
        values = x.astype(np.float32)
        same(
            lambda lib, values=values: lib._choose_qparams_per_tensor(
                lib.tensor(values), reduce_range
            )
        )


OBSERVERS: dict[str, dict[str, Any]] = {
    "MinMaxObserver": {},
    "MinMaxObserver reduced": {"reduce_range": True},
    "MinMaxObserver symmetric": {"qscheme": "per_tensor_symmetric", "dtype": "qint8"},
    "MinMaxObserver symmetric bytes": {"qscheme": "per_tensor_symmetric"},
    "MinMaxObserver ranged": {"quant_min": 0, "quant_max": 127},
    "MovingAverageMinMaxObserver": {"averaging_constant": 0.3},
    "PerChannelMinMaxObserver": {"ch_axis": 1},
    "PerChannelMinMaxObserver symmetric": {"qscheme": "per_channel_symmetric", "dtype": "qint8"},
    "PerChannelMinMaxObserver floats": {"qscheme": "per_channel_affine_float_qparams"},
    "MovingAveragePerChannelMinMaxObserver": {"averaging_constant": 0.3},
    "HistogramObserver": {},
    "HistogramObserver reduced": {"reduce_range": True},
    "HistogramObserver symmetric": {"qscheme": "per_tensor_symmetric", "dtype": "qint8"},
}


@pytest.mark.parametrize("name", OBSERVERS)
def test_observers(name: str) -> None:
    batches = [normal(8, 6, 50), normal(8, 6, 50, scale=2) + 1, normal(8, 6, 50, scale=0.1)]

    def program(lib: Any) -> Any:
        named = {
            k: getattr(lib, v) if isinstance(v, str) else v for k, v in OBSERVERS[name].items()
        }
        observer = getattr(lib.ao.quantization, name.split()[0])(**named)
        for batch in batches:
            observer(lib.tensor(batch))
        return observer

    ours, theirs = both(program)
    for a, b in zip(ours.calculate_qparams(), theirs.calculate_qparams(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_fake_quantization_and_its_gradients() -> None:
    x, scales = normal(4, 6, scale=3), rng.uniform(0.01, 0.1, 6).astype(np.float32)
    zero_points = rng.integers(0, 255, 6)

    def program(lib: Any, per_channel: bool) -> Any:
        input = lib.tensor(x, requires_grad=True)
        if per_channel:
            form = lib.tensor(scales), lib.tensor(zero_points).to(lib.int32), 1
            y = lib.fake_quantize_per_channel_affine(input, *form, 0, 255)
        else:
            y = lib.fake_quantize_per_tensor_affine(input, 0.02, 100, 0, 255)
        (y * y).sum().backward()
        return np.stack([y.detach().numpy(), input.grad.numpy()])

    for per_channel in (False, True):
        same(lambda lib, p=per_channel: program(lib, p), 1e-6)


@pytest.mark.parametrize("per_channel", [False, True])
def test_gradients_of_scales_that_are_learned(per_channel: bool) -> None:
    x, count = normal(4, 3, scale=3), 3 if per_channel else 1
    scales, zero_points = rng.uniform(0.01, 0.02, count), rng.uniform(50, 200, count)

    def program(lib: Any) -> Any:
        leaves = [
            lib.tensor(a.astype(np.float32), requires_grad=True) for a in (x, scales, zero_points)
        ]
        name = "per_channel" if per_channel else "per_tensor"
        function = getattr(lib, f"_fake_quantize_learnable_{name}_affine")
        axis = (1,) if per_channel else ()
        (function(*leaves, *axis, 0, 255, 0.5) ** 2).sum().backward()
        return np.concatenate([leaf.grad.numpy().ravel() for leaf in leaves])

    same(program, 1e-4)


def network(lib: Any) -> Any:
    nn, q = lib.nn, lib.ao.quantization

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)
            self.bn, self.relu = nn.BatchNorm2d(8), nn.ReLU()
            self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
            self.skip = nn.Conv2d(3, 8, 1)
            self.sum = lib.ao.nn.quantized.FloatFunctional()
            self.pool, self.mean = nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1)
            self.fc1, self.act, self.fc2 = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5)

        def forward(self, x: Any) -> Any:
            x = self.quant(x)
            x = self.sum.add_relu(self.deep(self.relu(self.bn(self.conv(x)))), self.skip(x))
            x = self.mean(self.pool(x)).flatten(1)
            return self.dequant(self.fc2(self.act(self.fc1(x))))

    return Network()


FUSE = [["conv", "bn", "relu"], ["fc1", "act"]]


def networks() -> tuple[Any, Any]:
    """The same network in both libraries."""
    pytorch.manual_seed(0)  # few others have numbers at the edge of rounding
    theirs = network(pytorch)
    theirs.bn.running_mean.uniform_(-0.5, 0.5)
    ours = network(torch)
    ours.load_state_dict({k: torch.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def static(lib: Any, net: Any, backend: str, batches: list[np.ndarray]) -> Any:
    q = lib.ao.quantization
    net = q.fuse_modules(net.eval(), FUSE)
    net.qconfig = q.get_default_qconfig(backend)
    net = q.prepare(net)
    for batch in batches:
        net(lib.tensor(batch))
    return q.convert(net)


def assert_same_state(ours: Any, theirs: Any) -> None:
    assert list(ours) == list(theirs)
    for key, wanted in theirs.items():
        got = ours[key]
        if isinstance(wanted, tuple):
            assert_same_state(dict(enumerate(got)), dict(enumerate(wanted)))
        elif isinstance(wanted, pytorch.Tensor) and wanted.is_quantized:
            assert np.array_equal(got.int_repr().numpy(), wanted.int_repr().numpy()), key
        elif isinstance(wanted, pytorch.Tensor):
            np.testing.assert_allclose(got.numpy(), wanted.detach().numpy(), rtol=2e-6, err_msg=key)
        else:
            assert str(got) == str(wanted)


@pytest.mark.parametrize("backend", ["fbgemm", "x86", "onednn"])
def test_a_network_gives_the_same_integers(backend: str) -> None:
    if backend == "onednn" and "vnni" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("PyTorch's sums of products overflow on this processor")
    pytorch.backends.quantized.engine = backend
    batches = [normal(4, 3, 16, 16) for _ in range(3)]
    ours, theirs = (
        static(lib, net, backend, batches)
        for lib, net in zip(LIBRARIES, networks(), strict=True)
    )  # fmt: skip
    assert_same_state(ours.state_dict(), theirs.state_dict())
    x = normal(8, 3, 16, 16)
    got, wanted = ours(torch.tensor(x)).numpy(), theirs(pytorch.tensor(x)).numpy()
    assert np.abs(got - wanted).max() <= 1.001 * theirs.fc2.scale
    # A number that lies between two integers inside may move the results of its sample.
    assert (np.abs(got - wanted) > 0.5 * theirs.fc2.scale).mean() < 0.2


def test_state_dicts_cross_over_in_files() -> None:
    batches = [normal(4, 3, 16, 16)]
    ours, theirs = (
        static(lib, net, "x86", batches) for lib, net in zip(LIBRARIES, networks(), strict=True)
    )
    x = normal(2, 3, 16, 16)
    wanted = ours(torch.tensor(x)).numpy()
    for writer, net, reader in ((torch, ours, pytorch), (pytorch, theirs, torch)):
        file = io.BytesIO()
        writer.save(net.state_dict(), file)
        file.seek(0)
        fresh = static(reader, network(reader), "x86", batches)
        fresh.load_state_dict(reader.load(file))
        got = fresh(reader.tensor(x)).numpy()
        assert np.abs(got - wanted).max() <= 1.001 * ours.fc2.scale


def test_dynamic_linear_layers() -> None:
    weight, bias, x = normal(32, 48), normal(32), normal(5, 48, scale=2)

    def program(lib: Any) -> Any:
        layer = lib.nn.Linear(48, 32)
        layer.load_state_dict({"weight": lib.tensor(weight), "bias": lib.tensor(bias)})
        small = lib.ao.quantization.quantize_dynamic(lib.nn.Sequential(layer))
        assert "DynamicQuantizedLinear" in repr(small)
        return small(lib.tensor(x)).numpy()

    same(program, 2e-3)


def test_transposed_and_dynamic_convolutions() -> None:
    weight, x = normal(4, 3, 3, 3, scale=0.3), normal(2, 4, 5, 6)

    def transposed(lib: Any) -> Any:
        lib.backends.quantized.engine = "x86"
        layer = lib.ao.nn.quantized.ConvTranspose2d(4, 3, 3, 2, 1, 1)
        layer.set_weight_bias(
            lib.quantize_per_tensor(lib.tensor(weight), 0.01, 0, lib.qint8),
            lib.tensor([0.1, -0.2, 0.3]),
        )
        layer.scale, layer.zero_point = 0.05, 120
        input = lib.quantize_per_tensor(lib.tensor(x), 0.03, 110, lib.quint8)
        integers = layer(input).int_repr().contiguous().numpy().astype(np.int64)
        # PyTorch rounds the results of dynamic convolutions, too; what they hold is the same.
        dynamic = lib.ao.nn.quantized.dynamic.ConvTranspose2d(4, 3, 3, output_padding=(0, 0))
        texts = repr(layer), list(layer.state_dict()), repr(dynamic), list(dynamic.state_dict())
        return texts, integers

    (texts, ours), (wanted_texts, theirs) = both(transposed)
    assert texts == wanted_texts and np.abs(ours - theirs).max() <= 1
    assert (ours != theirs).mean() < 0.01


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_dynamic_recurrent_networks(kind: str) -> None:
    theirs = getattr(pytorch.nn, kind)(8, 16, 2, bidirectional=True)
    weights = {k: v.detach().numpy() for k, v in theirs.state_dict().items()}
    x = normal(6, 3, 8)

    def program(lib: Any) -> Any:
        net = getattr(lib.nn, kind)(8, 16, 2, bidirectional=True)
        net.load_state_dict({k: lib.tensor(v) for k, v in weights.items()})
        small = lib.ao.quantization.quantize_dynamic(lib.nn.Sequential(net))[0]
        return small(lib.tensor(x))[0].detach().numpy()

    same(program, 5e-3)


def test_one_step_of_training_with_rounding() -> None:
    ours, theirs = networks()
    x, target = normal(8, 3, 16, 16), rng.integers(0, 5, 8)

    def program(lib: Any, net: Any) -> Any:
        q = lib.ao.quantization
        net = q.fuse_modules_qat(net.train(), FUSE)
        net.qconfig = q.get_default_qat_qconfig("x86")
        net = q.prepare_qat(net)
        lib.nn.functional.cross_entropy(net(lib.tensor(x)), lib.tensor(target)).backward()
        return net

    ours, theirs = program(torch, ours), program(pytorch, theirs)
    got, wanted = dict(ours.named_parameters()), dict(theirs.named_parameters())
    assert list(got) == list(wanted)
    for name in ("conv.weight", "conv.bn.weight", "fc1.weight", "fc2.bias"):
        # Numbers at the edge of rounding go either way, and their gradients with them.
        a, b = got[name].grad.numpy().ravel(), wanted[name].grad.numpy().ravel()
        assert a @ b > 0.98 * np.linalg.norm(a) * np.linalg.norm(b), name
    for key, value in theirs.state_dict().items():
        if key.endswith("weight_fake_quant.scale"):
            scale = ours.state_dict()[key].numpy()
            np.testing.assert_allclose(scale, value.numpy(), rtol=1e-5, err_msg=key)
    assert set(ours.state_dict()) == set(theirs.state_dict())


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_graphs_of_vision_models(name: str) -> None:
    torchvision = pytest.importorskip("torchvision")
    from rushlight.vision import models

    theirs = getattr(torchvision.models, name)(num_classes=20)
    ours = getattr(models, name)(num_classes=20)
    ours.load_state_dict({k: torch.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    batch = normal(2, 3, 64, 64)

    def program(lib: Any, net: Any) -> Any:
        fx = import_module(f"{lib.__name__}.ao.quantization.quantize_fx")
        x = lib.tensor(batch)
        mapping = lib.ao.quantization.get_default_qconfig_mapping("x86")
        with lib.no_grad():
            prepared = fx.prepare_fx(copy.deepcopy(net).eval(), mapping, (x,))
            prepared(x)
            small = fx.convert_fx(prepared)
            return small.state_dict(), small(x).numpy(), net.eval()(x).numpy()

    (state, got, exact), (their_state, wanted, _) = program(torch, ours), program(pytorch, theirs)
    assert set(state) == set(their_state)
    scales = [key for key in their_state if key.endswith("scale") or "_scale_" in key]
    for key in scales:
        np.testing.assert_allclose(
            float(state[key]), float(their_state[key]), rtol=0.02, err_msg=key
        )
    error = np.abs(wanted - exact).max()
    assert np.abs(got - wanted).max() <= max(error, np.abs(exact).max() * 0.1)


def test_the_configurations_have_the_same_names() -> None:
    names = set(pytorch.ao.quantization.__all__)
    missing = {n for n in names if not hasattr(torch.ao.quantization, n)}
    known = ("jit", "script", "4bit", "sparse")  # TorchScript, 4 bits, layers of sparse blocks
    rest = {n for n in missing if not any(part in n for part in known)}
    assert rest <= {"get_fuser_method_new"}, rest


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "mobilenet_v2"])
def test_models_of_torchvision_for_quantization(name: str) -> None:
    theirs = pytest.importorskip("torchvision").models.quantization
    from rushlight.vision.models import quantization as ours

    pytorch.backends.quantized.engine = "fbgemm"
    small, wanted = (
        getattr(lib, name)(quantize=True, num_classes=10).state_dict() for lib in (ours, theirs)
    )
    assert list(small) == list(wanted)
    for key, value in wanted.items():
        assert getattr(small[key], "shape", None) == getattr(value, "shape", None), key
