"""Networks from floats to integers: after training, while training, on graphs, and dynamically."""

import copy
import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization as q
from rushlight.ao.quantization.quantize_fx import convert_fx, prepare_fx, prepare_qat_fx

nnq = torch.ao.nn.quantized


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.skip = nnq.FloatFunctional()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.skip.add_relu(self.relu(self.bn(self.conv(x))), x)


class Network(nn.Module):
    """A small convolutional network for digits, with the stubs of the module-wise way."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.block = Block(8)
        self.pool = nn.MaxPool2d(2)
        self.fc1, self.fc_relu = nn.Linear(128, 32), nn.ReLU()
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.bn(self.conv(self.quant(x))))
        x = torch.flatten(self.pool(self.block(x)), 1)
        return self.dequant(self.fc2(self.fc_relu(self.fc1(x))))


FUSE = [
    ["conv", "bn", "relu"],
    ["block.conv", "block.bn", "block.relu"],
    ["fc1", "fc_relu"],
]


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    from sklearn.datasets import load_digits

    data: Any = load_digits()
    images = data.images.astype(np.float32)[:, None] / 16
    return torch.tensor(images), torch.tensor(data.target)


def train(network: nn.Module, epochs: int) -> None:
    x, y = (part[:1400] for part in digits())
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    network.train()
    for _ in range(epochs):
        for at in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[at]), y[at]).backward()
            optimizer.step()


def accuracy(network: nn.Module) -> float:
    x, y = (part[1400:] for part in digits())
    with torch.no_grad():
        return float((network(x).argmax(1) == y).float().mean())


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    torch.manual_seed(0)
    network = Network()
    train(network, 4)
    return network.eval()


def calibrate(network: nn.Module) -> None:
    with torch.no_grad():
        network(digits()[0][:200])


def static(network: nn.Module, backend: str = "x86") -> nn.Module:
    network = q.fuse_modules(network, FUSE)
    network.qconfig = q.get_default_qconfig(backend)
    prepared = q.prepare(network)
    calibrate(prepared)
    return q.convert(prepared)


@pytest.mark.parametrize("backend", ["x86", "qnnpack"])
def test_a_network_for_digits_keeps_its_accuracy(trained: nn.Module, backend: str) -> None:
    small = static(trained, backend)
    assert accuracy(trained) > 0.9
    assert accuracy(small) > accuracy(trained) - 0.015
    assert type(small.conv) is torch.ao.nn.intrinsic.quantized.ConvReLU2d
    assert type(small.block.skip) is nnq.QFunctional
    assert not any(hasattr(m, "qconfig") for m in small.modules())


def test_the_graph_way_gives_the_same_network(trained: nn.Module) -> None:
    network = copy.deepcopy(trained)
    network.quant, network.dequant = nn.Identity(), nn.Identity()
    x = digits()[0][:200]
    prepared = prepare_fx(network, q.get_default_qconfig_mapping(), (x,))
    calibrate(prepared)
    small, eager = convert_fx(prepared), static(trained)
    assert type(small.get_submodule("fc1")) is torch.ao.nn.intrinsic.quantized.LinearReLU
    assert accuracy(small) > accuracy(trained) - 0.015
    with torch.no_grad():
        step = small.get_submodule("fc2").scale
        assert float((small(x) - eager(x)).abs().mean()) < step


def test_weights_are_integers_of_one_byte(trained: nn.Module) -> None:
    small = static(trained)
    assert small.fc1.weight().dtype is torch.qint8
    error = (small.fc2.weight().dequantize() - trained.fc2.weight).abs()
    scales = small.fc2.weight().q_per_channel_scales()
    assert bool((error <= 0.501 * scales[:, None]).all())


def test_a_state_dict_loads_into_a_network_that_went_the_same_way(trained: nn.Module) -> None:
    small, other = static(trained), static(Network().eval())
    file = io.BytesIO()
    torch.save(small.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    x = digits()[0][:20]
    assert torch.equal(other(x), small(x))
    assert list(copy.deepcopy(small).state_dict()) == list(small.state_dict())
    broken = small.state_dict()
    del broken["conv.weight"]
    with pytest.raises(RuntimeError, match="conv.weight"):
        other.load_state_dict(broken)


def saved_and_loaded(network: Any, *inputs: Any) -> Any:
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(network, inputs), file)
    file.seek(0)
    return torch.jit.load(file)


def test_a_quantized_network_is_traced_and_saved(trained: nn.Module) -> None:
    small, x = static(trained), digits()[0][:20]
    again = saved_and_loaded(small, x)
    assert torch.equal(again(x), small(x))
    scripted = torch.jit.script(small)
    scripted(x)
    torch.jit.save(scripted, file := io.BytesIO())
    file.seek(0)
    assert torch.equal(torch.jit.load(file)(x[:7]), small(x[:7]))
    torch.export.save(torch.export.export(small, (x,)), file := io.BytesIO())
    file.seek(0)
    assert torch.equal(torch.export.load(file).module()(x), small(x))
    assert torch.equal(torch.compile(small)(x), small(x))


def test_networks_with_weights_of_bytes_are_traced_and_saved() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 4), nn.ReLU(), nn.LSTM(4, 3))
    small = q.quantize_dynamic(q.quantize_dynamic(layers), dtype=torch.quint8)
    indices = torch.tensor([[1, 5], [0, 8]])
    again = saved_and_loaded(small, indices)
    for ours, wanted in zip(flat(again(indices)), flat(small(indices)), strict=True):
        assert torch.equal(ours, wanted)


def test_what_a_file_holds_of_a_network_is_no_quantized_tensor() -> None:
    def program(x: torch.Tensor) -> Any:
        return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)

    with pytest.raises(RuntimeError, match="DeQuantStub"):
        torch.jit.trace(program, torch.ones(2))


def test_training_with_rounding_ends_in_a_good_network(trained: nn.Module) -> None:
    torch.manual_seed(1)
    network = copy.deepcopy(trained).train()
    network = q.fuse_modules_qat(network, FUSE)
    network.qconfig = q.get_default_qat_qconfig()
    network = q.prepare_qat(network)
    train(network, 1)
    network.eval()
    rounded = accuracy(network)
    small = q.convert(network)
    assert accuracy(small) > 0.9 and abs(accuracy(small) - rounded) < 0.02
    assert type(small.conv) is torch.ao.nn.intrinsic.quantized.ConvReLU2d


def test_training_on_the_graph(trained: nn.Module) -> None:
    torch.manual_seed(1)
    network = copy.deepcopy(trained).train()
    network.quant, network.dequant = nn.Identity(), nn.Identity()
    x = digits()[0][:8]
    prepared = prepare_qat_fx(network, q.get_default_qat_qconfig_mapping(), (x,))
    nniqat, nniq = torch.ao.nn.intrinsic.qat, torch.ao.nn.intrinsic.quantized
    assert type(prepared.get_submodule("conv")) is nniqat.ConvBnReLU2d
    train(prepared, 1)
    small = convert_fx(prepared.eval())
    assert type(small.get_submodule("conv")) is nniq.ConvReLU2d
    assert accuracy(small) > 0.9


def test_a_network_fused_before_is_trained_on_the_graph() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)).train()
    fused = q.fuse_modules_qat(layers, ["0", "1"])
    mapping, x = q.get_default_qat_qconfig_mapping(), torch.randn(4, 2, 6, 6)
    prepared = prepare_qat_fx(fused, mapping, (x,))
    assert type(prepared.get_submodule("0")) is torch.ao.nn.intrinsic.qat.ConvBn2d
    prepared(x).sum().backward()
    small = convert_fx(prepared.eval())
    assert type(small.get_submodule("0")) is nnq.Conv2d
    assert float((small(x) - prepared(x)).abs().max()) < 0.1


def test_the_batch_norm_of_a_layer_in_training_is_that_of_the_float_layers() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)).train()
    fused = q.fuse_modules_qat(layers, ["0", "1"])
    fused.qconfig = q.get_default_qat_qconfig()
    fused = q.prepare_qat(fused)
    fused.apply(q.disable_fake_quant)
    x = torch.randn(4, 2, 6, 6)
    np.testing.assert_allclose(
        fused(x).detach().numpy(), layers(x).detach().numpy(), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        fused[0].bn.running_mean.numpy(), layers[1].running_mean.numpy(), rtol=1e-4
    )


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_networks_are_close_to_their_float_forms(kind: str, bidirectional: bool) -> None:
    torch.manual_seed(0)
    network = getattr(nn, kind)(8, 16, 2, bidirectional=bidirectional, batch_first=True)
    small = q.quantize_dynamic(nn.Sequential(network))[0]
    assert type(small) is getattr(torch.ao.nn.quantized.dynamic, kind)
    x = torch.randn(3, 5, 8)
    with torch.no_grad():
        for ours, wanted in zip(flat(small(x)), flat(network(x)), strict=True):
            assert ours.shape == wanted.shape
            assert float((ours - wanted).abs().max()) < 0.05
    again = getattr(torch.ao.nn.quantized.dynamic, kind)(
        8, 16, 2, bidirectional=bidirectional, batch_first=True
    )
    again.load_state_dict(small.state_dict())
    assert torch.equal(again(x)[0], small(x)[0])


def flat(value) -> list[torch.Tensor]:
    return [part for v in value for part in flat(v)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells_are_close_to_their_float_forms(kind: str) -> None:
    torch.manual_seed(0)
    cell = getattr(nn, kind)(8, 16)
    small = q.quantize_dynamic(nn.Sequential(cell))[0]
    x = torch.randn(3, 8)
    with torch.no_grad():
        for ours, wanted in zip(flat(small(x)), flat(cell(x)), strict=True):
            assert float((ours - wanted).abs().max()) < 0.05


@pytest.mark.parametrize("cls", [nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_recurrent_layers_are_the_same_by_the_graph(cls: Any) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 3, 4) if cls in (nn.LSTM, nn.GRU) else torch.randn(3, 4)
    network = nn.Sequential(cls(4, 6)).eval()
    mapping = q.QConfigMapping().set_global(q.default_dynamic_qconfig)
    small = convert_fx(prepare_fx(network, mapping, (x,)))
    assert type(small.get_submodule("0")) is getattr(torch.ao.nn.quantized.dynamic, cls.__name__)
    for got, expected in zip(small(x), q.quantize_dynamic(network, {cls})(x), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_states_of_recurrent_networks_are_checked() -> None:
    dynamic = torch.ao.nn.quantized.dynamic
    h, x = torch.zeros(1, 2, 3), torch.ones(5, 2, 4)
    for layer, states in (
        (dynamic.LSTM(4, 3), (h,)),
        (dynamic.LSTM(4, 3), torch.zeros(2, 1, 2, 4)),
        (dynamic.GRU(4, 3), (h,)),
    ):
        with pytest.raises(RuntimeError, match=r"Expected hidden size \(1, 2, 3\)"):
            layer(x, states)
    for cell in dynamic.LSTMCell(4, 3), dynamic.GRUCell(4, 3), dynamic.RNNCell(4, 3):
        with pytest.raises(RuntimeError, match=r"Expected hidden size \(2, 3\), got \(3"):
            cell(x[0], torch.zeros(3, 3))
    with pytest.raises(RuntimeError, match="Unknown nonlinearity: sine"):
        dynamic.RNNCell(4, 3, nonlinearity="sine")


def test_embeddings_of_bytes() -> None:
    torch.manual_seed(0)
    network = nn.ModuleDict({"e": nn.Embedding(20, 8), "b": nn.EmbeddingBag(20, 8, mode="sum")})
    small = q.quantize_dynamic(network, dtype=torch.quint8)
    indices = torch.tensor([[1, 5], [0, 19]])
    for name in ("e", "b"):
        error = (small[name](indices) - network[name](indices)).abs().max()
        assert float(error) < 0.05 and small[name].weight().dtype is torch.quint8


def test_float16_weights_only_lose_digits() -> None:
    layer = nn.Sequential(nn.Linear(8, 4))
    small = q.quantize_dynamic(layer, {nn.Linear}, torch.float16)
    x = torch.randn(2, 8)
    np.testing.assert_allclose(small(x).numpy(), layer(x).detach().numpy(), atol=1e-2)


def test_functions_between_tensors() -> None:
    a = torch.quantize_per_tensor(torch.randn(13, 4), 0.05, 100, torch.quint8)
    b = torch.quantize_per_tensor(torch.randn(13, 4), 0.03, 128, torch.quint8)
    f = nnq.QFunctional()
    f.scale, f.zero_point = 0.05, 120
    x, y = a.dequantize(), b.dequantize()
    for ours, wanted in (
        (f.add(a, b), x + y),
        (f.mul(a, b), x * y),
        (f.add_relu(a, b), (x + y).relu()),
        (f.cat([a, b], 1), torch.cat([x, y], 1)),
        (f.matmul(a, b.transpose(0, 1)), x @ y.T),
    ):
        limited = wanted.clamp(-6.0, 6.75)
        assert float((ours.dequantize() - limited).abs().max()) <= 0.0251
    np.testing.assert_allclose(
        f.add_scalar(a, 0.5).dequantize().numpy(), (x + 0.5).numpy(), atol=0.026
    )
    for factor in (2.0, -0.5, 0.0):
        np.testing.assert_allclose(
            f.mul_scalar(a, factor).dequantize().numpy(), (x * factor).numpy(), atol=1e-5
        )


def test_mistakes_are_named() -> None:
    layer = nnq.Linear(3, 2)
    with pytest.raises(NotImplementedError, match="QuantStub"):
        layer(torch.ones(1, 3))
    with pytest.raises(NotImplementedError, match="quint8"):
        layer(torch.quantize_per_tensor(torch.ones(1, 3), 0.1, 0, torch.qint8))
    with pytest.raises(RuntimeError, match="takes 3"):
        layer(torch.quantize_per_tensor(torch.ones(1, 4), 0.1, 0, torch.quint8))
    with pytest.raises(ValueError, match="observer instance"):
        q.QConfig(q.MinMaxObserver(), q.MinMaxObserver)
    with pytest.raises(NotImplementedError, match="Cannot fuse"):
        q.fuse_modules(nn.Sequential(nn.ReLU(), nn.Linear(1, 1)), ["0", "1"])
    with pytest.raises(AssertionError, match="training mode"):
        q.prepare_qat(nn.Linear(1, 1).eval())
    with pytest.raises(RuntimeError, match="qint32"):
        q.quantize_dynamic(nn.Linear(1, 1), dtype=torch.qint32)
    with pytest.raises(AssertionError, match="backend"):
        q.get_default_qconfig("tpu")
    with pytest.raises(TypeError, match="QConfigMapping"):
        prepare_fx(nn.Linear(1, 1).eval(), None, (torch.ones(1, 1),))


def test_older_names_are_the_same_objects() -> None:
    assert torch.quantization.prepare is q.prepare
    assert torch.nn.quantized.Linear is nnq.Linear
    assert torch.nn.quantized.dynamic.LSTM is torch.ao.nn.quantized.dynamic.LSTM
    assert torch.nn.intrinsic.qat.ConvBn2d is torch.ao.nn.intrinsic.qat.ConvBn2d


def test_layers_print_in_one_line() -> None:
    network = q.quantize_dynamic(nn.Sequential(nn.Linear(3, 2)), {nn.Linear})
    assert repr(network) == (
        "Sequential(\n  (0): DynamicQuantizedLinear(in_features=3, out_features=2, "
        "dtype=torch.qint8, qscheme=torch.per_tensor_affine)\n)"
    )
    assert repr(nnq.Linear(3, 2)) == (
        "QuantizedLinear(in_features=3, out_features=2, scale=1.0, zero_point=0, "
        "qscheme=torch.per_tensor_affine)"
    )
    assert repr(nnq.EmbeddingBag(3, 2)) == (
        "QuantizedEmbeddingBag(num_embeddings=3, embedding_dim=2, dtype=torch.quint8, "
        "qscheme=torch.per_channel_affine_float_qparams)"
    )


def test_results_of_known_range_are_rounded_in_it_while_training() -> None:
    def network() -> nn.Sequential:
        stubs = q.QuantStub(), q.DeQuantStub()
        return nn.Sequential(stubs[0], nn.Sigmoid(), nn.Hardsigmoid(), nn.Tanh(), stubs[1])

    model = network().train()
    model.qconfig = q.default_qat_qconfig
    model = q.prepare_qat(model)
    observers: list[Any] = [getattr(each, "activation_post_process", None) for each in model]
    assert [type(each) is q.FixedQParamsFakeQuantize for each in observers[1:4]] == [True] * 3
    assert [float(each.scale) for each in observers[1:4]] == [1 / 256, 1 / 256, 2 / 256]
    x = torch.tensor([[-1.0, 0.5, 2.0]])
    before = model(x)
    model = q.convert(model)
    assert not any(hasattr(layer, "activation_post_process") for layer in model)
    assert not any(layer._forward_hooks for layer in model)
    assert torch.equal(model(x), before)
    model = network().eval()
    model.qconfig = q.default_qconfig
    assert not hasattr(q.prepare(model)[1], "activation_post_process")


def test_layers_take_their_arguments_as_in_pytorch() -> None:
    elu, weight = nnq.ELU(0.5, 3, 1.5), nn.Parameter(torch.full((3,), 2.0))
    assert (elu.scale, elu.zero_point, elu.alpha) == (0.5, 3, 1.5)
    x = torch.quantize_per_tensor(torch.tensor([[-1.0, 0.0, 2.0]]), 0.5, 3, torch.quint8)
    assert elu(x).int_repr().tolist() == [[1, 3, 7]]
    norm = nnq.LayerNorm([3], weight, None, 0.25, 128)
    assert norm.weight is weight and norm.bias is None
    expected = nn.functional.layer_norm(x.dequantize(), [3], weight)
    assert torch.allclose(norm(x).dequantize(), expected, atol=0.125)
    assert nnq.PReLU(0.1, 2, 4).num_parameters == 4 and nnq.Sigmoid(0.1, output_zero_point=4).scale
    assert (nnq.Softmax(1, 0.1, 2).dim, nnq.Softmax(1).scale) == (1, 1.0)
    assert nnq.InstanceNorm2d(3, weight, None, 0.5, 1).weight is weight
    with pytest.raises(TypeError, match="alpha was given twice"):
        nnq.ELU(0.5, 3, 1.5, alpha=2.0)
    with pytest.raises(TypeError, match="There are 3"):
        nnq.ELU(0.5, 3, 1.5, False)


class Written(nn.Module):
    """A network of functions and parameters of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(0.3 * torch.randn(6, 2, 3, 3))
        self.norm = nn.BatchNorm2d(6)
        self.table = nn.ParameterDict({"out": 0.3 * torch.randn(3, 6), "bias": torch.randn(3)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        F = nn.functional
        x = F.relu(self.norm(F.conv2d(x, self.kernel, stride=2, groups=2, padding=1)))
        return F.linear(x.mean((2, 3)), self.table["out"], bias=self.table["bias"])


@pytest.mark.parametrize("is_qat", [False, True])
def test_functions_with_parameters_are_quantized_on_the_graph(is_qat: bool) -> None:
    torch.manual_seed(0)
    network, x = Written().train(is_qat), torch.randn(4, 4, 8, 8)
    if is_qat:
        prepared = prepare_qat_fx(network, q.get_default_qat_qconfig_mapping(), (x,))
        prepared(x).sum().backward()
    else:
        prepared = prepare_fx(network, q.get_default_qconfig_mapping(), (x,))
        assert torch.allclose(prepared(x), network(x), atol=1e-5)
    small = convert_fx(prepared.eval())
    nniq = torch.ao.nn.intrinsic.quantized
    assert {type(m) for n, m in small.named_modules() if n} >= {nniq.ConvReLU2d, nnq.Linear}
    assert float((small(x) - prepared(x)).abs().max()) < 0.1
    assert not list(small.parameters())
    assert "kernel" in network.state_dict()


def test_functions_without_a_scale_stay_as_they_are() -> None:
    class Twice(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + x

    mapping = q.QConfigMapping().set_global(q.float16_static_qconfig)
    graph = convert_fx(prepare_fx(Twice().eval(), mapping, (torch.ones(2),)))
    assert graph(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("is_training", [True, False])
def test_training_is_prepared_in_both_modes(is_training: bool) -> None:
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()).train(is_training)
    x = torch.randn(4, 2, 6, 6)
    prepared = prepare_qat_fx(network, q.get_default_qat_qconfig_mapping(), (x,))
    assert type(prepared.get_submodule("0")) is torch.ao.nn.intrinsic.qat.ConvBnReLU2d
    assert prepared.training is is_training and prepared(x).shape == (4, 3, 4, 4)


def test_what_stays_as_it_is_may_be_said_in_a_dict() -> None:
    network = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2)).eval()
    custom: dict[str, Any] = {"non_traceable_module_name": ["0"], "preserved_attributes": ["note"]}
    network.note = 3
    prepared = prepare_fx(network, q.get_default_qconfig_mapping(), (torch.ones(1, 2),), custom)
    assert type(prepared.get_submodule("0")) is nn.Sequential and prepared.note == 3
    with pytest.raises(ValueError, match="input_indexes has no effect here"):
        prepare_fx(
            network, q.get_default_qconfig_mapping(), (torch.ones(1, 2),), {"input_indexes": [0]}
        )


def test_functions_are_quantized_as_their_types_say() -> None:
    mapping, x = q.get_default_qconfig_mapping(), torch.randn(4, 4, 8, 8)
    mapping.set_object_type(nn.functional.linear, None)
    small = convert_fx(prepare_fx(Written().eval(), mapping, (x,)))
    kinds = {type(module) for module in small.modules()}
    assert nn.Linear in kinds and torch.ao.nn.intrinsic.quantized.ConvReLU2d in kinds


class Sums(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1) * x + x


def test_a_module_that_is_called_twice_is_quantized_on_the_graph() -> None:
    sums, x = Sums(), torch.rand(4, 8)
    network = nn.Sequential(nn.Linear(8, 8), sums, nn.Linear(8, 8), sums).eval()
    prepared = prepare_fx(network, q.get_default_qconfig_mapping(), (x,))
    expected = prepared(x)
    small = convert_fx(prepared)
    assert float((small(x) - expected).abs().max()) < 0.1 * float(expected.abs().max())
    assert not any("@" in name for name in (*small.state_dict(), *vars(small)))
