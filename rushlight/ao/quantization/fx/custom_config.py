"""What preparation, fusion and conversion on graphs leave alone, or do otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

__all__ = [
    "ConvertCustomConfig",
    "FuseCustomConfig",
    "PrepareCustomConfig",
    "StandaloneModuleConfigEntry",
]


@dataclass
class StandaloneModuleConfigEntry:
    """How a module is prepared that is a network of its own; None for what the network has."""

    qconfig_mapping: Any
    example_inputs: tuple[Any, ...]
    prepare_custom_config: PrepareCustomConfig | None
    backend_config: Any


class _CustomConfig:
    """What the three share: attributes that the result has too, and their older form, a dict."""

    _keys: ClassVar[dict[str, str]] = {"preserved_attributes": "preserved_attributes"}

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def set_preserved_attributes(self, attributes: list[str]) -> Self:
        """Sets the names of attributes that the result has too."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, custom_config_dict: dict[str, Any]) -> Self:
        """Returns one made from its older form, a dict.

        Raises:
            ValueError: for a key that has no effect here.
        """
        result = cls()
        unknown = [key for key in custom_config_dict if key not in cls._keys]
        if unknown:
            raise ValueError(
                f"{cls.__name__}: {', '.join(unknown)} has no effect here. Give one of "
                f"{', '.join(cls._keys)}."
            )
        for key, value in custom_config_dict.items():
            result._take(cls._keys[key], value)
        return result

    def _take(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Returns what is set in the older form, a dict."""
        given = {key: getattr(self, name) for key, name in self._keys.items()}
        return {key: value for key, value in given.items() if value}


class PrepareCustomConfig(_CustomConfig):
    """What prepare_fx is to leave alone, or to do otherwise.

    Example:
        >>> from rushlight.ao.quantization.fx.custom_config import PrepareCustomConfig
        >>> custom = PrepareCustomConfig().set_non_traceable_module_names(["head"])
    """

    _keys: ClassVar[dict[str, str]] = {
        "standalone_module_name": "standalone_module_names",
        "standalone_module_class": "standalone_module_classes",
        "float_to_observed_custom_module_class": "float_to_observed_mapping",
        "non_traceable_module_name": "non_traceable_module_names",
        "non_traceable_module_class": "non_traceable_module_classes",
        "input_quantized_idxs": "input_quantized_indexes",
        "output_quantized_idxs": "output_quantized_indexes",
        "preserved_attributes": "preserved_attributes",
    }

    def __init__(self) -> None:
        super().__init__()
        self.standalone_module_names: dict[str, StandaloneModuleConfigEntry] = {}
        self.standalone_module_classes: dict[Any, StandaloneModuleConfigEntry] = {}
        self.float_to_observed_mapping: dict[Any, dict[Any, Any]] = {}
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[Any] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []

    def _take(self, name: str, value: Any) -> None:
        if name.startswith("standalone"):
            value = {key: StandaloneModuleConfigEntry(*entry) for key, *entry in value}
        super()._take(name, value)

    def to_dict(self) -> dict[str, Any]:
        """Returns what is set in the older form, a dict."""
        result = super().to_dict()
        for key in ("standalone_module_name", "standalone_module_class"):
            if key in result:
                result[key] = [(name, *vars(e).values()) for name, e in result[key].items()]
        return result

    def set_standalone_module_name(
        self,
        module_name: str,
        qconfig_mapping: Any,
        example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None,
        backend_config: Any,
    ) -> Self:
        """Says that a module is prepared and converted as a network of its own."""
        self.standalone_module_names[module_name] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_standalone_module_class(
        self,
        module_class: Any,
        qconfig_mapping: Any,
        example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None,
        backend_config: Any,
    ) -> Self:
        """Says that modules of a class are prepared and converted as networks of their own."""
        self.standalone_module_classes[module_class] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_float_to_observed_mapping(
        self, float_class: Any, observed_class: Any, quant_type: Any = None
    ) -> Self:
        """Sets the class that takes a class's place, made by its from_float; static if no type."""
        from rushlight.ao.quantization.quant_type import QuantType

        quant_type = QuantType.STATIC if quant_type is None else quant_type
        if quant_type != QuantType.STATIC:
            raise ValueError(
                "set_float_to_observed_mapping is currently only supported for static quantization"
            )
        self.float_to_observed_mapping.setdefault(quant_type, {})[float_class] = observed_class
        return self

    def set_non_traceable_module_names(self, module_names: list[str]) -> Self:
        """Sets the names of modules that stay one node."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[Any]) -> Self:
        """Sets the classes of modules that stay one node."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: list[int]) -> Self:
        """Sets which inputs come in quantized."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> Self:
        """Sets which results are returned quantized."""
        self.output_quantized_indexes = indexes
        return self


class ConvertCustomConfig(_CustomConfig):
    """What convert_fx is to do otherwise."""

    _keys: ClassVar[dict[str, str]] = {
        "observed_to_quantized_custom_module_class": "observed_to_quantized_mapping",
        "preserved_attributes": "preserved_attributes",
    }

    def __init__(self) -> None:
        super().__init__()
        self.observed_to_quantized_mapping: dict[Any, dict[Any, Any]] = {}

    def set_observed_to_quantized_mapping(
        self, observed_class: Any, quantized_class: Any, quant_type: Any = None
    ) -> Self:
        """Sets the class that takes an observed class's place, made by its from_observed."""
        from rushlight.ao.quantization.quant_type import QuantType

        quant_type = QuantType.STATIC if quant_type is None else quant_type
        by_type = self.observed_to_quantized_mapping.setdefault(quant_type, {})
        by_type[observed_class] = quantized_class
        return self


class FuseCustomConfig(_CustomConfig):
    """What fuse_fx is to do otherwise."""
