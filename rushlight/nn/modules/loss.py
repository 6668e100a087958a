"""Losses as layers; each calls the function of its name in nn.functional.

Every loss takes `reduction`: "none" returns the losses of the elements, "sum" and "mean" one
number. The formulas below are those of one element. Where PyTorch still takes the former arguments
size_average and reduce they are taken too, with its warning. margin.py has the losses of margins.
"""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, _later
from rushlight.nn import _reduction as _Reduction
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
]


class _Loss(Module):
    """What all losses share."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        if isinstance(size_average, Tensor):
            name = type(self).__name__
            raise RuntimeError(
                f"{name}: size_average is a tensor. {name}(...) makes the loss, which takes "
                f"tensors when it is called. Write {name}()(input, target)."
            )
        if size_average is not None or reduce is not None:
            reduction = _Reduction.legacy_get_string(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """What losses with a weight per class or element share; the weight moves with the module."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
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

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
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
        if not isinstance(delta, (float, int)):
            raise TypeError(f"HuberLoss: delta must be a float or int, got {type(delta)}")
        super().__init__(reduction=reduction)
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
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
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
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
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
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
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

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log likelihood of counts: exp(input) - target * input.

    Without log_input it is input - target * log(input + eps).

    Args:
        log_input: whether input is the logarithm of the rate.
        full: whether Stirling's approximation of log(target!) is added, where target is above 1.
        eps: keeps the logarithm finite, without log_input.
        reduction: "none", "mean" or "sum".

    Example:
        >>> torch.nn.PoissonNLLLoss()(torch.tensor([0.0]), torch.tensor([3.0])).item()
        1.0
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """Negative log likelihood of a normal distribution (Nix and Weigend 1994).

    0.5 * (log(max(var, eps)) + (input - target)**2 / max(var, eps)).

    Args:
        full: whether the constant 0.5 * log(2 * pi) is added.
        eps: smallest variance.
        reduction: "none", "mean" or "sum".

    Shape:
        input and target (N, *); var (N, *), that with a last dim of 1 or without it, or a number.

    Example:
        >>> loss = torch.nn.GaussianNLLLoss()
        >>> loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])).item()
        2.0
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class CTCLoss(_Loss):
    """Negative log likelihood of label sequences of unknown alignment (Graves et al. 2006).

    A sequence of classes reads as a target if that is what remains when repeated classes are
    merged and blanks left out; the probabilities of all those that do add up. "mean" divides each
    loss by the length of its target first.

    Args:
        blank: the class of the blank.
        reduction: "none", "mean" or "sum".
        zero_infinity: whether samples that are too short for their target count as 0.

    Shape:
        log-probabilities (T, N, C) or (T, C); targets (N, S), or one after the other; lengths of
        the samples and of their targets (N) or (), as tensors or tuples.

    Example:
        >>> log_p = torch.zeros(3, 1, 2).log_softmax(2)
        >>> loss = torch.nn.CTCLoss()(log_p, torch.tensor([[1]]), (3,), (1,))
        >>> round((-loss).exp().item(), 4)  # of 8 sequences 6 read so
        0.75
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | tuple[int, ...],
        target_lengths: Tensor | tuple[int, ...],
    ) -> Tensor:
        lengths: tuple[Any, Any] = (input_lengths, target_lengths)
        return F.ctc_loss(
            log_probs, targets, *lengths, self.blank, self.reduction, self.zero_infinity
        )


# PyTorch has these here.
__getattr__ = _later.imports(
    __name__,
    names_in={
        "distance": "PairwiseDistance",
        "linear_cross_entropy": "LinearCrossEntropyLoss",
        "margin": (
            "CosineEmbeddingLoss HingeEmbeddingLoss MarginRankingLoss "
            "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss "
            "SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss"
        ),
    },
    package="rushlight.nn.modules",
)
