"""What fully_shard takes besides the module: dtypes, and where the parts are kept."""

from __future__ import annotations

from dataclasses import dataclass

import rushlight as rl

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a sharded module; None keeps what is there.

    Args:
        param_dtype: of whole parameters, in forward and backward. The parts, and what optimizers
            do with them, keep theirs.
        reduce_dtype: in which gradients are averaged; like the gradients by default.
        output_dtype: of what forward returns.
        cast_forward_inputs: whether forward gets its arguments in param_dtype.

    Raises:
        TypeError: for what is no dtype.

    Example:
        >>> torch.distributed.fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16).reduce_dtype
    """

    param_dtype: rl.dtype | None = None
    reduce_dtype: rl.dtype | None = None
    output_dtype: rl.dtype | None = None
    cast_forward_inputs: bool = True

    def __post_init__(self) -> None:
        for name in ("param_dtype", "reduce_dtype", "output_dtype"):
            dtype = getattr(self, name)
            if not (dtype is None or isinstance(dtype, rl.dtype)):
                raise TypeError(f"MixedPrecisionPolicy: {name} is {dtype!r}. It must be a dtype.")


@dataclass
class OffloadPolicy:
    """Keeps the parts where the module computes."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Keeps parts, their gradients and so the state of optimizers in the memory of the CPU.

    Args:
        pin_memory: whether in pinned memory, from where copies to the GPU do not wait.
    """

    pin_memory: bool = True
