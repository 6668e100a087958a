"""Transforms: differentiable functions with inverses and the log determinant of their Jacobian."""

from rushlight.distributions._elementwise_transforms import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from rushlight.distributions._elementwise_transforms import (
    clipped_sigmoid as _clipped_sigmoid,  # noqa: F401, libraries import it
)
from rushlight.distributions._event_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)
from rushlight.distributions._transform_base import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    identity_transform,
)
from rushlight.distributions._transform_base import _InverseTransform as _InverseTransform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "Transform",
    "identity_transform",
]
