"""The steps from a network of floats to one of integers, module by module.

prepare() puts observers behind layers, the user runs the network on examples, convert() replaces
the layers. What the network does between layers is its own code: QuantStub, DeQuantStub and
FloatFunctional mark where tensors become quantized, floats again, or are joined.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.quantized._packed import qparams_of, weight_observer_of
from rushlight.ao.nn.quantized.reference._base import ReferenceQuantizedModule
from rushlight.ao.quantization.fake_quantize import (
    FakeQuantizeBase,
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from rushlight.ao.quantization.observer import ObserverBase
from rushlight.ao.quantization.qconfig import (
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
)
from rushlight.ao.quantization.quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    no_observer_set,
)
from rushlight.ao.quantization.stubs import DeQuantStub, QuantWrapper
from rushlight.nn.modules.conv import _ConvTransposeNd

__all__ = [
    "add_quant_dequant",
    "convert",
    "default_eval_fn",
    "get_default_custom_config_dict",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]


def get_default_custom_config_dict() -> dict[str, dict[Any, Any]]:
    """Returns the classes that stand for layers of several parts in prepare() and convert()."""
    from rushlight.ao.nn import quantizable as nnqa

    return {
        "float_to_observed_custom_module_class": {
            nn.LSTM: nnqa.LSTM,
            nn.MultiheadAttention: nnqa.MultiheadAttention,
        },
        "observed_to_quantized_custom_module_class": {
            nnqa.LSTM: nnq.LSTM,
            nnqa.MultiheadAttention: nnq.MultiheadAttention,
        },
    }


def propagate_qconfig_(
    module: nn.Module,
    qconfig_dict: dict[Any, Any] | None = None,
    prepare_custom_config_dict: Any = None,
) -> None:
    """Gives each module the qconfig of the module around it, unless it has its own.

    Args:
        module: the network; its attribute qconfig is for all that is in it.
        qconfig_dict: qconfigs by name or class of modules, before those around them.
    """
    _propagate(module, qconfig_dict or {}, getattr(module, "qconfig", None), "")


def _propagate(module: Any, by_key: dict[Any, Any], around: Any, name: str) -> None:
    qconfig = by_key.get(name, by_key.get(type(module), getattr(module, "qconfig", around)))
    if isinstance(module, _ConvTransposeNd) and getattr(qconfig, "weight", None) is not None:
        _check_by_tensor(module, qconfig)
    module.qconfig = qconfig
    for child_name, child in module.named_children():
        _propagate(child, by_key, qconfig, f"{name}.{child_name}" if name else child_name)


def _check_by_tensor(module: nn.Module, qconfig: Any) -> None:
    if getattr(qconfig.weight(), "ch_axis", -1) >= 0:
        raise AssertionError(
            f"prepare: Per channel weight observer is not supported yet for {type(module).__name__}"
            ". Give it a qconfig with default_weight_observer."
        )


def _observe_result(module: nn.Module, _inputs: Any, result: Any) -> Any:
    return module.activation_post_process(result)


def _is_observer(module: Any) -> bool:
    return isinstance(module, ObserverBase | FakeQuantizeBase)


# What rounds the results of layers in training whose range is known.
_FIXED = {
    **dict.fromkeys(
        (nn.Hardsigmoid, nn.Sigmoid, nn.Softmax), default_fixed_qparams_range_0to1_fake_quant
    ),
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


def _add_observer(module: Any) -> None:
    """Puts an observer behind a module; it leaves with the module when that is replaced."""
    if getattr(module, "qconfig", None) is None or isinstance(module, DeQuantStub):
        return
    observer = (_FIXED.get(type(module)) if module.training else None) or module.qconfig.activation
    module.add_module("activation_post_process", observer())
    module.register_forward_hook(_observe_result, prepend=True)


def _add_observers(module: nn.Module, kinds: set[Any], non_leaf: Any, custom: Any) -> None:
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Dropout) or _is_observer(child):
            continue
        if isinstance(child, nnq.FloatFunctional | nnq.QFunctional):
            if getattr(child, "qconfig", None) is not None:
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, nni._FusedModule) or type(child) in (non_leaf or ()):
            _add_observer(child)
        elif type(child) in custom and getattr(child, "qconfig", None) is not None:
            observed = custom[type(child)].from_float(child)
            setattr(module, name, observed)
            if type(observed) not in no_observer_set():
                _add_observer(observed)
        else:
            _add_observers(child, kinds, non_leaf, custom)
    parts = [c for n, c in module.named_children() if n not in ("weight_fake_quant", "bn")]
    is_known = module.training and type(module) in _FIXED
    if (is_known or type(module) in kinds) and not parts and not isinstance(module, nn.Sequential):
        _add_observer(module)


def add_quant_dequant(module: Any) -> Any:
    """Returns a network whose layers with a qconfig stand between stubs of their own."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        setattr(module, name, add_quant_dequant(child))
    return module


def prepare(
    model: Any,
    inplace: bool = False,
    allow_list: set[Any] | None = None,
    observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: dict[str, Any] | None = None,
) -> Any:
    """Returns a network with observers behind its layers, to be run on examples.

    Args:
        model: the network, with attributes qconfig on itself or parts of it.
        inplace: changes the network itself.
        allow_list: the classes that are observed, if not all that can be quantized.
        observer_non_leaf_module_list: classes that are observed though they have modules inside.
        prepare_custom_config_dict: {"float_to_observed_custom_module_class": {class: class}}.

    Example:
        >>> from rushlight.ao.quantization import QuantWrapper, convert, default_qconfig, prepare
        >>> network = QuantWrapper(torch.nn.Linear(2, 2)).eval()
        >>> network.qconfig = default_qconfig
        >>> network = prepare(network)
        >>> y = network(torch.ones(1, 2))
        >>> convert(network).module
        QuantizedLinear(in_features=2, out_features=2, ...)
    """
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration "
            "through `qconfig_dict` or by assigning the `.qconfig` attribute directly on "
            "submodules",
            stacklevel=2,
        )
    kinds = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    config = prepare_custom_config_dict
    config = get_default_custom_config_dict() if config is None else config
    custom = config.get("float_to_observed_custom_module_class", {})
    _add_observers(model, kinds, observer_non_leaf_module_list, custom)
    return model


def prepare_qat(model: Any, mapping: dict[Any, Any] | None = None, inplace: bool = False) -> Any:
    """Returns a network whose layers round weights and results, to be trained.

    Args:
        model: the network in training, with attributes qconfig.
        mapping: the class that replaces each class of layers.
        inplace: changes the network itself.

    Raises:
        AssertionError: if the network is not in training.
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    swaps = get_default_qat_module_mappings() if mapping is None else mapping
    _convert(model, swaps, {})
    return prepare(model, inplace=True, observer_non_leaf_module_list=set(swaps.values()))


def quantize(
    model: Any,
    run_fn: Callable[..., Any],
    run_args: Any,
    mapping: Any = None,
    inplace: bool = False,
) -> Any:
    """Returns the quantized network: prepare, run_fn(model, *run_args), convert."""
    model = prepare(model if inplace else copy.deepcopy(model), inplace=True).eval()
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_qat(
    model: Any, run_fn: Callable[..., Any], run_args: Any, inplace: bool = False
) -> Any:
    """Returns the network quantized and trained: prepare_qat, run_fn(model, *run_args), convert."""
    model = (model if inplace else copy.deepcopy(model)).train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def quantize_dynamic(
    model: Any,
    qconfig_spec: Any = None,
    dtype: Any = None,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
) -> Any:
    """Returns a network whose layers have 8-bit weights, and take and give floats.

    Args:
        model: the network.
        qconfig_spec: classes or names of modules to quantize, or a dict of their qconfigs; linear
            and recurrent layers if None.
        dtype: torch.qint8 for weights; float16 for weights that lose digits, quint8 for tables of
            embeddings.
        mapping: the class that replaces each class of layers.
        inplace: changes the network itself.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
        >>> torch.ao.quantization.quantize_dynamic(network, {torch.nn.Linear}, torch.qint8)[0]
        DynamicQuantizedLinear(in_features=4, out_features=2, dtype=torch.qint8, ...)
    """
    dtype = rl.qint8 if dtype is None else dtype
    defaults: dict[Any, tuple[Any, tuple[Any, ...]]] = {
        rl.qint8: (
            default_dynamic_qconfig,
            (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell),
        ),
        rl.float16: (float16_dynamic_qconfig, (nn.Linear,)),
        rl.quint8: (float_qparams_weight_only_qconfig, (nn.EmbeddingBag, nn.Embedding)),
    }
    if not isinstance(qconfig_spec, dict):
        if dtype not in defaults:
            raise RuntimeError(
                f"quantize_dynamic: Don't know how to quantize with default settings for {dtype}. "
                "Provide full qconfig please"
            )
        qconfig, kinds = defaults[dtype]
        qconfig_spec = dict.fromkeys(kinds if qconfig_spec is None else qconfig_spec, qconfig)
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    swaps = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    return convert(model, swaps, inplace=True)


def convert(
    module: Any,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: dict[str, Any] | None = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """Returns a network with its observed layers replaced by quantized ones.

    Args:
        module: what prepare() returned, after it has seen examples, or prepare_qat(), trained.
        mapping: the class that replaces each class of layers.
        inplace: changes the network itself.
        remove_qconfig: takes the attributes qconfig away.
        is_reference: puts the layers of torch.ao.nn.quantized.reference, which take floats, where
            layers with weights were: what a back end starts from.
        convert_custom_config_dict: {"observed_to_quantized_custom_module_class": {class: class}}.
    """
    if not inplace:
        module = copy.deepcopy(module)
    config = convert_custom_config_dict
    config = get_default_custom_config_dict() if config is None else config
    custom = config.get("observed_to_quantized_custom_module_class", {})
    default = (
        get_default_static_quant_reference_module_mappings()
        if is_reference
        else get_default_static_quant_module_mappings()
    )
    _convert(module, default if mapping is None else mapping, custom)
    if remove_qconfig:
        _clean(module)
    return module


def _convert(module: nn.Module, mapping: dict[Any, Any], custom: dict[Any, Any]) -> None:
    for name, child in list(module.named_children()):
        is_one = isinstance(child, nni._FusedModule) or type(child) in mapping
        if not is_one and type(child) not in custom:
            _convert(child, mapping, custom)
        setattr(module, name, swap_module(child, mapping, custom))


def _clean(module: Any) -> None:
    """Takes away what preparation left: qconfigs, and observers of modules that stay."""
    for part in module.modules():
        vars(part).pop("qconfig", None)
        if _is_observer(part._modules.get("activation_post_process")):
            del part._modules["activation_post_process"]
        hooks = part._forward_hooks
        for key in [k for k, hook in hooks.items() if hook is _observe_result]:
            del hooks[key]


def swap_module(
    mod: Any,
    mapping: dict[Any, Any],
    custom_module_class_mapping: dict[Any, Any] | None = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """Returns what takes the place of a module that has a qconfig, or the module."""
    if getattr(mod, "qconfig", None) is None:
        return mod
    custom = custom_module_class_mapping or {}
    if type(mod) in custom:
        result = custom[type(mod)].from_observed(mod)
    elif type(mod) in mapping:
        kind = mapping[type(mod)]
        is_reference = issubclass(kind, ReferenceQuantizedModule)
        result = kind.from_float(mod, *([weight_forms(mod)] if is_reference else []))
    else:
        return mod
    for key, hook in mod._forward_pre_hooks.items():
        result._forward_pre_hooks[key] = hook
    for key, hook in mod._forward_hooks.items():
        if hook is not _observe_result:
            result._forward_hooks[key] = hook
    return result


def weight_forms(mod: Any) -> Any:
    """The form of a layer's weight by its qconfig; of several weights, that of each."""
    names = [name for name in mod._parameters if name.startswith("weight")]
    observers = [weight_observer_of(mod, getattr(mod, name)) for name in names]
    forms = dict(zip(names, map(qparams_of, observers), strict=True))
    return forms["weight"] if names == ["weight"] else forms


def default_eval_fn(model: nn.Module, calib_data: Any) -> None:
    """Runs a network on pairs of inputs and targets."""
    for data, _target in calib_data:
        model(data)
