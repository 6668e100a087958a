"""Communication hooks for DistributedDataParallel that all_reduce, in the gradients' dtype or less.

Each is registered by ddp.register_comm_hook(process_group, hook), with None for all processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed import GradBucket
from rushlight.futures import Future

Hook = Callable[[Any, GradBucket], Future]

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _average(process_group: Any, tensor: Tensor) -> Future:
    """Returns the future of the average of a tensor over processes, which overwrites it."""
    tensor.div_(dist.get_world_size(process_group))
    work = dist.all_reduce(tensor, group=process_group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Averages as DistributedDataParallel does without a hook, for other hooks to build on.

    Args:
        process_group: the processes.
        bucket: the gradients.

    Returns:
        The future of the averages.
    """
    return _average(process_group, bucket.buffer())


def _compress_hook(dtype: rl.dtype, process_group: Any, bucket: GradBucket) -> Future:
    buffer = bucket.buffer()
    average = _average(process_group, buffer.to(dtype))
    return average.then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Averages in float16, so that half as much is sent; small gradients vanish.

    Args:
        process_group: the processes.
        bucket: the gradients.

    Returns:
        The future of the averages, in the dtype of the gradients.
    """
    return _compress_hook(rl.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Averages in bfloat16, so that half as much is sent, with 8 bits of precision.

    Args:
        process_group: the processes.
        bucket: the gradients.

    Returns:
        The future of the averages, in the dtype of the gradients.
    """
    return _compress_hook(rl.bfloat16, process_group, bucket)


def _wrapped(dtype: rl.dtype, hook: Hook) -> Hook:
    def compressed(state: Any, bucket: GradBucket) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(state, bucket).then(lambda done: buffer.copy_(done.value()))

    return compressed


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Returns a hook that hands float16 gradients to another hook, and casts its results back.

    Args:
        hook: such as powerSGD_hook.
    """
    return _wrapped(rl.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Returns a hook that hands bfloat16 gradients to another hook, and casts its results back.

    Args:
        hook: such as powerSGD_hook.
    """
    return _wrapped(rl.bfloat16, hook)
