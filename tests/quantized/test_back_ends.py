"""What a back end says is what becomes integers, and reference networks round as integers do."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.ao.quantization import backend_config as b
from rushlight.ao.quantization.quantize_fx import (
    ConvertCustomConfig,
    PrepareCustomConfig,
    convert_fx,
    convert_to_reference_fx,
    prepare_fx,
)

q = torch.ao.quantization


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.bn(self.conv(x)))
        x = nn.functional.hardswish(x + x) * 0.5
        return self.fc(x.mean([2, 3]))


def prepared(backend: Any = None) -> tuple[nn.Module, torch.Tensor, Any]:
    net, x = Net().eval(), torch.randn(8, 2, 8, 8)
    result = prepare_fx(net, q.get_default_qconfig_mapping(), (x,), backend_config=backend)
    with torch.no_grad():
        result(x)
    return net, x, result


def test_reference_networks_give_the_numbers_of_integers() -> None:
    net, x, graph = prepared()
    reference, small = convert_to_reference_fx(graph), convert_fx(graph)
    assert type(reference.get_submodule("fc")) is nnqr.Linear
    assert type(small.get_submodule("fc")) is nnq.Linear
    assert float((reference(x) - small(x)).abs().max()) < 0.02
    assert float((reference(x) - net(x)).abs().max()) < 0.05
    weight: Any = reference.get_submodule("fc")
    np.testing.assert_allclose(
        weight.get_weight().numpy(),
        small.get_submodule("fc").weight().dequantize().numpy(),
    )


def test_functions_of_one_tensor_are_quantized() -> None:
    _, _, graph = prepared()
    names = [getattr(n.target, "__name__", "") for n in convert_fx(graph).graph.nodes]
    assert {"add", "hardswish", "mul"} <= set(names) and names.count("quantize_per_tensor") == 1


def test_patterns_that_a_back_end_lacks_stay_floats() -> None:
    int8 = b.DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float32)
    linear = b.BackendPatternConfig(nn.Linear).add_dtype_config(int8).set_root_module(nn.Linear)
    linear.set_reference_quantized_module(nnqr.Linear)
    backend = b.BackendConfig("mine").set_backend_pattern_config(linear)
    net, x, graph = prepared(backend)
    small = convert_fx(graph, backend_config=backend)
    assert type(small.get_submodule("conv")) is nn.Conv2d
    assert type(small.get_submodule("bn")) is nn.BatchNorm2d
    assert type(small.get_submodule("fc")) is nnq.Linear
    assert float((small(x) - net(x)).abs().max()) < 0.03
    nothing = b.BackendConfig("nothing")
    _, x, graph = prepared(nothing)
    assert torch.equal(convert_fx(graph, backend_config=nothing)(x), graph(x))


def test_dtypes_have_bounds() -> None:
    def found(**bounds: Any) -> bool:
        given = b.DTypeWithConstraints(torch.quint8, **bounds)
        config = b.BackendPatternConfig(nn.Linear).add_dtype_config(b.DTypeConfig(given, given))
        backend = b.BackendConfig().set_backend_pattern_config(config)
        observer = q.MinMaxObserver.with_args(quant_min=0, quant_max=127, eps=2**-10)
        mapping = q.QConfigMapping().set_global(q.QConfig(observer, q.default_weight_observer))
        layers = nn.Sequential(nn.Linear(2, 2)).eval()
        graph = prepare_fx(layers, mapping, (torch.ones(1, 2),), backend_config=backend)
        return any("activation" in str(node.target) for node in graph.graph.nodes)

    assert found() and found(quant_min_lower_bound=0, quant_max_upper_bound=255)
    assert not found(quant_min_lower_bound=0, quant_max_upper_bound=100)
    assert found(scale_min_lower_bound=2**-12) and not found(scale_min_lower_bound=2**-8)
    assert not found(scale_exact_match=0.1, zero_point_exact_match=0)


def test_fusers_of_a_back_end() -> None:
    class Fused(nn.Sequential):
        pass

    pattern = (nn.Linear, nn.Tanh)
    config = b.BackendPatternConfig(pattern).set_fused_module(Fused)
    config.set_fuser_method(lambda is_qat, *layers: Fused(*layers))
    backend = b.BackendConfig().set_backend_pattern_config(config)
    layers, x = nn.Sequential(nn.Linear(2, 2), nn.Tanh()).eval(), torch.ones(1, 2)
    mapping = q.get_default_qconfig_mapping()
    graph = prepare_fx(layers, mapping, (x,), backend_config=backend)
    assert type(graph.get_submodule("0")) is Fused and torch.equal(graph(x), layers(x))


def test_configurations_are_dicts_too() -> None:
    for name in ("native", "fbgemm", "x86", "qnnpack", "onednn", "tensorrt", "executorch"):
        config = getattr(b, f"get_{name}_backend_config")()
        again = b.BackendConfig.from_dict(config.to_dict())
        assert again.name == config.name == name
        assert [each.pattern for each in again.configs] == [e.pattern for e in config.configs]
        assert again.configs[0].dtype_configs == config.configs[0].dtype_configs
    with pytest.raises(ValueError, match="'patern' is not known"):
        b.BackendPatternConfig.from_dict({"patern": nn.Linear})
    with pytest.raises(ValueError, match="Only one of"):
        b.BackendPatternConfig(nn.Linear)._set_pattern_complex_format(nn.Linear)
    with pytest.raises(TypeError, match="expected a BackendConfig, but got str"):
        prepare_fx(nn.Linear(1, 1), q.QConfigMapping(), (torch.ones(1, 1),), backend_config="x86")


def test_configurations_of_the_steps_are_dicts_too() -> None:
    custom = PrepareCustomConfig().set_standalone_module_name("a", None, (), None, None)
    custom.set_float_to_observed_mapping(nn.Linear, nn.Bilinear).set_input_quantized_indexes([1])
    again = PrepareCustomConfig.from_dict(custom.to_dict())
    assert vars(again) == vars(custom)
    given = ConvertCustomConfig().set_observed_to_quantized_mapping(nn.Linear, nn.Bilinear)
    assert vars(ConvertCustomConfig.from_dict(given.to_dict())) == vars(given)
    with pytest.raises(ValueError, match="only supported for static"):
        custom.set_float_to_observed_mapping(nn.Linear, nn.Linear, q.QuantType.DYNAMIC)


def wrapped(layer: nn.Module) -> Any:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.layer, self.dequant = q.QuantStub(), layer, q.DeQuantStub()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.quant(x)
            several: Any = self.layer
            y = several(x) if isinstance(layer, nn.LSTM) else several(x, x, x)
            return self.dequant(y[0])

    return Wrapped().eval()


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "MultiheadAttention"])
def test_layers_of_several_parts_are_close_to_their_float_forms(
    kind: str, batch_first: bool
) -> None:
    layer: Any = getattr(nn, kind)(8, 2 if kind != "LSTM" else 6, batch_first=batch_first)
    net, x = wrapped(layer), torch.randn(4, 3, 8)
    wanted = net(x)
    net.qconfig = q.get_default_qconfig()
    observed = q.prepare(copy.deepcopy(net))
    np.testing.assert_allclose(observed(x).detach().numpy(), wanted.detach().numpy(), atol=1e-5)
    small = q.convert(observed)
    assert type(small.layer) is getattr(nnq, kind)
    assert float((small(x) - wanted).abs().max()) < 0.05 * float(wanted.abs().max()) + 0.02
    with pytest.raises(NotImplementedError, match="observed first"):
        getattr(nnq, kind).from_float(layer)


def test_eager_reference_layers() -> None:
    layers = q.QuantWrapper(nn.Linear(4, 3)).eval()
    layers.qconfig = q.default_qconfig
    observed = q.prepare(layers)
    observed(torch.randn(8, 4))
    reference = q.convert(observed, is_reference=True)
    assert type(reference.module) is nnqr.Linear
    assert q.get_static_quant_module_class(nn.Conv2d, is_reference=True) is nnqr.Conv2d


def test_integers_whose_forms_are_arguments_come_back() -> None:
    from rushlight.ao.quantization.fx import _decomposed as d

    x = torch.randn(6, 8)
    scale, zero_point = d.choose_qparams_tensor(x, -128, 127, 1e-5, torch.int8)
    form = float(scale), int(zero_point), -128, 127, torch.int8
    there = d.quantize_per_tensor(x, *form)
    assert there.dtype is torch.int8
    assert float((d.dequantize_per_tensor(there, *form) - x).abs().max()) <= 0.51 * form[0]
    rows = d.choose_qparams_per_token_asymmetric(x, torch.int8)
    by_row = d.quantize_per_token(x, *rows, -128, 127, torch.int8)
    back = d.dequantize_per_token(by_row, *rows, -128, 127, torch.int8)
    assert bool(((back - x).abs() <= 0.51 * rows[0]).all())


def test_quantized_graphs_can_be_copied_pickled_and_saved() -> None:
    _, x, graph = prepared()
    small = convert_fx(graph)
    wanted = small(x)
    assert torch.equal(copy.deepcopy(small)(x), wanted)
    assert torch.equal(pickle.loads(pickle.dumps(small))(x), wanted)
    assert "rushlight.ops.quantized.hardswish(" in small.code
    fresh = convert_fx(prepared()[2])
    fresh.load_state_dict(small.state_dict())
    assert torch.equal(fresh(x), wanted)
