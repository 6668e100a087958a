"""loss_parallel: the loss of logits whose classes are spread over the ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight.distributed.tensor._implicit import implicit_replication

__all__ = ["loss_parallel"]


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Lets cross_entropy take a plain target, alike on all ranks, beside logits that are a DTensor.

    The logits stay apart by class inside the block as they do outside.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> tensor = torch.distributed.tensor
        >>> logits = tensor.zeros(2, 4, device_mesh=mesh, placements=[tensor.Shard(1)])
        >>> with tensor.parallel.loss_parallel():
        ...     loss = torch.nn.functional.cross_entropy(logits, torch.tensor([0, 3]))
        >>> loss.full_tensor()
        tensor(1.3863)
        >>> torch.distributed.destroy_process_group()
    """
    with implicit_replication():
        yield
