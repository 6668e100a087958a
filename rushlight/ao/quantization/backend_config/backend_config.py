"""What a back end computes with integers: patterns of layers and calls, and the dtypes of each.

The classes are here, the configurations of back ends beside them. What prepare_fx and convert_fx do
with them is in rushlight.ao.quantization.fx.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = [
    "BackendConfig",
    "BackendPatternConfig",
    "DTypeConfig",
    "DTypeWithConstraints",
    "ObservationType",
]


class ObservationType(Enum):
    """How a pattern is observed."""

    #: Its result has a scale of its own.
    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    #: Its result has the scale of its input, as that of pooling has.
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    #: Neither is observed, as those of size() are not.
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclass
class DTypeWithConstraints:
    """A dtype, and which observers of it will do.

    Args:
        dtype: the dtype.
        quant_min_lower_bound: the least that an observer's quant_min may be.
        quant_max_upper_bound: the most that its quant_max may be.
        scale_min_lower_bound: the least that its smallest scale, eps, may be.
        scale_max_upper_bound: not checked.
        scale_exact_match: the scale that a FixedQParamsObserver must have.
        zero_point_exact_match: the zero point that it must have.
    """

    dtype: Any = None
    quant_min_lower_bound: int | float | None = None
    quant_max_upper_bound: int | float | None = None
    scale_min_lower_bound: int | float | None = None
    scale_max_upper_bound: int | float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None


@dataclass
class DTypeConfig:
    """The dtypes that a pattern can have: those of the observers in a QConfig.

    Args:
        input_dtype: of what goes in, a dtype or a DTypeWithConstraints; any if None.
        output_dtype: of what comes out.
        weight_dtype: of the weight.
        bias_dtype: of the bias.
        is_dynamic: that scales are chosen from each input anew.

    Example:
        >>> from rushlight.ao.quantization.backend_config import DTypeConfig
        >>> DTypeConfig(input_dtype=torch.quint8, output_dtype=torch.quint8).input_dtype
        torch.quint8
    """

    input_dtype_with_constraints: DTypeWithConstraints
    output_dtype_with_constraints: DTypeWithConstraints
    weight_dtype_with_constraints: DTypeWithConstraints
    bias_dtype: Any
    is_dynamic: bool | None

    def __init__(
        self,
        input_dtype: Any = None,
        output_dtype: Any = None,
        weight_dtype: Any = None,
        bias_dtype: Any = None,
        is_dynamic: bool | None = None,
    ) -> None:
        for name, dtype in (
            ("input", input_dtype),
            ("output", output_dtype),
            ("weight", weight_dtype),
        ):
            if not isinstance(dtype, DTypeWithConstraints):
                dtype = DTypeWithConstraints(dtype)
            setattr(self, f"{name}_dtype_with_constraints", dtype)
        self.bias_dtype, self.is_dynamic = bias_dtype, is_dynamic

    @property
    def input_dtype(self) -> Any:
        """The dtype of what goes in."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self) -> Any:
        """The dtype of what comes out."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self) -> Any:
        """The dtype of the weight."""
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict: dict[str, Any]) -> DTypeConfig:
        """Returns one made of a dict of its arguments."""
        given = dict(dtype_config_dict)
        names = ("input_dtype", "output_dtype", "weight_dtype", "bias_dtype", "is_dynamic")
        return cls(*(given.get(name) for name in names))

    def to_dict(self) -> dict[str, Any]:
        """Returns the arguments that are not None as a dict."""
        result: dict[str, Any] = {}
        for name in ("input_dtype", "output_dtype", "weight_dtype"):
            if getattr(self, name) is not None:
                result[name] = getattr(self, f"{name}_with_constraints")
        for name in ("bias_dtype", "is_dynamic"):
            if getattr(self, name) is not None:
                result[name] = getattr(self, name)
        return result


class BackendPatternConfig:
    """What a back end does with one pattern.

    Args:
        pattern: a class of modules, a function, a method by its name, or a tuple of up to three of
            them, one after the other.

    Example:
        >>> from rushlight.ao.quantization import backend_config as b
        >>> int8 = b.DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float)
        >>> linear = b.BackendPatternConfig(torch.nn.Linear).add_dtype_config(int8)
    """

    def __init__(self, pattern: Any = None) -> None:
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs: list[DTypeConfig] = []
        self.root_module: Any = None
        self.qat_module: Any = None
        self.reference_quantized_module: Any = None
        self.fused_module: Any = None
        self.fuser_method: Callable[..., Any] | None = None
        self._root_node_getter: Callable[..., Any] | None = None
        self._extra_inputs_getter: Callable[..., Any] | None = None
        self._num_tensor_args_to_observation_type: dict[int, ObservationType] = {}
        self._input_type_to_index: dict[str, int] = {}
        self._pattern_complex_format: Any = None

    def __repr__(self) -> str:
        given = {k: v for k, v in vars(self).items() if v is not None and v != {} and v != []}
        return f"BackendPatternConfig({given})"

    def set_pattern(self, pattern: Any) -> BackendPatternConfig:
        """Sets the pattern."""
        self._check_single(self._pattern_complex_format)
        self.pattern = pattern
        return self

    def _set_pattern_complex_format(self, pattern: Any) -> BackendPatternConfig:
        """Sets the pattern from its end: an op, or a tuple of an op and what its arguments are."""
        self._check_single(self.pattern)
        self._pattern_complex_format = pattern
        return self

    def _check_single(self, other: Any) -> None:
        if other is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")

    def set_observation_type(self, observation_type: ObservationType) -> BackendPatternConfig:
        """Sets how the pattern is observed."""
        self.observation_type = observation_type
        return self

    def add_dtype_config(self, dtype_config: DTypeConfig) -> BackendPatternConfig:
        """Adds dtypes that the pattern can have."""
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs: list[DTypeConfig]) -> BackendPatternConfig:
        """Sets all dtypes that the pattern can have."""
        self.dtype_configs = dtype_configs
        return self

    def set_root_module(self, root_module: Any) -> BackendPatternConfig:
        """Sets the class of the module whose weight is quantized."""
        self.root_module = root_module
        return self

    def set_qat_module(self, qat_module: Any) -> BackendPatternConfig:
        """Sets the class that takes the pattern's place in training."""
        self.qat_module = qat_module
        return self

    def set_reference_quantized_module(self, module: Any) -> BackendPatternConfig:
        """Sets the class that takes the root module's place in convert_fx."""
        self.reference_quantized_module = module
        return self

    def set_fused_module(self, fused_module: Any) -> BackendPatternConfig:
        """Sets the class of what the pattern is fused to."""
        self.fused_module = fused_module
        return self

    def set_fuser_method(self, fuser_method: Callable[..., Any]) -> BackendPatternConfig:
        """Sets what fuses the pattern: f(is_qat, *modules)."""
        self.fuser_method = fuser_method
        return self

    def _set_root_node_getter(self, getter: Callable[..., Any]) -> BackendPatternConfig:
        self._root_node_getter = getter
        return self

    def _set_extra_inputs_getter(self, getter: Callable[..., Any]) -> BackendPatternConfig:
        self._extra_inputs_getter = getter
        return self

    def _set_num_tensor_args_to_observation_type(
        self, types: dict[int, ObservationType]
    ) -> BackendPatternConfig:
        self._num_tensor_args_to_observation_type = types
        return self

    def _set_input_type_to_index(self, places: dict[str, int]) -> BackendPatternConfig:
        self._input_type_to_index = places
        return self

    @classmethod
    def from_dict(cls, backend_pattern_config_dict: dict[str, Any]) -> BackendPatternConfig:
        """Returns one made of the dict that to_dict returns."""
        result = cls()
        for key, value in backend_pattern_config_dict.items():
            if key not in _KEYS:
                raise ValueError(
                    f"BackendPatternConfig: {key!r} is not known. Give one of {', '.join(_KEYS)}."
                )
            setattr(result, _KEYS[key], value)
        result.dtype_configs = [_made(DTypeConfig, each) for each in result.dtype_configs]
        return result

    def to_dict(self) -> dict[str, Any]:
        """Returns what is set as a dict."""
        result = {key: getattr(self, name) for key, name in _KEYS.items()}
        result = {k: v for k, v in result.items() if v is not None and v != {}}
        result["dtype_configs"] = [each.to_dict() for each in self.dtype_configs]
        return result


_KEYS = {
    "observation_type": "observation_type",
    "dtype_configs": "dtype_configs",
    "pattern": "pattern",
    "root_module": "root_module",
    "qat_module": "qat_module",
    "reference_quantized_module_for_root": "reference_quantized_module",
    "fused_module": "fused_module",
    "fuser_method": "fuser_method",
    "root_node_getter": "_root_node_getter",
    "extra_inputs_getter": "_extra_inputs_getter",
    "num_tensor_args_to_observation_type": "_num_tensor_args_to_observation_type",
    "input_type_to_index": "_input_type_to_index",
    "pattern_complex_format": "_pattern_complex_format",
}


def _made(kind: Any, value: Any) -> Any:
    """An object of a class, from itself or its dict."""
    if isinstance(value, dict):
        return kind.from_dict(value)
    if not isinstance(value, kind):
        raise ValueError(f"Expected a {kind.__name__} or its dict, but got {type(value).__name__}")
    return value


def _reversed(pattern: Any) -> Any:
    """A pattern from its end: (a, b, c), one after the other, is (c, (b, a))."""
    if not isinstance(pattern, tuple | list):
        return pattern
    first, *others = pattern
    for each in others:
        first = (each, first)
    return first


class BackendConfig:
    """The patterns that a back end computes with integers.

    Args:
        name: of the back end.

    Example:
        >>> from rushlight.ao.quantization import backend_config as b
        >>> from rushlight.ao.quantization.quantize_fx import prepare_fx
        >>> int8 = b.DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float)
        >>> linear = b.BackendPatternConfig(torch.nn.Linear).add_dtype_config(int8)
        >>> backend = b.BackendConfig("mine").set_backend_pattern_config(linear)
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).eval()
        >>> mapping = torch.ao.quantization.get_default_qconfig_mapping()
        >>> prepared = prepare_fx(network, mapping, (torch.ones(1, 2),), backend_config=backend)
        >>> [str(node.target) for node in prepared.graph.nodes]
        ['input', 'activation_post_process_0', '0', 'activation_post_process_1', '1', 'output']
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._pattern_complex_format_to_config: dict[Any, BackendPatternConfig] = {}

    def __repr__(self) -> str:
        return f"BackendConfig({vars(self)})"

    def set_name(self, name: str) -> BackendConfig:
        """Sets the name."""
        self.name = name
        return self

    def set_backend_pattern_config(self, config: BackendPatternConfig) -> BackendConfig:
        """Sets what is done with a pattern, in place of what was set before."""
        key = config._pattern_complex_format
        key = _reversed(config.pattern) if key is None else key
        self._pattern_complex_format_to_config[key] = config
        return self

    def set_backend_pattern_configs(self, configs: list[BackendPatternConfig]) -> BackendConfig:
        """Sets what is done with several patterns."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self) -> list[BackendPatternConfig]:
        """What is done with each pattern."""
        return list(self._pattern_complex_format_to_config.values())

    @classmethod
    def from_dict(cls, backend_config_dict: dict[str, Any]) -> BackendConfig:
        """Returns one made of the dict that to_dict returns."""
        result = cls(backend_config_dict.get("name", ""))
        for config in backend_config_dict.get("configs", []):
            result.set_backend_pattern_config(_made(BackendPatternConfig, config))
        return result

    def to_dict(self) -> dict[str, Any]:
        """Returns the name and the configurations of all patterns as a dict."""
        return {"name": self.name, "configs": [config.to_dict() for config in self.configs]}
