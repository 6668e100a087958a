"""What quantized layers share: the scale of their results, and how they come from float layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import Module


def form_of(module: Any) -> tuple[float, int]:
    """Returns the scale and zero point that a module's observer chose for its results."""
    scale, zero_point = module.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


class PrintedInOneLine(Module):
    """A layer that prints without its packed parameters, which would show whole matrices."""

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"


class QuantizedLayer(Module):
    """A layer whose results have a scale and zero point, which are saved with it.

    Args:
        scale: of the results.
        zero_point: of the results.
    """

    _must_have_form = True  # in files; of some layers PyTorch does not save it

    def __init__(self, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__()
        self.scale = float(scale)
        self.zero_point = int(zero_point)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = rl.tensor(self.scale)
        destination[prefix + "zero_point"] = rl.tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        missing = args[2] if self._must_have_form else []
        for name, convert in (("scale", float), ("zero_point", int)):
            value = take(state_dict, prefix + name, missing)
            if value is not None:
                setattr(self, name, convert(value))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"


def take(state_dict: Any, key: str, missing: list[str]) -> Any:
    """Takes an entry that is no buffer out of what a module loads; `missing` notes its absence."""
    if key not in state_dict:
        missing.append(key)
        return None
    return state_dict.pop(key)


class ByFloats(QuantizedLayer):
    """A layer without integer arithmetic: it computes in floats and rounds to its own scale."""

    def _values(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """Returns the quantized result for a quantized input."""
        values = self._values(input.dequantize())
        return rl.quantize_per_tensor(values, self.scale, self.zero_point, input.dtype)


def quantized_form(
    float_class: Any,
    params: str,
    own: tuple[str, ...],
    values: Callable[..., Any],
    must_have_form: bool = True,
) -> Any:
    """Makes the quantized class of a float layer that computes by floats.

    Args:
        float_class: the layer, of which the class also has parameters and arguments.
        params: the names of its arguments by place.
        own: names of the attributes that from_float takes over.
        values: the float layer's forward.
        must_have_form: whether PyTorch's files have the form of results.
    """
    places = params.split()

    class Quantized(ByFloats, float_class):
        _must_have_form = must_have_form

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            if len(args) > len(places):
                raise TypeError(
                    f"{float_class.__name__}: {len(args)} arguments were given by place. There are "
                    f"{len(places)}: {', '.join(places)}."
                )
            for name, value in zip(places, args, strict=False):
                if kwargs.setdefault(name, value) is not value:
                    raise TypeError(f"{float_class.__name__}: {name} was given twice.")
            form = {"scale": 1.0, "zero_point": 0}
            for name in ("output_scale", "scale", "output_zero_point", "zero_point"):
                if name in kwargs:
                    form[name.removeprefix("output_")] = kwargs.pop(name)
            arrays = {name: kwargs.pop(name) for name in ("weight", "bias") if name in kwargs}
            float_class.__init__(self, **kwargs)
            for name, value in arrays.items():
                setattr(self, name, value)
            self.scale, self.zero_point = float(form["scale"]), int(form["zero_point"])

        def _values(self, x: Tensor) -> Tensor:
            return values(self, x)

        extra_repr = float_class.extra_repr

        @classmethod
        def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
            """Returns the quantized form of a float layer that was observed."""
            return cls.from_reference(mod, *form_of(mod))

        @classmethod
        def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
            """Returns the quantized form of a float layer, with a form for its results."""
            result = cls.__new__(cls)
            Module.__init__(result)
            for name in own:
                setattr(result, name, getattr(mod, name))
            result.training = mod.training
            result.scale, result.zero_point = float(scale), int(zero_point)
            return result

    Quantized.__name__ = Quantized.__qualname__ = float_class.__name__
    Quantized.__module__ = "rushlight.ao.nn.quantized"
    Quantized.__doc__ = (
        f"torch.nn.{float_class.__name__} of quantized tensors: computed in floats, its result "
        "rounded to scale and zero_point."
    )
    return Quantized
