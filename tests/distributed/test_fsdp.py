"""Sharded parameters are refused by name; programs may ask isinstance."""

import pytest

import rushlight as torch
from rushlight.distributed import fsdp


def test_sharding_is_refused() -> None:
    net = torch.nn.Linear(2, 2)
    assert not isinstance(net, (fsdp.FullyShardedDataParallel, fsdp.FSDPModule))
    with pytest.raises(NotImplementedError, match="Use nn.parallel.DistributedDataParallel"):
        fsdp.FullyShardedDataParallel(net)
    with pytest.raises(NotImplementedError, match="fully_shard: parameters cannot be cut"):
        fsdp.fully_shard(net)
