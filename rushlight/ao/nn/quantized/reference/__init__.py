"""torch.ao.nn.quantized.reference: float layers whose weights are rounded as integers would be.

convert_to_reference_fx puts them where a back end will have integer layers. The float parameters
stay, the form of the integers stands beside them.
"""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn
from rushlight.ao.nn.quantized.reference._base import ReferenceQuantizedModule

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "EmbeddingBag",
    "GRU",
    "GRUCell",
    "LSTM",
    "LSTMCell",
    "Linear",
    "RNNCell",
]


class _WithWeight(ReferenceQuantizedModule):
    def __init__(self, *args: Any, weight_qparams: dict[str, Any] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._note("weight", weight_qparams)

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: Any) -> Any:
        """Returns the reference layer of a float layer, with its parameters.

        Args:
            mod: the float layer.
            weight_qparams: a dict with qscheme, dtype, scale, zero_point and axis.
        """
        result = cls._copy(mod)
        result._note("weight", weight_qparams)
        return result


class Linear(_WithWeight, nn.Linear):
    """nn.Linear whose weight is rounded.

    Args:
        in_features: as for nn.Linear, as the other arguments and those of the other layers are.
        weight_qparams: the form of the weight: a dict with qscheme, dtype, scale, zero_point, axis.

    Example:
        >>> form = {"qscheme": torch.per_tensor_affine, "dtype": torch.qint8}
        >>> form |= {"scale": 0.5, "zero_point": 0}
        >>> layer = torch.ao.nn.quantized.reference.Linear(2, 1, weight_qparams=form)
        >>> layer.weight = torch.nn.Parameter(torch.tensor([[0.6, -1.1]]))
        >>> layer.get_weight()
        tensor([[ 0.5000, -1.0000]])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_qparams: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            in_features, out_features, bias_, device, dtype, weight_qparams=weight_qparams
        )


class Conv1d(_WithWeight, nn.Conv1d):
    """nn.Conv1d whose weight is rounded."""


class Conv2d(_WithWeight, nn.Conv2d):
    """nn.Conv2d whose weight is rounded."""


class Conv3d(_WithWeight, nn.Conv3d):
    """nn.Conv3d whose weight is rounded."""


class ConvTranspose1d(_WithWeight, nn.ConvTranspose1d):
    """nn.ConvTranspose1d whose weight is rounded."""


class ConvTranspose2d(_WithWeight, nn.ConvTranspose2d):
    """nn.ConvTranspose2d whose weight is rounded."""


class ConvTranspose3d(_WithWeight, nn.ConvTranspose3d):
    """nn.ConvTranspose3d whose weight is rounded."""


class Embedding(_WithWeight, nn.Embedding):
    """nn.Embedding whose table is rounded."""


class EmbeddingBag(_WithWeight, nn.EmbeddingBag):
    """nn.EmbeddingBag whose table is rounded."""

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"


class _Recurrent(ReferenceQuantizedModule):
    _keeps_kinds = False

    def __init__(
        self, *args: Any, weight_qparams_dict: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._note_all(weight_qparams_dict)

    def _weight_names(self) -> list[str]:
        return [name for name in self._parameters if name.startswith("weight")]

    def _note_all(self, forms: dict[str, Any] | None) -> None:
        for name in self._weight_names():
            self._note(name, None if forms is None else forms[name])

    def get_quantized_weight_bias_dict(self) -> dict[str, Tensor]:
        """Returns the quantized weights and the float biases by name."""
        weights = self._weight_names()
        return {
            name: self._quantized(name) if name in weights else getattr(self, name)
            for name in self._parameters
        }

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any) -> Any:
        """Returns the reference layer of a float layer, with its parameters.

        Args:
            mod: the float layer.
            weight_qparams_dict: for each weight's name its form.
        """
        result = cls._copy(mod)
        result._note_all(weight_qparams_dict)
        return result


class LSTM(_Recurrent, nn.LSTM):
    """nn.LSTM whose weights are rounded."""


class GRU(_Recurrent, nn.GRU):
    """nn.GRU whose weights are rounded."""


class LSTMCell(_Recurrent, nn.LSTMCell):
    """nn.LSTMCell whose weights are rounded."""


class GRUCell(_Recurrent, nn.GRUCell):
    """nn.GRUCell whose weights are rounded."""


class RNNCell(_Recurrent, nn.RNNCell):
    """nn.RNNCell whose weights are rounded."""
