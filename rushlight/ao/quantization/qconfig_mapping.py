"""QConfigMapping: which part of a network has which QConfig."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

import rushlight as rl
from rushlight import nn
from rushlight.ao.quantization.fake_quantize import (
    FixedQParamsFakeQuantize,
    default_weight_fake_quant,
)
from rushlight.ao.quantization.observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from rushlight.ao.quantization.qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)
from rushlight.nn import functional as F

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]


class QConfigMapping:
    """The QConfig of each part of a network: what names it more exactly counts more.

    In rising order: set_global, set_object_type, set_module_name_regex, set_module_name,
    set_module_name_object_type_order. A QConfig of None leaves a part in floats.

    Example:
        >>> from rushlight.ao.quantization import QConfigMapping, get_default_qconfig
        >>> mapping = QConfigMapping().set_global(get_default_qconfig())
        >>> mapping = mapping.set_object_type(torch.nn.Linear, None)
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Any, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[Any, Any] = OrderedDict()

    def set_global(self, global_qconfig: Any) -> Self:
        """Sets that of everything."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Callable[..., Any] | str, qconfig: Any) -> Self:
        """Sets that of a class of modules, a function, or a method by its name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> Self:
        """Sets that of modules whose whole name matches; the first that matches counts."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> Self:
        """Sets that of a module and all inside it."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Callable[..., Any], index: int, qconfig: Any
    ) -> Self:
        """Sets that of the index-th use of a type directly in a module."""
        key = (module_name, object_type, index)
        self.module_name_object_type_order_qconfigs[key] = qconfig
        return self

    def find(
        self, name: str, object_type: Any, index: int = 0, scope: str = "", around: Any = None
    ) -> Any:
        """Returns the QConfig of a module, or of a call inside one.

        Args:
            name: the module's name.
            object_type: its class, the function that is called, or the method's name.
            index: how often the type has been used before in `scope`.
            scope: the module around.
            around: for a call, the class of the module in which it is.
        """
        ordered = self.module_name_object_type_order_qconfigs
        if (scope, object_type, index) in ordered:
            return ordered[scope, object_type, index]
        parent = name
        while parent:
            if parent in self.module_name_qconfigs:
                return self.module_name_qconfigs[parent]
            parent = parent.rpartition(".")[0]
        for regex, qconfig in self.module_name_regex_qconfigs.items():
            if re.fullmatch(regex, name):
                return qconfig
        by_type = self.object_type_qconfigs
        return by_type.get(around, by_type.get(object_type, self.global_qconfig))

    def to_dict(self) -> dict[str, Any]:
        """Returns the older form: a dict of lists of pairs."""
        return {
            "": self.global_qconfig,
            "object_type": list(self.object_type_qconfigs.items()),
            "module_name_regex": list(self.module_name_regex_qconfigs.items()),
            "module_name": list(self.module_name_qconfigs.items()),
            "module_name_object_type_order": [
                (*key, value) for key, value in self.module_name_object_type_order_qconfigs.items()
            ],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """Returns the mapping of the older form, a dict of lists of pairs."""
        result = cls().set_global(qconfig_dict.get(""))
        result.object_type_qconfigs.update(qconfig_dict.get("object_type", []))
        result.module_name_regex_qconfigs.update(qconfig_dict.get("module_name_regex", []))
        result.module_name_qconfigs.update(qconfig_dict.get("module_name", []))
        for *key, qconfig in qconfig_dict.get("module_name_object_type_order", []):
            result.module_name_object_type_order_qconfigs[tuple(key)] = qconfig
        return result

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name, value in vars(self).items():
            lines.append(f" {name}")
            items = value.items() if isinstance(value, OrderedDict) else ()
            lines += [f"  {key}: {qconfig}" for key, qconfig in items] or [f"  {value}"]
        return "\n".join([*lines, ")"])


_RANGES: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (
        default_fixed_qparams_range_0to1_observer,
        (
            nn.Hardsigmoid,
            F.hardsigmoid,
            "hardsigmoid",
            "hardsigmoid_",
            nn.Sigmoid,
            rl.sigmoid,
            "sigmoid",
            "sigmoid_",
            nn.Softmax,
        ),
    ),
    (
        default_fixed_qparams_range_neg1to1_observer,
        (nn.Tanh, rl.tanh, "tanh", "tanh_"),
    ),
)


def _mapping(qconfig: QConfig, is_qat: bool, backend: str) -> QConfigMapping:
    weight = default_weight_fake_quant if is_qat else default_weight_observer
    result = QConfigMapping().set_global(qconfig)
    result.set_object_type("reshape", default_reuse_input_qconfig)
    by_tensor = QConfig(qconfig.activation, weight) if backend in ("fbgemm", "x86") else qconfig
    for kind in (
        nn.ConvTranspose1d,
        nn.ConvTranspose2d,
        nn.ConvTranspose3d,
        F.conv_transpose1d,
        F.conv_transpose2d,
        F.conv_transpose3d,
    ):
        result.set_object_type(kind, by_tensor)
    for kind in (F.layer_norm, nn.LayerNorm):
        result.set_object_type(kind, QConfig(qconfig.activation, default_placeholder_observer))
    result.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for observer, kinds in _RANGES:
        known = FixedQParamsFakeQuantize.with_args(observer=observer) if is_qat else observer
        for kind in kinds:
            result.set_object_type(kind, QConfig(known, weight))
    return result


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """Returns the mapping for quantization after training; see get_default_qconfig."""
    return _mapping(get_default_qconfig(backend, version), False, backend)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """Returns the mapping for training with quantization; see get_default_qat_qconfig."""
    return _mapping(get_default_qat_qconfig(backend, version), True, backend)
