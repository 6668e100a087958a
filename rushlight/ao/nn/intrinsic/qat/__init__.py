"""torch.ao.nn.intrinsic.qat: fused layers that train with the rounding of their quantized forms.

A layer and its batch norm round the weight as it will be once the norm is folded into it: scaled
by the running statistics. The batch's own statistics still normalize what comes out (Krishnamoorthi
2018, section 3.2).
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn._addresses import lead
from rushlight.nn import functional as F
from rushlight.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearReLU",
    "freeze_bn_stats",
    "update_bn_stats",
]


class LinearReLU(nnqat.Linear):
    """relu of a linear layer whose weight is rounded."""

    _relu, _fused = True, nni.LinearReLU


class ConvReLU1d(nnqat.Conv1d):
    """relu of a Conv1d whose weight is rounded."""

    _relu, _fused = True, nni.ConvReLU1d


class ConvReLU2d(nnqat.Conv2d):
    """relu of a Conv2d whose weight is rounded."""

    _relu, _fused = True, nni.ConvReLU2d


class ConvReLU3d(nnqat.Conv3d):
    """relu of a Conv3d whose weight is rounded."""

    _relu, _fused = True, nni.ConvReLU3d


class _WithBatchNorm(nnqat.WithFakeQuant):
    """A layer and its batch norm, self.bn."""

    _norm: Any
    _fuse: Any

    def _add_norm(self, eps: float, momentum: float, freeze_bn: bool, qconfig: Any) -> None:
        layer: Any = self
        layer.bn = self._norm(layer.weight.shape[0], eps, momentum)
        layer.freeze_bn = freeze_bn
        self._wants_rounding(qconfig)
        if freeze_bn:
            self.freeze_bn_stats()

    def freeze_bn_stats(self) -> Any:
        """Normalizes by the running statistics from now on."""
        layer: Any = self
        layer.freeze_bn = True
        layer.bn.training = False
        return self

    def update_bn_stats(self) -> Any:
        """Normalizes by the batch's statistics again."""
        layer: Any = self
        layer.freeze_bn = False
        layer.bn.training = True
        return self

    def train(self, mode: bool = True) -> Any:
        """Sets the training mode, but for statistics that are frozen."""
        layer: Any = self
        layer.training = mode
        for child in layer.children():
            if not (child is layer.bn and layer.freeze_bn):
                child.train(mode)
        return self

    def _product(self, input: Tensor, weight: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        layer: Any = self
        norm = layer.bn
        factor = norm.weight / rl.sqrt(norm.running_var + norm.eps)
        along = [-1] + [1] * (layer.weight.dim() - 1)
        scaled = layer.weight_fake_quant(layer.weight * factor.view(along))
        y = self._product(input, scaled)
        along = [1, -1] + [1] * (y.dim() - 2)
        y = y / factor.view(along)
        if layer.bias is not None:
            y = y + layer.bias.view(along)
        y = norm(y)
        return F.relu(y) if self._relu else y

    def _take_rest(self, mod: Any) -> None:
        layer: Any = self
        layer.bn, layer.freeze_bn = mod[1], False

    def folded(self) -> Any:
        """Returns the float layer with the norm folded into weight and bias."""
        layer: Any = self
        result = type(self)._fuse(self._to_float().eval(), layer.bn.eval())
        result.qconfig, result.weight_fake_quant = layer.qconfig, layer.weight_fake_quant
        return result

    def to_float(self) -> Any:
        """Returns the float layer with the norm folded in, fused with relu if it has one."""
        layer = self.folded()
        del layer.weight_fake_quant
        return layer if self._fused is None else self._fused(layer, nn.ReLU())


class _ConvBn(_WithBatchNorm):
    _fuse = staticmethod(fuse_conv_bn_eval)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool | None = None,
        padding_mode: str = "zeros",
        eps: float = 1e-05,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        layer: Any = self
        window = (kernel_size, stride, padding, dilation)
        layer._float.__init__(
            self, in_channels, out_channels, *window, groups, bool(bias), padding_mode
        )
        self._add_norm(eps, momentum, freeze_bn, qconfig)

    def _product(self, input: Tensor, weight: Tensor) -> Tensor:
        layer: Any = self
        return layer._conv_forward(input, weight, None)

    def float_conv(self) -> Any:
        """The float layer that becomes quantized."""
        return self.folded()


class ConvBn1d(_ConvBn, nn.Conv1d):
    """Conv1d and BatchNorm1d, whose weight is rounded as it will be when they are one."""

    _float, _norm = nn.Conv1d, nn.BatchNorm1d


class ConvBn2d(_ConvBn, nn.Conv2d):
    """Conv2d and BatchNorm2d, whose weight is rounded as it will be when they are one."""

    _float, _norm = nn.Conv2d, nn.BatchNorm2d


class ConvBn3d(_ConvBn, nn.Conv3d):
    """Conv3d and BatchNorm3d, whose weight is rounded as it will be when they are one."""

    _float, _norm = nn.Conv3d, nn.BatchNorm3d


class ConvBnReLU1d(ConvBn1d):
    """relu of ConvBn1d."""

    _relu, _fused = True, nni.ConvReLU1d


class ConvBnReLU2d(ConvBn2d):
    """relu of ConvBn2d."""

    _relu, _fused = True, nni.ConvReLU2d


class ConvBnReLU3d(ConvBn3d):
    """relu of ConvBn3d."""

    _relu, _fused = True, nni.ConvReLU3d


class LinearBn1d(_WithBatchNorm, nn.Linear):
    """Linear and BatchNorm1d, whose weight is rounded as it will be when they are one."""

    _float, _norm, _fuse = nn.Linear, nn.BatchNorm1d, staticmethod(fuse_linear_bn_eval)

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        eps: float = 1e-05,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        nn.Linear.__init__(self, in_features, out_features, bias)
        self._add_norm(eps, momentum, freeze_bn, qconfig)

    def _product(self, input: Tensor, weight: Tensor) -> Tensor:
        return F.linear(input, weight)

    def float_linear(self) -> Any:
        """The float layer that becomes quantized."""
        return self.folded()


def update_bn_stats(mod: nn.Module) -> None:
    """Calls update_bn_stats() of a layer that has it: model.apply(update_bn_stats)."""
    if isinstance(mod, _WithBatchNorm):
        mod.update_bn_stats()


def freeze_bn_stats(mod: nn.Module) -> None:
    """Calls freeze_bn_stats() of a layer that has it: model.apply(freeze_bn_stats)."""
    if isinstance(mod, _WithBatchNorm):
        mod.freeze_bn_stats()


# The form for training of each fused layer.
FUSED: dict[Any, Any] = {
    nni.ConvBn1d: ConvBn1d,
    nni.ConvBn2d: ConvBn2d,
    nni.ConvBn3d: ConvBn3d,
    nni.ConvBnReLU1d: ConvBnReLU1d,
    nni.ConvBnReLU2d: ConvBnReLU2d,
    nni.ConvBnReLU3d: ConvBnReLU3d,
    nni.ConvReLU1d: ConvReLU1d,
    nni.ConvReLU2d: ConvReLU2d,
    nni.ConvReLU3d: ConvReLU3d,
    nni.LinearReLU: LinearReLU,
    nni.LinearBn1d: LinearBn1d,
}

lead("modules modules.conv_fused modules.linear_fused modules.linear_relu", __name__)
