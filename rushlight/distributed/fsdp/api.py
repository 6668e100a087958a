"""Options of FullyShardedDataParallel, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

import rushlight as rl
from rushlight.nn import Module
from rushlight.nn.modules.batchnorm import _BatchNorm

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class ShardingStrategy(Enum):
    """What is cut over the ranks, and for how long.

    FULL_SHARD cuts parameters, gradients and the state of optimizers; SHARD_GRAD_OP keeps whole
    parameters from forward to the end of backward; NO_SHARD keeps whole copies of everything;
    HYBRID_SHARD cuts over the ranks of one machine and keeps copies on the others, and
    _HYBRID_SHARD_ZERO2 does it with SHARD_GRAD_OP.
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When backward begins to gather the next parameters; here both mean the same."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """The dtypes of a FullyShardedDataParallel; None keeps what is there.

    Args:
        param_dtype: of whole parameters, in forward and backward.
        reduce_dtype: in which gradients are averaged; param_dtype by default.
        buffer_dtype: of buffers, from the beginning.
        keep_low_precision_grads: gradients are of the parameters' own dtype: False only.
        cast_forward_inputs: whether inputs are converted to param_dtype.
        cast_root_forward_inputs: the same for the outermost module.
        _module_classes_to_ignore: modules that auto_wrap_policy wraps by themselves, in full
            precision.
    """

    param_dtype: rl.dtype | None = None
    reduce_dtype: rl.dtype | None = None
    buffer_dtype: rl.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[Module]] = field(default_factory=lambda: (_BatchNorm,))


@dataclass
class CPUOffload:
    """Whether parts and their gradients are in the memory of the CPU."""

    offload_params: bool = False


class OptimStateKeyType(Enum):
    """What parameters are called in the state of an optimizer: by name, or by number."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class StateDictType(Enum):
    """What state dicts hold: whole tensors, this rank's parts as plain tensors, or DTensors."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """Options of state_dict: whether its tensors are in the memory of the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """For FULL_STATE_DICT: whether only rank 0 gets one, and the others an empty one."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """For LOCAL_STATE_DICT."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """For SHARDED_STATE_DICT; its tensors are DTensors anyway."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Options of optim_state_dict: whether its tensors are in the memory of the CPU."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """For FULL_STATE_DICT: whether only rank 0 gets one, and the others an empty one."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """For LOCAL_STATE_DICT."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """For SHARDED_STATE_DICT; its tensors are DTensors anyway."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What state_dict_type sets."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
