"""Where a quantized network goes away from its float form, module by module.

compare_weights compares what was saved, compare_model_outputs what both networks give for one
input, and compare_model_stub what each quantized module gives and its float form would for the same
input. Networks may be quantized by quantize_dynamic or by prepare and convert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.quantized import dynamic as nnqd
from rushlight.ao.quantization.qconfig import QConfig
from rushlight.ao.quantization.quantization_mappings import get_default_compare_output_module_list
from rushlight.ao.quantization.quantize import prepare

__all__ = [
    "Logger",
    "OutputLogger",
    "Shadow",
    "ShadowLogger",
    "compare_model_outputs",
    "compare_model_stub",
    "compare_weights",
    "get_logger_dict",
    "get_matching_activations",
    "prepare_model_outputs",
    "prepare_model_with_stubs",
]

_WITH_PARTS = {nnqd.Linear, nnq.Linear, nnqd.LSTM, nn.LSTM}
_PACKED = "_packed_params._packed_params"


def _match(keys: Iterable[str], path: str, end: str) -> str | None:
    """The key of a module at a path, or of a part of it, which has that end; the longest last."""
    found = [key for key in keys if key == _join(path, end)]
    inside = [key for key in keys if key.endswith(f".{end}") and _parent(_parent(key)) == path]
    return next(iter(found or inside), None)


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def compare_weights(
    float_dict: dict[str, Any], quantized_dict: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Returns the weights of two networks that belong together, by the key of the quantized one.

    Args:
        float_dict: the float network's state_dict.
        quantized_dict: the quantized one's.

    Returns:
        For each key a dict of the "float" and the "quantized" weight.

    Example:
        >>> from rushlight.ao.ns._numeric_suite import compare_weights
        >>> network = torch.nn.Sequential(torch.nn.Linear(3, 2))
        >>> small = torch.ao.quantization.quantize_dynamic(network)
        >>> list(compare_weights(network.state_dict(), small.state_dict()))
        ['0._packed_params._packed_params']
    """
    result = {}
    for key, value in quantized_dict.items():
        if key.endswith(_PACKED):
            match = _match(float_dict, key[: -len(_PACKED) - 1], "weight")
            value = value[0]
        elif key.rpartition(".")[2] == "weight":
            match = _match(float_dict, _parent(key), "weight")
        elif isinstance(value, Tensor) and value.is_quantized and key in float_dict:
            match = key  # of a recurrent layer
        else:
            continue
        if match is not None:
            result[key] = {"float": float_dict[match], "quantized": value}
    return result


class Logger(nn.Module):
    """What loggers share: their `stats`."""

    def __init__(self) -> None:
        super().__init__()
        self.stats: dict[str, Any] = {}
        self.dtype = rl.quint8

    def forward(self, x: Any) -> Any:
        """Notes a result."""


class OutputLogger(Logger):
    """Keeps the results of a module in stats["tensor_val"]."""

    def __init__(self) -> None:
        super().__init__()
        self.stats["tensor_val"] = []

    def forward(self, x: Any) -> Any:
        """Notes a result, and returns it."""
        self.stats["tensor_val"].append(x)
        return x


class ShadowLogger(Logger):
    """Keeps the results of a quantized module and its float form in stats."""

    def __init__(self) -> None:
        super().__init__()
        self.stats.update({"float": [], "quantized": []})

    def forward(self, x: Any, y: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Notes the quantized result and the other one; of tuples the first parts."""
        for name, value in (("quantized", x), ("float", y)):
            self.stats[name].append((value[0] if isinstance(value, tuple) else value).detach())


def _floats(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_floats(each) for each in value)
    return value.dequantize() if isinstance(value, Tensor) and value.is_quantized else value


class Shadow(nn.Module):
    """A quantized module that shows its logger what its float form gives for the same input.

    Args:
        q_module: the quantized module, whose result counts.
        float_module: its float form.
        logger_cls: makes the logger, which is called with both results.
    """

    def __init__(
        self, q_module: nn.Module, float_module: nn.Module, logger_cls: Callable[[], nn.Module]
    ) -> None:
        super().__init__()
        self.orig_module, self.shadow_module = q_module, float_module
        self.dequant = nnq.DeQuantize()
        self.logger = logger_cls()

    def forward(self, *x: Any) -> Any:
        """Returns the quantized module's result."""
        return self._both("__call__", *x)

    def _both(self, method: str, *args: Any) -> Any:
        result = getattr(self.orig_module, method)(*args)
        self.logger(result, getattr(self.shadow_module, method)(*_floats(args)))
        return result

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """QFunctional.add"""
        return self._both("add", x, y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """QFunctional.add_scalar"""
        return self._both("add_scalar", x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """QFunctional.mul"""
        return self._both("mul", x, y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """QFunctional.mul_scalar"""
        return self._both("mul_scalar", x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """QFunctional.cat"""
        return self._both("cat", x, dim)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """QFunctional.add_relu"""
        return self._both("add_relu", x, y)


def get_logger_dict(mod: nn.Module, prefix: str = "") -> dict[str, dict[str, Any]]:
    """Returns what the loggers of a network have noted: by the path of a module and ".stats"."""
    result: dict[str, dict[str, Any]] = {}
    for name, child in mod.named_children():
        if isinstance(child, Logger):
            result.setdefault(_join(prefix, "stats"), child.stats)
        else:
            result.update(get_logger_dict(child, _join(prefix, name)))
    return result


def prepare_model_with_stubs(
    float_module: nn.Module,
    q_module: nn.Module,
    module_swap_list: Any,
    logger_cls: Callable[[], nn.Module],
) -> None:
    """Puts a Shadow in the place of each quantized module whose float form has one of some classes.

    Args:
        float_module: the float network.
        q_module: the quantized one, which is changed.
        module_swap_list: the classes of float modules.
        logger_cls: makes the loggers.
    """
    floats = dict(float_module.named_children())
    for name, quantized in list(q_module.named_children()):
        known = floats.get(name)
        if known is None:
            continue
        if type(known) not in module_swap_list:
            prepare_model_with_stubs(known, quantized, module_swap_list, logger_cls)
        elif [type(m) for m in known.modules()] != [type(m) for m in quantized.modules()]:
            setattr(q_module, name, Shadow(quantized, known, logger_cls))


def compare_model_stub(
    float_model: nn.Module,
    q_model: nn.Module,
    module_swap_list: Any,
    *data: Any,
    logger_cls: Callable[[], nn.Module] = ShadowLogger,
) -> dict[str, dict[str, Any]]:
    """Returns what quantized modules give, and what their float forms give for the same input.

    Args:
        float_model: the float network.
        q_model: the quantized one, which is changed.
        module_swap_list: the classes of float modules to compare.
        data: the input of the quantized network.
        logger_cls: makes the loggers.
    """
    prepare_model_with_stubs(float_model, q_model, module_swap_list, logger_cls)
    q_model(*data)
    return get_logger_dict(q_model)


def get_matching_activations(
    float_module: nn.Module, q_module: nn.Module
) -> dict[str, dict[str, Any]]:
    """Returns what OutputLoggers of two networks have noted at modules that belong together."""
    floats, result = get_logger_dict(float_module), {}
    for key, stats in get_logger_dict(q_module).items():
        match = _match(sorted(floats, reverse=True), _parent(key), "stats")
        if stats["tensor_val"] and match is not None:
            result[key] = {"float": floats[match]["tensor_val"], "quantized": stats["tensor_val"]}
    return result


def prepare_model_outputs(
    float_module: nn.Module,
    q_module: nn.Module,
    logger_cls: Callable[[], nn.Module] = OutputLogger,
    allow_list: Any = None,
) -> None:
    """Puts loggers behind the modules of both networks.

    Args:
        float_module: the float network.
        q_module: the quantized one.
        logger_cls: makes the loggers.
        allow_list: the classes of modules; those of layers that can be quantized if None.
    """
    kinds = get_default_compare_output_module_list() if allow_list is None else allow_list
    for module, non_leaf in ((float_module, None), (q_module, _WITH_PARTS)):
        module.qconfig = QConfig(activation=logger_cls, weight=None)
        prepare(
            module,
            inplace=True,
            allow_list=kinds,
            observer_non_leaf_module_list=non_leaf,
            prepare_custom_config_dict={},
        )


def compare_model_outputs(
    float_model: nn.Module,
    q_model: nn.Module,
    *data: Any,
    logger_cls: Callable[[], nn.Module] = OutputLogger,
    allow_list: Any = None,
) -> dict[str, dict[str, Any]]:
    """Returns what modules of both networks give for the same input of the networks.

    Args:
        float_model: the float network; both get loggers.
        q_model: the quantized one.
        data: the input of both.
        logger_cls: makes the loggers.
        allow_list: the classes of modules; those of layers that can be quantized if None.

    Returns:
        For each module with a logger, by its path and ".stats", a dict of lists: "float" and
        "quantized".
    """
    prepare_model_outputs(float_model, q_model, logger_cls, allow_list)
    float_model(*data)
    q_model(*data)
    return get_matching_activations(float_model, q_model)
