"""The steps from a network of floats to one of integers, on its graph.

prepare_fx records the network, fuses layers with what follows them and puts observers where
numbers will be rounded; convert_fx replaces what was observed. Where tensors become quantized and
floats again follows from the graph, so that no stubs are needed. What is quantized is said by a
BackendConfig; the steps themselves are in the package fx.
"""

from __future__ import annotations

from typing import Any

from rushlight import fx, nn
from rushlight.ao.quantization.backend_config import BackendConfig, get_native_backend_config
from rushlight.ao.quantization.fx._conversion import convert_graph
from rushlight.ao.quantization.fx._fusion import fuse_graph
from rushlight.ao.quantization.fx._lowering import lower
from rushlight.ao.quantization.fx._preparation import prepare_graph, traced
from rushlight.ao.quantization.fx.custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
)
from rushlight.ao.quantization.qconfig_mapping import QConfigMapping

__all__ = [
    "ConvertCustomConfig",
    "FuseCustomConfig",
    "PrepareCustomConfig",
    "convert_fx",
    "convert_to_reference_fx",
    "fuse_fx",
    "prepare_fx",
    "prepare_qat_fx",
]


def _given(kind: Any, value: Any, name: str) -> Any:
    """An object of a class: itself, made of its older form, a dict, or an empty one for None."""
    if value is None:
        return kind()
    if isinstance(value, dict):
        return kind.from_dict(value)
    if not isinstance(value, kind):
        raise TypeError(f"{name}: expected a {kind.__name__}, but got {type(value).__name__}.")
    return value


def _backend(value: Any, name: str) -> BackendConfig:
    return get_native_backend_config() if value is None else _given(BackendConfig, value, name)


def fuse_fx(
    model: nn.Module, fuse_custom_config: Any = None, backend_config: Any = None
) -> fx.GraphModule:
    """Returns the graph of a network in evaluation with batch norms folded in, and relus fused.

    Args:
        model: the network.
        fuse_custom_config: a FuseCustomConfig, or its older form, a dict.
        backend_config: a BackendConfig, which says what is fused to what.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
        >>> graph = torch.ao.quantization.quantize_fx.fuse_fx(network.eval())
        >>> [node.target for node in graph.graph.nodes]
        ['input', '0', 'output']
    """
    custom = _given(FuseCustomConfig, fuse_custom_config, "fuse_fx")
    kept = PrepareCustomConfig().set_preserved_attributes(custom.preserved_attributes)
    result = traced(model, kept)
    fuse_graph(result, False, _backend(backend_config, "fuse_fx"))
    return result


def prepare_fx(
    model: nn.Module,
    qconfig_mapping: Any,
    example_inputs: Any,
    prepare_custom_config: Any = None,
    _equalization_config: Any = None,
    backend_config: Any = None,
) -> fx.GraphModule:
    """Returns a network with observers, to be run on examples.

    Args:
        model: the network in evaluation; it must be possible to record it (torch.fx).
        qconfig_mapping: a QConfigMapping, or its older form, a dict.
        example_inputs: a tuple of inputs, which tell tensors from numbers in the graph.
        prepare_custom_config: a PrepareCustomConfig, or its older form, a dict.
        backend_config: a BackendConfig, which says what is fused and quantized, and how.

    Returns:
        A GraphModule; give it to convert_fx when it has seen examples.

    Example:
        >>> from rushlight.ao.quantization import get_default_qconfig_mapping
        >>> from rushlight.ao.quantization.quantize_fx import convert_fx, prepare_fx
        >>> network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU()).eval()
        >>> x = torch.randn(16, 4)
        >>> prepared = prepare_fx(network, get_default_qconfig_mapping(), (x,))
        >>> y = prepared(x)
        >>> small = convert_fx(prepared)
        >>> bool((small(x) - y).abs().max() < 0.05)
        True
    """
    return _prepare(
        model, qconfig_mapping, False, example_inputs, prepare_custom_config, backend_config
    )


def prepare_qat_fx(
    model: nn.Module,
    qconfig_mapping: Any,
    example_inputs: Any,
    prepare_custom_config: Any = None,
    backend_config: Any = None,
) -> fx.GraphModule:
    """Returns a network that rounds weights and results, to be trained; see prepare_fx."""
    return _prepare(
        model, qconfig_mapping, True, example_inputs, prepare_custom_config, backend_config
    )


def _prepare(
    model: nn.Module, mapping: Any, is_qat: bool, example_inputs: Any, custom: Any, backend: Any
) -> fx.GraphModule:
    if mapping is None:
        raise TypeError("prepare_fx: qconfig_mapping must be a QConfigMapping, but is None.")
    return prepare_graph(
        model,
        _given(QConfigMapping, mapping, "prepare_fx"),
        is_qat,
        example_inputs,
        _given(PrepareCustomConfig, custom, "prepare_fx"),
        _backend(backend, "prepare_fx"),
    )


def convert_fx(
    graph_module: fx.GraphModule,
    convert_custom_config: Any = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: Any = None,
    backend_config: Any = None,
    keep_original_weights: bool = False,
) -> fx.GraphModule:
    """Returns the quantized network of one that was prepared and has seen examples.

    Args:
        graph_module: what prepare_fx returned, or prepare_qat_fx, trained and in evaluation.
        convert_custom_config: a ConvertCustomConfig, or its older form, a dict.
        backend_config: the BackendConfig that prepare_fx was given.

    Returns:
        A GraphModule. Its state_dict holds integers and scales; it can be loaded into a network
        that went through the same steps.
    """
    custom = _given(ConvertCustomConfig, convert_custom_config, "convert_fx")
    backend = _backend(backend_config, "convert_fx")
    return convert_graph(graph_module, custom, backend, _remove_qconfig, lower)


def convert_to_reference_fx(
    graph_module: fx.GraphModule,
    convert_custom_config: Any = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: Any = None,
    backend_config: Any = None,
) -> fx.GraphModule:
    """Returns the reference network of one that was prepared: floats, rounded as integers will be.

    Layers are those of torch.ao.nn.quantized.reference, each between dequantize and
    quantize_per_tensor: what a back end with kernels of its own reads.

    Args:
        graph_module: what prepare_fx returned, or prepare_qat_fx, trained and in evaluation.
        convert_custom_config: a ConvertCustomConfig, or its older form, a dict.
        backend_config: the BackendConfig that prepare_fx was given.

    Example:
        >>> from rushlight.ao.quantization.quantize_fx import convert_to_reference_fx, prepare_fx
        >>> network, x = torch.nn.Sequential(torch.nn.Linear(4, 2)).eval(), torch.ones(1, 4)
        >>> mapping = torch.ao.quantization.get_default_qconfig_mapping()
        >>> prepared = prepare_fx(network, mapping, (x,))
        >>> y = prepared(x)
        >>> convert_to_reference_fx(prepared).get_submodule("0")
        QuantizedLinear(Reference)(in_features=4, out_features=2, bias=True)
    """
    custom = _given(ConvertCustomConfig, convert_custom_config, "convert_to_reference_fx")
    backend = _backend(backend_config, "convert_to_reference_fx")
    return convert_graph(graph_module, custom, backend, _remove_qconfig, lambda root: root)
