"""torch.ao.nn.qat: layers that train with the rounding that their quantized forms will have.

Each is its float layer with weight_fake_quant, which rounds the weight before it is used.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, _later, nn
from rushlight.nn import functional as F

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]


def _take_settings(result: Any, layer: Any) -> None:
    """Gives a fresh module the settings and parameters of another, but not its modules."""
    for name, value in vars(layer).items():
        if name not in vars(result) and not isinstance(value, nn.Module):
            vars(result)[name] = value
    result._parameters.update(layer._parameters)


class WithFakeQuant:
    """What these layers share: the rounding of the weight, and the way from and to float layers."""

    _float: Any
    _fused: Any = None  # the class of the float layer and its relu
    _relu = False

    def _wants_rounding(self, qconfig: Any) -> None:
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Returns the layer for training with the parameters of a float layer with a qconfig."""
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid qconfig")
        result: Any = cls.__new__(cls)
        nn.Module.__init__(result)
        _take_settings(result, layer)
        result._take_rest(mod)
        result._wants_rounding(mod.qconfig)
        return result.train(mod.training)

    def _take_rest(self, mod: Any) -> None:
        """Takes over what is fused with the layer."""

    def _to_float(self) -> Any:
        result: Any = self._float.__new__(self._float)
        nn.Module.__init__(result)
        _take_settings(result, self)
        return result

    def to_float(self) -> Any:
        """Returns the float layer with the parameters learned, fused with relu if it has one."""
        layer = self._to_float()
        return layer if self._fused is None else self._fused(layer, nn.ReLU())


class Linear(WithFakeQuant, nn.Linear):
    """nn.Linear whose weight is rounded by weight_fake_quant.

    Args:
        in_features: as for nn.Linear, as the others are.
        qconfig: says by what the weight is rounded.
    """

    _float = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        nn.Linear.__init__(self, in_features, out_features, bias, device, dtype)
        self._wants_rounding(qconfig)

    def forward(self, input: Tensor) -> Tensor:
        y = F.linear(input, self.weight_fake_quant(self.weight), self.bias)
        return F.relu(y) if self._relu else y


class _ConvNd(WithFakeQuant):
    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        self._float.__init__(self, *args, **kwargs)
        self._wants_rounding(qconfig)

    def forward(self, input: Tensor) -> Tensor:
        layer: Any = self
        y = layer._conv_forward(input, layer.weight_fake_quant(layer.weight), layer.bias)
        return F.relu(y) if self._relu else y


class Conv1d(_ConvNd, nn.Conv1d):
    """nn.Conv1d whose weight is rounded by weight_fake_quant."""

    _float = nn.Conv1d


class Conv2d(_ConvNd, nn.Conv2d):
    """nn.Conv2d whose weight is rounded by weight_fake_quant."""

    _float = nn.Conv2d


class Conv3d(_ConvNd, nn.Conv3d):
    """nn.Conv3d whose weight is rounded by weight_fake_quant."""

    _float = nn.Conv3d


class _WithTable(WithFakeQuant):
    def _wants_rounding(self, qconfig: Any) -> None:
        super()._wants_rounding(qconfig)
        found, wanted = self.weight_fake_quant.qscheme, rl.per_channel_affine_float_qparams
        if found is not wanted:
            raise AssertionError(
                f"{self._float.__name__} weights requires a qscheme of {wanted} Got {found}. Use "
                "default_embedding_qat_qconfig."
            )


class Embedding(_WithTable, nn.Embedding):
    """nn.Embedding whose table is rounded by weight_fake_quant."""

    _float = nn.Embedding

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        nn.Embedding.__init__(self, *args, **kwargs)
        self._wants_rounding(qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight_fake_quant(self.weight),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )


class EmbeddingBag(_WithTable, nn.EmbeddingBag):
    """nn.EmbeddingBag whose table is rounded by weight_fake_quant."""

    _float = nn.EmbeddingBag

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        nn.EmbeddingBag.__init__(self, *args, **kwargs)
        self._wants_rounding(qconfig)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight_fake_quant(self.weight),
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )


__getattr__ = _later.imports(__name__, ("dynamic",))
