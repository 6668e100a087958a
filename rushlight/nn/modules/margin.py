"""Losses that ask scores or distances to differ by a margin; the functions are in nn.functional.

`reduction` and the former arguments size_average and reduce are those of loss.py.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.distance import PairwiseDistance
from rushlight.nn.modules.loss import _Loss, _WeightedLoss

__all__ = [
    "CosineEmbeddingLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class HingeEmbeddingLoss(_Loss):
    """input where target is 1, and max(0, margin - input) where it is -1.

    Args:
        margin: how large the input has to be where target is -1.
        reduction: "none", "mean" or "sum".

    Example:
        >>> loss = torch.nn.HingeEmbeddingLoss(reduction="none")
        >>> loss(torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0])).tolist()
        [0.5, 0.75]
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """max(0, -target * (input1 - input2) + margin), where target is 1 or -1.

    Args:
        margin: how far the inputs have to lie apart.
        reduction: "none", "mean" or "sum".

    Example:
        >>> loss = torch.nn.MarginRankingLoss()
        >>> loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])).item()
        2.0
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class CosineEmbeddingLoss(_Loss):
    """1 - cos(input1, input2) where target is 1, and max(0, cos - margin) where it is -1.

    Args:
        margin: how large the cosine may be where target is -1; between -1 and 1.
        reduction: "none", "mean" or "sum".

    Shape:
        (N, D) or (D), twice, and target (N) or ().

    Example:
        >>> loss = torch.nn.CosineEmbeddingLoss()
        >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
        >>> loss(x, y, torch.tensor([1.0])).item()
        1.0
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class SoftMarginLoss(_Loss):
    """Logistic loss of targets 1 and -1: log(1 + exp(-target * input)).

    Args:
        reduction: "none", "mean" or "sum".

    Example:
        >>> loss = torch.nn.SoftMarginLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
        >>> round(loss.item(), 4)
        0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """How far other classes come near the target's score.

    For scores x and a target y: sum over c != y of weight[y] * max(0, margin - x[y] + x[c])**p,
    divided by the number of classes.

    Args:
        p: 1 or 2.
        margin: how much larger the target's score has to be.
        weight: factor for each class, shape (C); 1 if None.
        reduction: "none", "mean" or "sum".

    Shape:
        scores (N, C) or (C), and classes (N) or ().

    Example:
        >>> x, y = torch.tensor([[0.0, 0.5, 2.0]]), torch.tensor([2])
        >>> round(torch.nn.MultiMarginLoss(margin=1.75)(x, y).item(), 4)
        0.0833
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: only p == 1 and p == 2 supported, got {p}.")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: weight must have one dim, got shape {tuple(weight.shape)}."
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class MultiLabelMarginLoss(_Loss):
    """How far classes that are no targets come near those that are.

    The sum over targets y and other classes c of max(0, 1 - (x[y] - x[c])), divided by the number
    of classes.

    Args:
        reduction: "none", "mean" or "sum".

    Shape:
        scores (N, C) or (C); target int64 of the same shape, in each row the classes up to the
        first -1.

    Example:
        >>> x, y = torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]])
        >>> round(torch.nn.MultiLabelMarginLoss()(x, y).item(), 4)
        0.85
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Mean over classes of the cross-entropy of sigmoid(input), for targets 1 and 0.

    Args:
        weight: factor for each class, shape (C); 1 if None.
        reduction: "none", "mean" or "sum".

    Shape:
        scores and targets (N, C).

    Example:
        >>> loss = torch.nn.MultiLabelSoftMarginLoss()
        >>> round(loss(torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 1.0]])).item(), 4)
        0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) (Balntas et al. 2016).

    d is the p-norm of the difference along the last dim.

    Args:
        margin: how much further away negative has to be, above 0.
        p: order of the norm.
        eps: added to differences, which gives equal points a gradient.
        swap: whether negatives that lie closer to positive count by that distance.
        reduction: "none", "mean" or "sum".

    Shape:
        three of (N, D) or (D).

    Example:
        >>> a, p, n = torch.tensor([[0.0]]), torch.tensor([[2.0]]), torch.tensor([[1.0]])
        >>> torch.nn.TripletMarginLoss(eps=0.0)(a, p, n).item()
        2.0
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin}."
            )
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance of one's own.

    Args:
        distance_function: d, of two tensors; PairwiseDistance if None.
        margin: how much further away negative has to be, above 0.
        swap: whether negatives that lie closer to positive count by that distance.
        reduction: "none", "mean" or "sum".

    Example:
        >>> loss = torch.nn.TripletMarginWithDistanceLoss(
        ...     distance_function=lambda x, y: (x - y).abs().sum(-1)
        ... )
        >>> loss(torch.tensor([[0.0]]), torch.tensor([[2.0]]), torch.tensor([[1.0]])).item()
        2.0
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, got "
                f"{margin}."
            )
        self.distance_function: Callable[[Tensor, Tensor], Tensor] = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
