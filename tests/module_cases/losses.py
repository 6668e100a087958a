"""Losses: every module, with weights, ignored classes and smoothing."""

import numpy as np

from module_cases import Case, floats, ints

PROBABILITIES = {"low": 0.05, "high": 0.95}
SIGNS = np.array([[1.0, -1, 1, 1], [-1, -1, 1, -1], [1, 1, -1, 1]])
NAMED = np.array([[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, 3]])
TEXTS = np.array([[1, 2, 2], [3, 3, 4]])
WEIGHT = "weight=torch.tensor([0.5, 1.5, 2.0, 1.0], dtype=torch.float64)"


def reductions(name: str, settings: str, *inputs: object) -> list[Case]:
    """A module for single losses and for their mean."""
    settings = settings and f", {settings}"
    return [Case(f"nn.{name}(reduction='{how}'{settings})", *inputs) for how in ("none", "mean")]


CASES = [
    *reductions("L1Loss", "", floats(3, 4), floats(3, 4)),
    *reductions("MSELoss", "", floats(3, 4), floats(3, 4)),
    *reductions("SmoothL1Loss", "beta=0.5", floats(3, 4), floats(3, 4)),
    *reductions("HuberLoss", "delta=0.5", floats(3, 4), floats(3, 4)),
    *reductions("BCELoss", WEIGHT, floats(3, 4, **PROBABILITIES), floats(3, 4, **PROBABILITIES)),
    *reductions("BCEWithLogitsLoss", f"pos_{WEIGHT}", floats(3, 4), floats(3, 4, **PROBABILITIES)),
    *reductions("KLDivLoss", "", floats(3, 4), floats(3, 4, **PROBABILITIES)),
    Case("nn.KLDivLoss(reduction='batchmean', log_target=True)", floats(3, 4), floats(3, 4)),
    *reductions("NLLLoss", WEIGHT, floats(5, 4), ints(5, high=4)),
    *reductions("NLLLoss", "ignore_index=1", floats(2, 4, 3), ints(2, 3, high=4)),
    *reductions("CrossEntropyLoss", WEIGHT, floats(5, 4), ints(5, high=4)),
    *reductions("CrossEntropyLoss", "label_smoothing=0.2", floats(5, 4), ints(5, high=4)),
    *reductions(
        "CrossEntropyLoss", f"{WEIGHT}, label_smoothing=0.2, ignore_index=1",
        floats(5, 4), ints(5, high=4),
    ),
    *reductions("CrossEntropyLoss", f"{WEIGHT}, ignore_index=1", floats(2, 4, 3),
                ints(2, 3, high=4)),
    *reductions(
        "CrossEntropyLoss", "label_smoothing=0.3", floats(5, 4), floats(5, 4, **PROBABILITIES)
    ),
    Case("nn.CrossEntropyLoss()", floats(4), ints(high=4)),
    *reductions("HingeEmbeddingLoss", "margin=0.5", floats(3, 4), SIGNS),
    *reductions("MarginRankingLoss", "margin=0.5", floats(3, 4), floats(3, 4), SIGNS),
    *reductions("CosineEmbeddingLoss", "margin=0.2", floats(3, 4), floats(3, 4), SIGNS[:, 0]),
    *reductions("SoftMarginLoss", "", floats(3, 4), SIGNS),
    *reductions("MultiMarginLoss", f"p=2, {WEIGHT}", floats(3, 4), ints(3, high=4)),
    *reductions("MultiMarginLoss", "margin=0.5", floats(3, 4), ints(3, high=4)),
    *reductions("MultiLabelMarginLoss", "", floats(3, 4), NAMED),
    *reductions("MultiLabelSoftMarginLoss", WEIGHT, floats(3, 4), np.maximum(SIGNS, 0)),
    *reductions("TripletMarginLoss", "swap=True", floats(3, 4), floats(3, 4), floats(3, 4)),
    *reductions("TripletMarginLoss", "p=1", floats(3, 4), floats(3, 4), floats(3, 4)),
    *reductions(
        "TripletMarginWithDistanceLoss", "margin=2.0", floats(3, 4), floats(3, 4), floats(3, 4)
    ),
    *reductions("PoissonNLLLoss", "full=True", floats(3, 4), floats(3, 4, low=0.5, high=5)),
    *reductions("PoissonNLLLoss", "log_input=False", floats(3, 4, low=0.5, high=2), floats(3, 4)),
    *reductions(
        "GaussianNLLLoss", "full=True", floats(3, 4), floats(3, 4), floats(3, 4, low=0.5, high=2)
    ),
    *reductions("CTCLoss", "zero_infinity=True", floats(6, 2, 5), TEXTS, (6, 4), (3, 3)),
    *reductions("LinearCrossEntropyLoss", "in_features=4, num_classes=6, bias=True",
                floats(5, 4), ints(5, high=6)),
    Case("nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0)",
         floats(5, 8), np.array([0, 2, 4, 11, 5])),
    Case("nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0, head_bias=True)",
         floats(8), np.array(7)),
]  # fmt: skip
