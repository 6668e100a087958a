"""torch.ao.pruning: masks that make weights sparse, step by step, while a network trains.

A sparsifier puts a mask in front of each weight (nn.utils.parametrize) and chooses anew what it
hides whenever it steps; a scheduler says how much that is.
"""

from rushlight.ao.pruning._schedulers import BaseScheduler, CubicSL, LambdaSL
from rushlight.ao.pruning._sparsifiers import (
    BaseSparsifier,
    NearlyDiagonalSparsifier,
    WeightNormSparsifier,
)
from rushlight.ao.pruning._utils import (
    FakeSparsity,
    fqn_to_module,
    get_arg_info_from_tensor_fqn,
    module_to_fqn,
)

__all__ = [
    "BaseScheduler",
    "BaseSparsifier",
    "CubicSL",
    "FakeSparsity",
    "LambdaSL",
    "NearlyDiagonalSparsifier",
    "WeightNormSparsifier",
    "fqn_to_module",
    "get_arg_info_from_tensor_fqn",
    "module_to_fqn",
]
