"""A linear layer and the cross entropy of its logits in one."""

from __future__ import annotations

import math

from rushlight import Tensor
from rushlight import device as Device
from rushlight import dtype as DType
from rushlight.nn import functional as F
from rushlight.nn._linear_cross_entropy_options import LinearCrossEntropyOptions
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.loss import _WeightedLoss

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of logits that a linear layer makes of the input.

    Args:
        in_features: size of each input sample.
        num_classes: number of classes, C.
        out_features: sizes (d1, ...) for a loss at many places of each sample.
        bias: whether the layer has a bias.
        device: where the parameters are made.
        dtype: dtype of the parameters.
        reduction: "none", "mean" or "sum".
        weight: factor for each class, shape (C); 1 if None.
        ignore_index: target class that does not count; -100 if None.
        label_smoothing: share of the target that is spread evenly over all classes.
        options: how to split the batch; None computes all logits at once.

    Shape:
        input (N, in_features) or (in_features), and classes (N, d1, ...) or probabilities
        (N, C, d1, ...).

    Example:
        >>> loss = torch.nn.LinearCrossEntropyLoss(3, 10)
        >>> loss(torch.randn(4, 3), torch.tensor([1, 2, 3, 4])).shape
        torch.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        outputs = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, outputs, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        outputs = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*outputs, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(outputs),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
