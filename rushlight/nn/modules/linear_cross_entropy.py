"""A linear layer and the cross entropy of its logits in one, and how to split the batch for it."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.loss import _WeightedLoss

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight import device as Device
    from rushlight import dtype as DType

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


class LinearCrossEntropyOptions:
    """How linear_cross_entropy goes through the batch part by part, so that logits are not kept.

    Args:
        allow_retain_graph: whether backward may run more than once, which takes memory for one
            more gradient. Always so for reduction "none".
        batch_chunk_size: rows at a time; all if None. Give this or chunking_method.
        chunking_method: "aspect_ratio" takes as many rows as give no more logits than the input
            has elements, rounded up to a power of 2; "aspect_ratio:N" an N-th of them; None
            leaves it to batch_chunk_size; "auto" chooses.
        acc_policy: "auto" computes in float32 where the input is of a half type; "accurate",
            "balanced" and "compact" are the same here: logits and sums of gradients have
            acc_dtype.
        acc_dtype: dtype of logits and sums; None for that of the input or acc_policy's.

    Raises:
        ValueError: for settings that do not exist.

    Example:
        >>> options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        >>> x, w = torch.randn(8, 3), torch.randn(100, 3)
        >>> y = torch.randint(100, (8,))
        >>> parts = torch.nn.functional.linear_cross_entropy(x, w, y, options=options)
        >>> whole = torch.nn.functional.linear_cross_entropy(x, w, y)
        >>> torch.allclose(parts, whole)
        True
    """

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype: DType | None = None,
    ) -> None:
        if acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {acc_policy!r}")
        if chunking_method not in (None, "auto"):
            name, colon, factor = str(chunking_method).partition(":")
            if name != "aspect_ratio" or (colon and not (factor.isdigit() and int(factor) > 0)):
                raise ValueError(f"invalid chunking_method: {chunking_method!r}")
        size = batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if acc_dtype not in (None, rl.float16, rl.bfloat16, rl.float32, rl.float64):
            raise ValueError(
                f"acc_dtype must be None or a floating-point dtype, got {acc_dtype!r}."
            )
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

    def __repr__(self) -> str:
        return (
            f"LinearCrossEntropyOptions({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"
        )


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
