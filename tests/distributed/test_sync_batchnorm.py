"""SyncBatchNorm: over several processes it is batch norm of the joined batch."""

from typing import Any

import pytest
from distributed.rank_pool import RankPool

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.nn.parallel import DistributedDataParallel


def check(sizes: list[int], dtype: torch.dtype, options: dict[str, Any]) -> None:
    """Batches of different sizes, one of them empty."""
    rank = dist.get_rank()
    shapes = [(size, 3, 4, 2) for size in sizes]
    parts = [torch.randn(shape, dtype=torch.float64).to(dtype) for shape in shapes]
    weights = [torch.randn(shape, dtype=torch.float64).to(dtype) for shape in shapes]
    state = torch.float64 if dtype == torch.float64 else torch.float32
    joined, synced = nn.BatchNorm2d(3, **options), nn.SyncBatchNorm(3, **options)
    for norm in joined, synced:
        norm.to(state)
        if norm.weight is not None:
            nn.init.uniform_(norm.weight, generator=torch.Generator().manual_seed(3))
    whole = torch.cat(parts).requires_grad_()
    expected = joined(whole)
    (expected * torch.cat(weights)).sum().backward()
    part = parts[rank].clone().requires_grad_()
    found = synced(part)
    assert found.dtype == dtype
    (found * weights[rank]).sum().backward()

    tolerance = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 4e-2}[dtype]
    close: dict[str, Any] = {"atol": tolerance, "rtol": tolerance}
    begin = sum(sizes[:rank])
    assert whole.grad is not None and part.grad is not None
    torch.testing.assert_close(found, expected[begin : begin + sizes[rank]], **close)
    torch.testing.assert_close(part.grad, whole.grad[begin : begin + sizes[rank]], **close)
    for mine, theirs in zip(synced.buffers(), joined.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, **close)
    for mine, theirs in zip(synced.parameters(), joined.parameters(), strict=True):
        assert mine.grad is not None and theirs.grad is not None
        dist.all_reduce(mine.grad)  # of each process its share
        torch.testing.assert_close(mine.grad, theirs.grad, **close)
    for norm in synced, joined:
        norm.eval()
    torch.testing.assert_close(synced(whole), joined(whole), **close)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_it_equals_batch_norm_of_the_joined_batch(
    three_ranks: RankPool, dtype: torch.dtype
) -> None:
    for sizes in [3, 2, 1], [4, 0, 2]:
        three_ranks.run(check, sizes, dtype, {})


@pytest.mark.parametrize(
    "options",
    [
        {"affine": False},
        {"momentum": None},
        {"track_running_stats": False, "bias": False},
        {"eps": 0.1, "momentum": 0.5},
    ],
    ids=str,
)
def test_options(two_ranks: RankPool, options: dict[str, Any]) -> None:
    two_ranks.run(check, [2, 3], torch.float64, options)


def check_digits_are_kept() -> None:
    """Large means and small variances: squares would cancel."""
    x = torch.randn(100, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    part = (x + 1000).float().tensor_split(2)[dist.get_rank()]
    found = nn.SyncBatchNorm(1, eps=1e-9)(part)
    exact = ((x - x.mean()) / x.std(correction=0)).tensor_split(2)[dist.get_rank()]
    torch.testing.assert_close(found.double(), exact, atol=1e-3, rtol=0)


def check_refusals_and_conversion() -> None:
    rank = dist.get_rank()
    norm = nn.SyncBatchNorm(2)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm(torch.ones(1 - rank, 2))
    net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))
    alone = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))
    alone.load_state_dict(net.state_dict())
    model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net))
    whole = torch.randn(8, 4, generator=torch.Generator().manual_seed(2))
    for _ in range(3):
        model.zero_grad()
        alone.zero_grad()
        model(whole.tensor_split(2)[rank]).square().mean().backward()
        alone(whole).square().mean().backward()
        for mine, theirs in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, theirs.grad)
    for mine, theirs in zip(model.buffers(), alone.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs)
    subgroup = [dist.new_group([each]) for each in range(2)][rank]
    own = nn.SyncBatchNorm(3, process_group=subgroup)(torch.randn(4, 3) + rank)
    torch.testing.assert_close(own.mean(0), torch.zeros(3), atol=1e-5, rtol=0)


def test_digits_refusals_and_conversion(two_ranks: RankPool) -> None:
    two_ranks.run(check_digits_are_kept)
    two_ranks.run(check_refusals_and_conversion)
