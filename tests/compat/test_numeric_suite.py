"""The comparison of quantized networks with their float forms as PyTorch's torch.ao.ns."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from compat.quantizing import filled, numbers, part, quietly, values

import rushlight as torch

pytorch = pytest.importorskip("torch")
LIBRARIES = (torch, pytorch)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with quietly(pytorch, "fbgemm"):
        yield


def eager(lib: Any) -> tuple[Any, Any]:
    """A float network and its quantized form."""
    q = lib.ao.quantization

    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
            self.conv, self.relu = lib.nn.Conv2d(3, 3, 3, padding=1), lib.nn.ReLU()
            self.sum = lib.ao.nn.quantized.FloatFunctional()
            self.fc = lib.nn.Linear(192, 5)

        def forward(self, x: Any) -> Any:
            x = self.quant(x)
            y = self.sum.add(self.relu(self.conv(x)), x)
            return self.dequant(self.fc(y.flatten(1)))

    net = q.fuse_modules(filled(lib, Net()).eval(), ["conv", "relu"])
    net.qconfig = q.get_default_qconfig("fbgemm")
    prepared = q.prepare(copy.deepcopy(net))
    prepared(lib.tensor(values(1, 3, 8, 8)))
    return net, q.convert(prepared)


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert sorted(ours) == sorted(theirs)
    for key, wanted in theirs.items():
        assert sorted(ours[key]) == sorted(wanted) == ["float", "quantized"]
        for kind in wanted:
            a, b = ours[key][kind], wanted[kind]
            for x, y in zip(*([a], [b]) if not isinstance(b, list) else (a, b), strict=True):
                np.testing.assert_allclose(numbers(x), numbers(y), atol=0.06, err_msg=key)


def test_modules_side_by_side() -> None:
    def program(lib: Any) -> list[Any]:
        ns, x = part(lib, "ao.ns._numeric_suite"), lib.tensor(values(1, 3, 8, 8))
        net, small = eager(lib)
        kinds = [lib.nn.Linear, lib.ao.nn.intrinsic.ConvReLU2d, lib.ao.nn.quantized.FloatFunctional]
        return [
            ns.compare_weights(net.state_dict(), small.state_dict()),
            ns.compare_model_outputs(copy.deepcopy(net), copy.deepcopy(small), x),
            ns.compare_model_stub(copy.deepcopy(net), copy.deepcopy(small), kinds, x),
        ]

    for ours, theirs in zip(program(torch), program(pytorch), strict=True):
        assert ours
        same(ours, theirs)


def test_dynamic_layers_side_by_side() -> None:
    def program(lib: Any) -> list[Any]:
        ns, nn, x = part(lib, "ao.ns._numeric_suite"), lib.nn, lib.tensor(values(1, 6))
        net = filled(lib, nn.Sequential(nn.Linear(6, 4), nn.Sequential(nn.Linear(4, 3)))).eval()
        small = lib.ao.quantization.quantize_dynamic(net, {nn.Linear})
        return [
            ns.compare_weights(net.state_dict(), small.state_dict()),
            ns.compare_model_outputs(copy.deepcopy(net), copy.deepcopy(small), x),
            ns.compare_model_stub(copy.deepcopy(net), copy.deepcopy(small), [nn.Linear], x),
        ]

    for ours, theirs in zip(program(torch), program(pytorch), strict=True):
        assert ours
        same(ours, theirs)


def test_nodes_side_by_side() -> None:
    def program(lib: Any) -> list[Any]:
        nn, F, q = lib.nn, lib.nn.functional, lib.ao.quantization
        fx, ns = part(lib, "ao.quantization.quantize_fx"), part(lib, "ao.ns._numeric_suite_fx")

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.act, self.b = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1)
                self.fc = nn.Linear(4, 3)

            def forward(self, x: Any) -> Any:
                x = self.act(self.a(x))
                y = F.hardswish(lib.relu(self.b(x) + x) * 2)
                return self.fc(y.mean([2, 3]))

        x, net = lib.tensor(values(2, 3, 8, 8)), filled(lib, Net()).eval()
        prepared = fx.prepare_fx(net, q.get_default_qconfig_mapping("fbgemm"), (x,))
        prepared(x)
        small = fx.convert_fx(copy.deepcopy(prepared))
        models = ("float", prepared, "small", small)
        weights = ns.extract_weights(*models)
        a, b = ns.add_loggers(*models, ns.OutputLogger)
        for each in (a, b):
            each(x)
        outputs = ns.extract_logger_info(a, b, ns.OutputLogger, "small")
        shadows = ns.add_shadow_loggers(*models, ns.OutputLogger)
        shadows(x)
        return [weights, outputs, ns.extract_shadow_logger_info(shadows, ns.OutputLogger, "small")]

    for ours, theirs in zip(program(torch), program(pytorch), strict=True):
        ours = {key.removesuffix("_1"): value for key, value in ours.items()}
        theirs = {key.removesuffix("_1"): value for key, value in theirs.items()}
        assert sorted(ours) == sorted(theirs)
        for lib, results in ((torch, ours), (pytorch, theirs)):
            ns, measure = part(lib, "ao.ns._numeric_suite_fx"), part(lib, "ao.ns.fx.utils")
            arguments = (results, "float", "small", measure.compute_sqnr, "sqnr")
            ns.extend_logger_results_with_comparison(*arguments)
        for key, wanted in theirs.items():
            (kind,) = wanted
            for name in ("float", "small"):
                for x, y in zip(ours[key][kind][name], wanted[kind][name], strict=True):
                    for field in ("type", "index_within_arg", "index_of_arg", "fqn"):
                        assert x[field] == y[field], (key, field)
                    for a, b in zip(x["values"], y["values"], strict=True):
                        np.testing.assert_allclose(numbers(a), numbers(b), atol=0.15)
            got, expected = (r[key][kind]["small"][0]["sqnr"] for r in (ours, theirs))
            np.testing.assert_allclose(float(got[0]), float(expected[0]), atol=1)


def test_inputs_of_nodes_and_layers_of_graphs_that_were_not_prepared() -> None:
    fx, ns = part(torch, "ao.quantization.quantize_fx"), part(torch, "ao.ns._numeric_suite_fx")
    nn, q, x = torch.nn, torch.ao.quantization, torch.tensor(values(4, 5))
    net = filled(torch, nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 2))).eval()
    mapping = q.QConfigMapping().set_global(q.default_dynamic_qconfig)
    small = fx.convert_fx(fx.prepare_fx(net, mapping, (x,)))
    models = ("float", net, "small", small)
    assert list(ns.extract_weights(*models)) == ["_0", "_2"]
    a, b = ns.add_loggers(*models, ns.OutputLogger, should_log_inputs=True)
    np.testing.assert_allclose(a(x).detach().numpy(), b(x).numpy(), atol=0.05)
    results = ns.extract_logger_info(a, b, ns.OutputLogger, "small")
    assert sorted(results["_2"]) == ["node_input", "node_output"]
    wanted = net[1](net[0](x)).detach().numpy()
    found = results["_2"]["node_input"]
    np.testing.assert_allclose(numbers(found["float"][0]["values"][0]), wanted, atol=1e-6)
    np.testing.assert_allclose(numbers(found["small"][0]["values"][0]), wanted, atol=0.03)
