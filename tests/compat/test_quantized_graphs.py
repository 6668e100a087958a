"""Quantization on graphs as PyTorch's: nodes, names, numbers, configurations of back ends."""

from __future__ import annotations

import copy
import io
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compat.quantizing import filled, nodes, part, quietly, values

import rushlight as torch

pytorch = pytest.importorskip("torch")
LIBRARIES = (torch, pytorch)
NETWORKS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with quietly(pytorch):
        yield


def network(*shape: int) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def add(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        NETWORKS[make.__name__] = (make, shape)
        return make

    return add


@network(2, 3, 8, 8)
def functions(lib: Any) -> Any:
    F = lib.nn.functional

    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = lib.nn.Conv2d(3, 8, 3), lib.nn.BatchNorm2d(8)
            self.fc, self.norm = lib.nn.Linear(8, 4), lib.nn.LayerNorm(4)

        def forward(self, x: Any) -> Any:
            x = F.leaky_relu(self.bn(F.hardswish(self.conv(x))), 0.2)
            x = F.interpolate(F.max_pool2d(x, 2), scale_factor=2.0).mean([2, 3])
            return lib.sigmoid(self.norm(self.fc(x))) * 2 + 1

    return Net()


@network(2, 5, 8)
def attention(lib: Any) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.out = (lib.nn.Linear(8, 8) for _ in range(4))
            self.norm = lib.nn.LayerNorm(8)

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = (
                each(x).view(b, t, 2, 4).transpose(1, 2) for each in (self.q, self.k, self.v)
            )
            scores = lib.nn.functional.softmax(lib.matmul(q, k.transpose(-2, -1)) / 2.0, dim=-1)
            y = lib.matmul(scores, v).transpose(1, 2).reshape(b, t, c)
            return self.norm(self.out(y) + x)

    return Net()


@network(2, 3, 8, 8)
def sums(lib: Any) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = lib.nn.Conv2d(3, 3, 3, padding=1), lib.nn.Conv2d(3, 3, 1)
            self.pool, self.relu = lib.nn.MaxPool2d(2), lib.nn.ReLU()

        def forward(self, x: Any) -> Any:
            x = self.pool(x)
            y = self.relu(self.a(x) + self.b(x))
            z = lib.cat([y, self.relu(y * x)], 1)
            return z + 3, z.size(0)

    return Net()


@network(2, 3, 8, 8)
def sequence(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
        nn.ConvTranspose2d(4, 4, 3),
        nn.Sequential(nn.Conv2d(4, 4, 3), nn.LeakyReLU(), nn.Dropout(), nn.AdaptiveAvgPool2d(2)),
        nn.Flatten(),
        nn.Linear(16, 3),
        nn.Tanh(),
    )


@network(2, 3, 8, 8)
def blocks(lib: Any) -> Any:
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.bn_a = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)
            self.b, self.bn_b = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            y = self.bn_b(self.b(self.relu(self.bn_a(self.a(x)))))
            y += x
            return self.relu(y)

    return nn.Sequential(Block(), Block())


def first(result: Any) -> np.ndarray:
    return (result[0] if isinstance(result, tuple) else result).detach().numpy()


def steps(lib: Any, name: str, is_qat: bool = False, **options: Any) -> dict[str, Any]:
    fx, q = part(lib, "ao.quantization.quantize_fx"), lib.ao.quantization
    make, shape = NETWORKS[name]
    lib.manual_seed(0)
    net, x = filled(lib, make(lib)).train(is_qat), lib.tensor(values(*shape))
    mapping = options.pop("mapping", None)
    if is_qat:
        mapping = q.get_default_qat_qconfig_mapping("x86")
        prepared = fx.prepare_qat_fx(net, mapping, (x,))
        first_result = prepared(x)
        sum_of = first_result[0] if isinstance(first_result, tuple) else first_result
        sum_of.sum().backward()
        prepared.eval()
    else:
        mapping = mapping(lib) if mapping else q.get_default_qconfig_mapping("x86")
        prepared = fx.prepare_fx(net, mapping, (x,), **options)
        with lib.no_grad():
            prepared(x)
    backend = {k: v for k, v in options.items() if k == "backend_config"}
    reference = fx.convert_to_reference_fx(copy.deepcopy(prepared), **backend)
    small = fx.convert_fx(copy.deepcopy(prepared), **backend)
    with lib.no_grad():
        return {
            "prepared": nodes(prepared),
            "reference": nodes(reference),
            "small": nodes(small),
            "modules": [type(m).__name__ for n, m in small.named_modules() if n],
            "keys": sorted(small.state_dict()),
            "reference keys": sorted(reference.state_dict()),
            "results": (first(reference(x)), first(small(x))),
            "module": small,
        }


def drop_numbers(name: str) -> str:
    return name.rstrip("0123456789").rstrip("_")


@pytest.mark.parametrize("is_qat", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_steps_on_graphs(name: str, is_qat: bool) -> None:
    if is_qat and name == "sequence":
        pytest.skip("PyTorch cannot train the dropout with the same numbers")
    ours, theirs = (steps(lib, name, is_qat) for lib in LIBRARIES)
    for key in ("prepared", "reference"):
        assert ours[key] == theirs[key], key
    # Calls of torch.ops.quantized are numbered otherwise.
    assert [(op, drop_numbers(n)) for op, n, _ in ours["small"]] == [
        (op, drop_numbers(n)) for op, n, _ in theirs["small"]
    ]
    for key in ("modules", "keys", "reference keys"):
        assert [k for k in ours[key] if "PackedParams" not in k] == [
            k for k in theirs[key] if "PackedParams" not in k
        ], key
    for got, wanted in zip(ours["results"], theirs["results"], strict=True):
        scale = np.abs(wanted).max()
        assert np.abs(got - wanted).max() <= 0.03 * scale
        assert (np.abs(got - wanted) > 1e-3 * scale).mean() <= 0.2


def test_files_of_graphs_cross_over() -> None:
    ours, theirs = (steps(lib, "sequence") for lib in LIBRARIES)
    for source, target in ((ours, theirs), (theirs, ours)):
        libs = (torch, pytorch) if source is ours else (pytorch, torch)
        file = io.BytesIO()
        libs[0].save(source["module"].state_dict(), file)
        file.seek(0)
        target["module"].load_state_dict(libs[1].load(file, weights_only=False))
        x = libs[1].tensor(values(2, 3, 8, 8))
        got = target["module"](x).detach().numpy()
        assert np.abs(got - source["results"][1]).max() <= 0.02


def described(lib: Any, config: Any) -> tuple[Any, ...]:
    def name(item: Any) -> Any:
        if isinstance(item, tuple):
            return tuple(name(each) for each in item)
        if item is None or isinstance(item, str):
            return item
        return getattr(item, "__name__", str(item)).removesuffix("_")

    def dtype(given: Any) -> tuple[str, ...]:
        return tuple(str(value).removeprefix("torch.") for value in vars(given).values())

    kinds = tuple(
        (
            *(
                dtype(getattr(each, f"{part}_dtype_with_constraints"))
                for part in ("input", "output", "weight")
            ),
            str(each.bias_dtype),
            each.is_dynamic,
        )
        for each in config.dtype_configs
    )
    pattern = config.pattern if config.pattern is not None else config._pattern_complex_format
    modules = (config.root_module, config.qat_module, config.reference_quantized_module)
    return name(pattern), config.observation_type.name, kinds, *map(name, modules)


@pytest.mark.parametrize(
    "name", ["native", "fbgemm", "x86", "qnnpack", "onednn", "tensorrt", "executorch"]
)
def test_back_ends_have_the_same_patterns(name: str) -> None:
    found = []
    for lib in LIBRARIES:
        part(lib, "ao.quantization.quantize_fx")
        module = part(lib, f"ao.quantization.backend_config.{name}")
        config = getattr(module, f"get_{name}_backend_config")()
        found.append({described(lib, each) for each in config.configs})
    ours, theirs = found
    # PyTorch has functions twice: torch.relu and F.relu, add_relu by operator.add and torch.add.
    unlike = {each for each in ours ^ theirs if "fn" not in str(each[0])}
    unlike = {each for each in unlike if each[0] not in ("size", "shape", "permute_copy")}
    assert not [each for each in unlike if "relu" not in str(each[0])]


def small_backend(lib: Any) -> Any:
    b, nnr = part(lib, "ao.quantization.backend_config"), part(lib, "ao.nn.quantized.reference")
    int8 = b.DTypeConfig(lib.quint8, lib.quint8, lib.qint8, lib.float)
    linear = (
        b.BackendPatternConfig(lib.nn.Linear)
        .add_dtype_config(int8)
        .set_root_module(lib.nn.Linear)
        .set_reference_quantized_module(nnr.Linear)
    )
    shares = b.ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
    added = b.BackendPatternConfig(operator.add).set_dtype_configs(
        [b.DTypeConfig(lib.quint8, lib.quint8)]
    )
    flat = b.BackendPatternConfig(lib.nn.Flatten).set_observation_type(shares)
    flat.add_dtype_config(b.DTypeConfig(lib.quint8, lib.quint8))
    config = b.BackendConfig("mine").set_backend_pattern_configs([linear, added, flat])
    return b.BackendConfig.from_dict(config.to_dict())


@pytest.mark.parametrize("name", ["sequence", "attention", "sums"])
def test_a_back_end_says_what_is_quantized(name: str) -> None:
    ours, theirs = (
        steps(lib, name, backend_config=small_backend(lib)) for lib in LIBRARIES
    )  # fmt: skip
    for key in ("prepared", "reference", "keys"):
        assert ours[key] == theirs[key], key
    np.testing.assert_allclose(ours["results"][1], theirs["results"][1], atol=0.05)


def signed(lib: Any) -> Any:
    q = lib.ao.quantization
    return q.QConfigMapping().set_global(q.default_symmetric_qnnpack_qconfig)


@pytest.mark.parametrize("backend", ["qnnpack", "executorch"])
def test_bounds_of_back_ends(backend: str) -> None:
    def program(lib: Any, mapping: Any) -> Any:
        part(lib, "ao.quantization.quantize_fx")
        module = part(lib, f"ao.quantization.backend_config.{backend}")
        config = getattr(module, f"get_{backend}_backend_config")()
        fx = part(lib, "ao.quantization.quantize_fx")
        make, shape = NETWORKS["sums"]
        x = lib.tensor(values(*shape))
        net = filled(lib, make(lib)).eval()
        prepared = fx.prepare_fx(net, mapping(lib), (x,), backend_config=config)
        texts = nodes(prepared)
        prepared(x)
        reference = fx.convert_to_reference_fx(prepared, backend_config=config)
        return texts, nodes(reference), first(reference(x))

    def tiny(lib: Any) -> Any:  # scales that are smaller than these back ends take
        q = lib.ao.quantization
        observer = q.MinMaxObserver.with_args(dtype=lib.qint8, eps=1e-6)
        return q.QConfigMapping().set_global(q.QConfig(observer, q.default_weight_observer))

    for mapping in (signed, tiny):
        ours, theirs = (program(lib, mapping) for lib in LIBRARIES)
        assert ours[:2] == theirs[:2]
        np.testing.assert_allclose(ours[2], theirs[2], atol=0.05)
    assert not any("activation_post_process" in name for _, name, _ in ours[0])


def onednn_net(lib: Any) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.bn = lib.nn.Conv2d(3, 3, 3, padding=1), lib.nn.BatchNorm2d(3)
            self.b, self.relu = lib.nn.Conv2d(3, 3, 1), lib.nn.ReLU()
            self.fc, self.act = lib.nn.Linear(8, 4), lib.nn.LeakyReLU(0.2)
            self.out, self.tanh = lib.nn.Linear(4, 2), lib.nn.Tanh()

        def forward(self, x: Any) -> Any:
            y = self.relu(self.bn(self.a(x)) + x)
            y = lib.add(x, self.b(y))
            return self.tanh(self.out(self.act(self.fc(y))))

    return filled(lib, Net()).eval()


def test_sums_behind_convolutions_are_fused_for_onednn() -> None:
    def program(lib: Any) -> Any:
        lib.backends.quantized.engine = "onednn"
        fx, q = part(lib, "ao.quantization.quantize_fx"), lib.ao.quantization
        config = part(lib, "ao.quantization.backend_config.onednn").get_onednn_backend_config()
        mapping = q.QConfigMapping().set_global(q.get_default_qconfig("onednn"))
        x = lib.tensor(values(2, 3, 8, 8))
        prepared = fx.prepare_fx(onednn_net(lib), mapping, (x,), backend_config=config)
        exact = prepared(x).detach().numpy()
        small = fx.convert_fx(prepared, backend_config=config)
        return {type(m).__name__ for m in small.modules()}, small(x).detach().numpy(), exact

    (ours, got, exact), (theirs, wanted, _) = program(torch), program(pytorch)
    fused = {"ConvAdd2d", "ConvAddReLU2d", "LinearLeakyReLU", "LinearTanh"}
    assert fused <= ours and fused <= theirs
    assert np.abs(got - exact).max() <= 2 * max(np.abs(wanted - exact).max(), 0.02)


def custom_classes(lib: Any) -> tuple[Any, Any, Any]:
    class Float(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = lib.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return self.fc(x)

    class Observed(Float):
        @classmethod
        def from_float(cls, mod: Any) -> Any:
            result = cls()
            result.fc, result.qconfig = mod.fc, mod.qconfig
            result.fc.qconfig = mod.qconfig
            return result

    class Quantized(Float):
        @classmethod
        def from_observed(cls, mod: Any) -> Any:
            result = cls()
            mod.fc.activation_post_process = mod.activation_post_process
            result.fc = lib.ao.nn.quantized.Linear.from_float(mod.fc)
            return result

    return Float, Observed, Quantized


def test_classes_of_the_users() -> None:
    def program(lib: Any) -> Any:
        fx, q = part(lib, "ao.quantization.quantize_fx"), lib.ao.quantization
        custom = part(lib, "ao.quantization.fx.custom_config")
        kinds = custom_classes(lib)
        net = filled(lib, lib.nn.Sequential(lib.nn.Linear(4, 4), kinds[0]())).eval()
        x = lib.tensor(values(3, 4))
        before = custom.PrepareCustomConfig().set_float_to_observed_mapping(*kinds[:2])
        prepared = fx.prepare_fx(net, q.get_default_qconfig_mapping("x86"), (x,), before)
        texts = nodes(prepared)
        prepared(x)
        after = custom.ConvertCustomConfig().set_observed_to_quantized_mapping(*kinds[1:])
        small = fx.convert_fx(prepared, after)
        return texts, nodes(small), small(x).numpy()

    ours, theirs = program(torch), program(pytorch)
    assert ours[:2] == theirs[:2]
    np.testing.assert_allclose(ours[2], theirs[2], atol=1e-6)


def test_networks_inside_and_quantized_ends() -> None:
    def program(lib: Any) -> Any:
        nn, q = lib.nn, lib.ao.quantization
        fx = part(lib, "ao.quantization.quantize_fx")
        custom = part(lib, "ao.quantization.fx.custom_config")
        inside = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
        net, x = (
            filled(lib, nn.Sequential(nn.Linear(4, 4), inside)).eval(),
            lib.tensor(values(2, 4)),
        )
        mapping = q.get_default_qconfig_mapping("x86")
        config = custom.PrepareCustomConfig()
        config.set_standalone_module_name("1", None, (x,), None, None)
        prepared = fx.prepare_fx(net, mapping, (x,), config)
        prepared(x)
        small = fx.convert_fx(prepared)
        texts = nodes(small), nodes(small.get_submodule("1"))
        ends = {"input_quantized_idxs": [0], "output_quantized_idxs": [0]}
        prepared = fx.prepare_fx(net, mapping, (x,), ends)
        prepared(x)
        small = fx.convert_fx(prepared)
        y = small(lib.quantize_per_tensor(x, 0.05, 60, lib.quint8))
        return *texts, nodes(small), y.int_repr().numpy()

    ours, theirs = program(torch), program(pytorch)
    assert ours[:3] == theirs[:3]
    assert np.abs(ours[3].astype(int) - theirs[3]).max() <= 1


def test_which_qconfig_a_node_has() -> None:
    def program(lib: Any) -> Any:
        nn, q = lib.nn, lib.ao.quantization
        fx = part(lib, "ao.quantization.quantize_fx")

        class Inner(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fc = nn.Linear(4, 4)

            def forward(self, x: Any) -> Any:
                return lib.matmul(self.fc(x), x) + x

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b, self.c = Inner(), Inner(), nn.Linear(4, 4)

            def forward(self, x: Any) -> Any:
                return lib.sigmoid(self.c(self.b(self.a(x)) * x)).reshape(2, 8)

        results = []
        x, default = lib.tensor(values(4, 4)), q.get_default_qconfig("x86")
        for change in (
            lambda m: m.set_module_name("a", None),
            lambda m: m.set_module_name_regex("b.*", None),
            lambda m: m.set_object_type(Inner, None),
            lambda m: m.set_object_type(lib.matmul, None),
            lambda m: m.set_object_type("reshape", None),
            lambda m: m.set_module_name_object_type_order("b", nn.Linear, 0, None),
            lambda m: m.set_module_name_object_type_order("a", lib.matmul, 0, None),
        ):
            mapping = q.get_default_qconfig_mapping("x86").set_global(default)
            net = filled(lib, Net()).eval()
            results.append(nodes(fx.prepare_fx(net, change(mapping), (x,))))
        return results

    for ours, theirs in zip(program(torch), program(pytorch), strict=True):
        assert ours == theirs


def test_reference_layers() -> None:
    def program(lib: Any) -> Any:
        nnr = part(lib, "ao.nn.quantized.reference")
        form = {
            "qscheme": lib.per_channel_affine,
            "dtype": lib.qint8,
            "scale": lib.tensor([0.02, 0.03]),
            "zero_point": lib.tensor([0, 0]),
            "axis": 0,
            "is_decomposed": False,
        }
        linear = nnr.Linear.from_float(filled(lib, lib.nn.Linear(3, 2)), form)
        conv = nnr.Conv1d.from_float(filled(lib, lib.nn.Conv1d(2, 2, 3)), form)
        lstm = filled(lib, lib.nn.LSTM(3, 2))
        forms = {
            name: {
                "qscheme": lib.per_tensor_affine,
                "dtype": lib.qint8,
                "scale": lib.tensor(0.02),
                "zero_point": lib.tensor(0),
                "axis": lib.tensor(0),
                "is_decomposed": False,
            }
            for name in ("weight_ih_l0", "weight_hh_l0")
        }
        lstm = nnr.LSTM.from_float(lstm, {**forms, "is_decomposed": False})
        x = lib.tensor(values(2, 2, 3))
        outputs = [linear(x), conv(x), lstm(x)[0], linear.get_quantized_weight().dequantize()]
        states = [
            (name, str(value))
            for layer in (linear, conv)
            for name, value in layer.state_dict().items()
            if not name.endswith(("weight", "bias"))
        ]
        texts = [repr(linear), repr(conv), repr(lstm), list(lstm.state_dict())]
        return texts, states, [y.detach().numpy() for y in outputs]

    (texts, states, got), (wanted_texts, wanted_states, wanted) = map(program, LIBRARIES)
    assert (texts, states) == (wanted_texts, wanted_states)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
