"""What reference layers share: float parameters beside the form that their integers will have.

A reference layer computes in floats with weights that were rounded as integers would be. It is what
a back end that has kernels of its own replaces by them.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.ao.nn.quantized._packed import rounded_as
from rushlight.nn.utils.stateless import _reparametrize_module

__all__ = ["ReferenceQuantizedModule"]

_AFFINE = {
    rl.per_tensor_symmetric: rl.per_tensor_affine,
    rl.per_channel_symmetric: rl.per_channel_affine,
}


class ReferenceQuantizedModule(nn.Module):
    """A float layer that notes for each weight its qscheme, dtype, scale, zero_point and axis."""

    _IS_REFERENCE = True
    _keeps_kinds = True  # whether qscheme and dtype are saved, too

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def _weight_names(self) -> list[str]:
        return ["weight"]

    def _note(self, name: str, qparams: dict[str, Any] | None) -> None:
        given = qparams or {"qscheme": rl.per_tensor_affine, "dtype": rl.quint8}
        scheme = given["qscheme"]
        setattr(self, f"{name}_qscheme", _AFFINE.get(scheme, scheme))
        setattr(self, f"{name}_dtype", given["dtype"])
        parts = {
            "scale": rl.as_tensor(given.get("scale", 1.0), dtype=rl.float32),
            "zero_point": rl.as_tensor(given.get("zero_point", rl.tensor(0, dtype=rl.int32))),
            "axis": rl.tensor(int(given.get("axis", 0)), dtype=rl.int32),
        }
        for part, value in parts.items():
            self.register_buffer(f"{name}_{part}", value.detach().clone())

    def _qparams(self, name: str) -> dict[str, Any]:
        parts = ("qscheme", "dtype", "scale", "zero_point", "axis")
        return {part: getattr(self, f"{name}_{part}") for part in parts}

    def _quantized(self, name: str) -> Tensor:
        return rounded_as(getattr(self, name), self._qparams(name))

    def get_quantized_weight(self) -> Tensor:
        """Returns the weight as integers with a form, or in float16."""
        return self._quantized("weight")

    def get_weight(self) -> Tensor:
        """Returns the weight in float32 as it is rounded."""
        return self._quantized("weight").dequantize()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the float layer returns with rounded weights."""
        rounded = {name: self._quantized(name).dequantize() for name in self._weight_names()}
        with _reparametrize_module(self, rounded):
            return super().forward(*args, **kwargs)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in self._weight_names() if self._keeps_kinds else ():
            for part in ("qscheme", "dtype"):
                destination[f"{prefix}{name}_{part}"] = getattr(self, f"{name}_{part}")

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for name in self._weight_names():
            for part in ("qscheme", "dtype"):
                if f"{prefix}{name}_{part}" in state_dict:
                    setattr(self, f"{name}_{part}", state_dict.pop(f"{prefix}{name}_{part}"))
            for part in ("scale", "zero_point"):  # one, or one for each channel
                value = state_dict.get(f"{prefix}{name}_{part}")
                if value is not None:
                    setattr(self, f"{name}_{part}", value.detach().clone())
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    @classmethod
    def _copy(cls, mod: nn.Module) -> Any:
        """Returns a module of this class with the settings and parameters of a float layer."""
        result = cls.__new__(cls)
        nn.Module.__init__(result)
        for name, value in vars(mod).items():
            if name not in vars(result) and not isinstance(value, nn.Module):
                vars(result)[name] = value
        result._parameters.update(mod._parameters)
        result.training = mod.training
        return result
