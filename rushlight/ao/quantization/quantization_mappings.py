"""Which class takes the place of which when a network is prepared or converted."""

from __future__ import annotations

from typing import Any

from rushlight import nn
from rushlight._quantized_library import function_of
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.intrinsic import qat as nniqat
from rushlight.ao.nn.intrinsic import quantized as nniq
from rushlight.ao.nn.intrinsic.quantized import dynamic as nniqd
from rushlight.ao.nn.quantized import dynamic as nnqd
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.ao.quantization.stubs import DeQuantStub, QuantStub
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "get_default_compare_output_module_list",
    "get_default_dynamic_quant_module_mappings",
    "get_default_float_to_quantized_operator_mappings",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings",
    "get_default_static_quant_reference_module_mappings",
    "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings",
    "get_embedding_static_quant_module_mappings",
    "get_quantized_operator",
    "get_static_quant_module_class",
    "no_observer_set",
]


def _same_names(names: str, float_home: Any, home: Any) -> dict[Any, Any]:
    return {getattr(float_home, name): getattr(home, name) for name in names.split()}


DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    nnq.FloatFunctional: nnq.QFunctional,
    **_same_names(
        "BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d "
        "ConvTranspose3d ELU Embedding EmbeddingBag GroupNorm Hardswish InstanceNorm1d "
        "InstanceNorm2d InstanceNorm3d LayerNorm LeakyReLU Linear ReLU6 PReLU",
        nn,
        nnq,
    ),
    NonDynamicallyQuantizableLinear: nnq.Linear,
    **_same_names("BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU", nni, nniq),
    **_same_names("ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU", nniqat, nniq),
    **_same_names("Linear Conv1d Conv2d Conv3d", nnqat, nnq),
    nniqat.ConvBn1d: nnq.Conv1d,
    nniqat.ConvBn2d: nnq.Conv2d,
    nniqat.ConvBn3d: nnq.Conv3d,
    nniqat.ConvBnReLU1d: nniq.ConvReLU1d,
    nniqat.ConvBnReLU2d: nniq.ConvReLU2d,
    nniqat.ConvBnReLU3d: nniq.ConvReLU3d,
    nniqat.LinearBn1d: nnq.Linear,
}
DEFAULT_QAT_MODULE_MAPPINGS: dict[Any, Any] = {
    **_same_names("Conv2d Conv3d Linear", nn, nnqat),
    NonDynamicallyQuantizableLinear: nnqat.Linear,
    **nniqat.FUSED,
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    **_same_names("Linear LSTM GRU LSTMCell GRUCell RNNCell", nn, nnqd),
    NonDynamicallyQuantizableLinear: nnqd.Linear,
    nnqat.dynamic.Linear: nnqd.Linear,
    nni.LinearReLU: nniqd.LinearReLU,
    nn.EmbeddingBag: nnq.EmbeddingBag,
    nn.Embedding: nnq.Embedding,
}


# What convert(is_reference=True) replaces: layers with weights, and what goes in and out.
DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    **_same_names(
        "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding "
        "EmbeddingBag GRUCell LSTMCell RNNCell LSTM",
        nn,
        nnqr,
    ),
}


def get_default_static_quant_module_mappings() -> dict[Any, Any]:
    """Returns what convert() replaces."""
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings() -> dict[Any, Any]:
    """Returns what convert(is_reference=True) replaces."""
    return dict(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> dict[Any, Any]:
    """Returns what convert() replaces, with embeddings that were trained rounded."""
    return {
        **DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        **_same_names("EmbeddingBag Embedding", nnqat, nnq),
    }


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """Returns what prepare_qat() replaces."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> dict[Any, Any]:
    """Returns what prepare_qat() replaces, with embeddings."""
    return {**DEFAULT_QAT_MODULE_MAPPINGS, **_same_names("EmbeddingBag Embedding", nn, nnqat)}


def get_default_dynamic_quant_module_mappings() -> dict[Any, Any]:
    """Returns what quantize_dynamic() replaces."""
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def get_default_qconfig_propagation_list() -> set[Any]:
    """Returns the classes of modules that are observed."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
        nn.Sequential,
    }


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: Any = None, is_reference: bool = False
) -> Any:
    """Returns what takes the place of a class in convert()."""
    known = (
        DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS
        if is_reference
        else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    )
    return _class_in({**known, **(additional_static_quant_mapping or {})}, float_module_class)


def _class_in(mapping: dict[Any, Any], float_module_class: Any) -> Any:
    if float_module_class not in mapping:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding "
            "quantized module class"
        )
    return mapping[float_module_class]


def get_dynamic_quant_module_class(
    float_module_class: Any, additional_dynamic_quant_mapping: Any = None
) -> Any:
    """Returns what takes the place of a class in quantize_dynamic()."""
    mapping = {**DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, **(additional_dynamic_quant_mapping or {})}
    return _class_in(mapping, float_module_class)


def get_default_compare_output_module_list() -> set[Any]:
    """Returns the classes whose results torch.ao.ns compares: float, trained and quantized ones."""
    mappings = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        DEFAULT_QAT_MODULE_MAPPINGS,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )
    return {kind for mapping in mappings for pair in mapping.items() for kind in pair}


def get_default_float_to_quantized_operator_mappings() -> dict[Any, Any]:
    """Returns functions of floats, each with that of torch.ops.quantized."""
    names = ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")
    return {getattr(nn.functional, name): function_of(name) for name in names}


def get_quantized_operator(float_op: Any) -> Any:
    """Returns the function of torch.ops.quantized that does what one of floats does."""
    known = get_default_float_to_quantized_operator_mappings()
    if float_op not in known:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return known[float_op]


def no_observer_set() -> set[Any]:
    """Returns the classes of modules whose results are not observed, as their parts are."""
    from rushlight.ao.nn import quantizable as nnqa

    return {nnqa.LSTM, nnqa.MultiheadAttention}
