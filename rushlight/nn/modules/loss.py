"""Losses as layers; each calls the function of its name in nn.functional.

Every loss takes `reduction`: "none" returns the losses of the elements, "sum" and "mean" one
number. The formulas below are those of one element.
"""

from __future__ import annotations

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "NLLLoss",
    "SmoothL1Loss",
]


class _Loss(Module):
    """What all losses share."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """What losses with a weight per class or element share; the weight moves with the module."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """Absolute error: |input - target|.

    Args:
        reduction: "none", "mean" or "sum".

    Example:
        >>> torch.nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 2.0])).item()
        1.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Squared error: (input - target)**2.

    Args:
        reduction: "none", "mean" or "sum".

    Example:
        >>> torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 2.0])).item()
        2.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared error near the target, absolute error away from it (Girshick 2015, equation 3).

    With d = |input - target|: d**2 / (2 * beta) if d < beta, d - beta / 2 elsewhere.

    Args:
        reduction: "none", "mean" or "sum".
        beta: distance at which the two meet; 0 gives L1Loss.

    Example:
        >>> torch.nn.SmoothL1Loss()(torch.tensor(3.0), torch.tensor(1.0)).item()
        1.5
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared error near the target, absolute error away from it (Huber 1964).

    With d = |input - target|: d**2 / 2 if d < delta, delta * (d - delta / 2) elsewhere.

    Args:
        reduction: "none", "mean" or "sum".
        delta: distance at which the two meet, positive.

    Example:
        >>> torch.nn.HuberLoss(delta=2.0)(torch.tensor(4.0), torch.tensor(1.0)).item()
        4.0
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """Minus the log-probability of the target class: -weight[target] * input[target].

    "mean" divides by the sum of the weights of the targets.

    Args:
        weight: factor for each class, shape (C); 1 if None.
        ignore_index: target that does not count.
        reduction: "none", "mean" or "sum".

    Shape:
        log-probabilities (N, C, *) or (C) and classes (N, *) or ().

    Example:
        >>> log_p = torch.tensor([[-0.5, -1.0], [-0.25, -1.5]])
        >>> torch.nn.NLLLoss()(log_p, torch.tensor([0, 1])).item()
        1.0
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class CrossEntropyLoss(_WeightedLoss):
    """Minus the log-softmax of the target class: -weight[target] * log_softmax(input)[target].

    Given probabilities as target it sums over the classes, each times its probability.

    Args:
        weight: factor for each class, shape (C); 1 if None.
        ignore_index: target class that does not count.
        reduction: "none", "mean" or "sum".
        label_smoothing: share of the target that is spread evenly over all classes (Szegedy et
            al. 2016).

    Shape:
        logits (N, C, *) or (C), and classes (N, *) or () or probabilities of the shape of input.

    Example:
        >>> loss = torch.nn.CrossEntropyLoss()
        >>> round(loss(torch.zeros(1, 2), torch.tensor([0])).item(), 4)
        0.6931
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Cross-entropy of probabilities of a yes: -(y * log(p) + (1 - y) * log(1 - p)).

    The logarithms stop at -100, so that the loss is finite.

    Args:
        weight: factor for each element, broadcast to it; 1 if None.
        reduction: "none", "mean" or "sum".

    Example:
        >>> round(torch.nn.BCELoss()(torch.tensor([0.5]), torch.tensor([1.0])).item(), 4)
        0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Cross-entropy of logits of a yes: BCELoss of sigmoid(input), without its overflow.

    Args:
        weight: factor for each element, broadcast to it; 1 if None.
        reduction: "none", "mean" or "sum".
        pos_weight: factor for the positive term of each class, broadcast; 1 if None.

    Example:
        >>> round(torch.nn.BCEWithLogitsLoss()(torch.zeros(1), torch.ones(1)).item(), 4)
        0.6931
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input,
            target,
            weight=self.weight,
            reduction=self.reduction,
            pos_weight=self.pos_weight,
        )


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence: target * (log(target) - input), input being log-probabilities.

    "batchmean" divides the sum by the batch size, which is the divergence by its definition;
    "mean" divides it by the number of elements.

    Args:
        reduction: "none", "mean", "sum" or "batchmean".
        log_target: whether target holds log-probabilities as well.

    Example:
        >>> log_p, q = torch.tensor([[0.0, -200.0]]), torch.tensor([[1.0, 0.0]])
        >>> torch.nn.KLDivLoss(reduction="batchmean")(log_p, q).item()
        0.0
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


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

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
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

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
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

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )
