"""Functions that average the gradients of DistributedDataParallel in other ways."""

from __future__ import annotations

from enum import Enum
from typing import Any

from rushlight.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging
from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks as default
from rushlight.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD
from rushlight.distributed.algorithms.ddp_comm_hooks import quantization_hooks as quantization

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class _Registration:
    """Registers a hook with a model, and with PowerSGD's rank a state of it."""

    def __init__(self, hook: Any, rank: int | None = None) -> None:
        self._hook = hook
        self._rank = rank

    def __call__(self, model: Any, state: Any, start_powerSGD_iter: int = 1000) -> None:
        if self._rank is not None:
            state = powerSGD.PowerSGDState(
                process_group=state,
                matrix_approximation_rank=self._rank,
                start_powerSGD_iter=start_powerSGD_iter,
            )
        model.register_comm_hook(state, self._hook)


class DDPCommHookType(Enum):
    """The hooks by name; the value of each registers it: value(model=model, state=group)."""

    ALLREDUCE = _Registration(default.allreduce_hook)
    FP16_COMPRESS = _Registration(default.fp16_compress_hook)
    BF16_COMPRESS = _Registration(default.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _Registration(quantization.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = _Registration(quantization.quantization_perchannel_hook)
    POWER_SGD = _Registration(powerSGD.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _Registration(powerSGD.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _Registration(powerSGD.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _Registration(powerSGD.batched_powerSGD_hook, 2)
    NOOP = _Registration(debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Registers a hook with a DistributedDataParallel model.

    Args:
        comm_hook_type: which.
        model: the model.
        state: the processes, None for all.
    """
    comm_hook_type.value(model=model, state=state)
