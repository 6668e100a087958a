"""DistributedDataParallel with what programs combine it with: checkpoints, AMP, pickle, join...

The oracle is the same network in the rank's own process, without any collective.
"""

import copy
import pickle
from typing import Any

import pytest
from distributed.rank_pool import RankPool
from distributed.replicas import (
    TINY,
    build,
    check_against_one_process,
    gradients,
    mean_loss,
    parts_of_batch,
)

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.nn.parallel import DistributedDataParallel
from rushlight.nn.parallel.distributed import _MixedPrecision
from rushlight.utils.checkpoint import checkpoint


class Reentrant(nn.Module):
    """Uses one layer twice, each time in a backward within the backward."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=True)
        return x


def check_reentrant() -> None:
    net = Reentrant()

    def inputs() -> torch.Tensor:
        return torch.full((1, 2), 1.0 + dist.get_rank(), requires_grad=True)

    model = DistributedDataParallel(net)
    with pytest.raises(RuntimeError, match="mark a variable ready only once"):
        model(inputs()).sum().backward()
    model = DistributedDataParallel(net, static_graph=True)
    alone = copy.deepcopy(net.layer)
    alone.zero_grad()
    (alone(alone(torch.tensor([[1.0, 1.0], [2.0, 2.0]]))).sum() / 2).backward()
    for _ in range(3):
        model.zero_grad()
        model(inputs()).sum().backward()
        torch.testing.assert_close(gradients(model), gradients(alone))


def test_reentrant_passes_need_a_static_graph(two_ranks: RankPool) -> None:
    two_ranks.run(check_reentrant)


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = build()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.net, x, use_reentrant=False)


def convolutions() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 3), nn.Flatten(), nn.Linear(12, 2)
    ).to(memory_format=torch.channels_last)


def check_kinds_of_networks() -> None:
    check_against_one_process(Checkpointed(), steps=3, bucket_cap_mb=TINY)
    for as_views in False, True:
        net = convolutions()
        options: dict[str, Any] = {"bucket_cap_mb": TINY, "gradient_as_bucket_view": as_views}
        check_against_one_process(net, steps=4, shape=(2, 2, 4, 4), **options)
        grad = net[0].weight.grad
        assert grad.is_contiguous(memory_format=torch.channels_last)
    mixed = build()
    mixed[2].double()
    mixed[1].register_forward_hook(lambda *args: args[2].double())
    mixed[3].register_forward_hook(lambda *args: args[2].float())
    check_against_one_process(mixed, steps=4)
    tied = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    tied[2].weight = tied[0].weight
    check_against_one_process(tied, steps=4)


def test_checkpoints_memory_formats_dtypes_and_ties(two_ranks: RankPool) -> None:
    two_ranks.run(check_kinds_of_networks)


def check_mixed_precision_of_amp() -> None:
    net = build()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    before = gradients(net)
    for step in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(parts_of_batch(step)[dist.get_rank()]).float().square().mean()
        if step == 1 and dist.get_rank() == 1:
            loss = loss * float("inf")
        before = [param.detach().clone() for param in net.parameters()]
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        norms: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(norms, str(norm.item()))
        assert norms[0] == norms[1]
        scaler.step(optimizer)
        scaler.update()
        # An overflow in one rank is one in all: all leave the step out.
        moved = not torch.equal(before[0], next(net.parameters()))
        assert moved == (step != 1)


def test_autocast_scaling_and_clipping(two_ranks: RankPool) -> None:
    two_ranks.run(check_mixed_precision_of_amp)


def check_mixed_precision() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    alone = copy.deepcopy(net)
    half = torch.bfloat16
    model = DistributedDataParallel(net, mixed_precision=_MixedPrecision(half, half, half))
    parts = parts_of_batch(0)
    output = model(parts[dist.get_rank()])
    assert output.dtype is half and net[1].running_mean.dtype is half
    output.float().square().sum(1).mean().backward()
    mean_loss(alone, parts).backward()
    torch.testing.assert_close(gradients(model), gradients(alone), atol=0.1, rtol=0.1)


def test_forward_in_another_dtype(two_ranks: RankPool) -> None:
    two_ranks.run(check_mixed_precision)


def check_sparse() -> None:
    rank = dist.get_rank()
    table = nn.Embedding(6, 2, sparse=True)
    model = DistributedDataParallel(nn.Sequential(table, nn.Linear(2, 1)))
    for words in ([[0, 1], [1, 2, 3]], [[4], []]):  # ranks have different numbers of rows
        model.zero_grad()
        expected = torch.zeros(6, 2)
        for part in words:
            for word in part:
                expected[word] += model.module[1].weight[0].detach() / 2
        model(torch.tensor(words[rank], dtype=torch.int64)).sum().backward()
        grad = table.weight.grad
        assert grad is not None and grad.is_sparse
        torch.testing.assert_close(grad.to_dense(), expected)


def test_sparse_gradients_are_averaged(two_ranks: RankPool) -> None:
    two_ranks.run(check_sparse)


def check_pickle_and_copies() -> None:
    model = DistributedDataParallel(build(), bucket_cap_mb=TINY)
    again = pickle.loads(pickle.dumps(model))
    torch.testing.assert_close(list(again.parameters()), list(model.parameters()))
    parts = parts_of_batch(0)
    for each in model, again:
        each(parts[dist.get_rank()]).square().sum(1).mean().backward()
    torch.testing.assert_close(gradients(again), gradients(model))
    plain = build()
    plain.load_state_dict(model.module.state_dict())
    # A module is free again when what wrapped it is gone.
    net = model.module
    del model
    net.zero_grad()
    net(torch.full((1, 4), float(dist.get_rank()))).sum().backward()
    assert net[0].weight.grad is not None and (net[0].weight.grad == 0).all() == (
        not dist.get_rank()
    )


def test_pickling_and_unwrapping(two_ranks: RankPool) -> None:
    two_ranks.run(check_pickle_and_copies)


def check_join(divides_by_initial: bool, as_views: bool) -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, track_running_stats=False))
    alone = copy.deepcopy(net)
    model = DistributedDataParallel(net, bucket_cap_mb=TINY, gradient_as_bucket_view=as_views)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, alone)]
    rank, size = dist.get_rank(), dist.get_world_size()
    for _ in range(2):  # a model can be used on afterwards
        with model.join(divide_by_initial_world_size=divides_by_initial):
            for step in range(3 + 2 * rank):
                optimizers[0].zero_grad()
                model(parts_of_batch(step)[rank]).square().mean().backward()
                optimizers[0].step()
        for step in range(3 + 2 * (size - 1)):
            active = [part for r, part in enumerate(parts_of_batch(step)) if step < 3 + 2 * r]
            optimizers[1].zero_grad()
            loss = torch.stack([alone(part).square().mean() for part in active]).sum()
            (loss / (size if divides_by_initial else len(active))).backward()
            optimizers[1].step()
        torch.testing.assert_close(list(model.parameters()), list(alone.parameters()))


def test_join_trains_on_uneven_inputs(two_ranks: RankPool, three_ranks: RankPool) -> None:
    for divides_by_initial in True, False:
        two_ranks.run(check_join, divides_by_initial, False)
    three_ranks.run(check_join, False, True)


def check_join_with_options() -> None:
    rank = dist.get_rank()
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model = DistributedDataParallel(net, find_unused_parameters=True)
    with model.join():
        for _ in range(2 + rank * 3):
            with model.no_sync():
                model(torch.randn(3, 4)).sum().backward()
            with torch.no_grad():
                model.eval()(torch.randn(3, 4))
            model.train()(torch.randn(3, 4)).sum().backward()
    means: list[Any] = [None] * 2
    dist.all_gather_object(means, net[1].running_mean.tolist())
    assert means[0] == means[1]

    def train_unevenly() -> None:
        with model.join(throw_on_early_termination=True):
            for _ in range(2 + rank):
                model(torch.randn(3, 4)).sum().backward()

    with pytest.raises(RuntimeError, match="exhausted inputs"):
        train_unevenly()
    with model.join(enable=False):
        model(torch.randn(3, 4)).sum().backward()


def test_join_with_buffers_no_sync_and_early_end(two_ranks: RankPool) -> None:
    two_ranks.run(check_join_with_options)


def check_delayed() -> None:
    net = build()
    alone = copy.deepcopy(net)
    delayed = [("4.weight", net[4].weight), ("4.bias", net[4].bias)]
    model = DistributedDataParallel(
        net, delay_all_reduce_named_params=delayed, param_to_hook_all_reduce=net[0].weight
    )
    for step in range(2):
        model.zero_grad()
        alone.zero_grad()
        model(parts_of_batch(step)[dist.get_rank()]).square().sum(1).mean().backward()
        mean_loss(alone, parts_of_batch(step)).backward()
        torch.testing.assert_close(gradients(net), gradients(alone))


def test_delayed_parameters_are_averaged(two_ranks: RankPool) -> None:
    two_ranks.run(check_delayed)


def check_ignored() -> None:
    net = build()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["4.bias"])
    model = DistributedDataParallel(net)
    (model(torch.ones(1, 4)).sum() * dist.get_rank()).backward()
    assert net[4].bias.grad.tolist() == [dist.get_rank()] * 3


def test_ignored_parameters_keep_their_gradients(two_ranks: RankPool) -> None:
    two_ranks.run(check_ignored)


def check_created_graph() -> None:
    """A gradient of gradients, of which the second backward averages."""
    net = nn.Linear(2, 1)
    model = DistributedDataParallel(net)
    x = torch.full((1, 2), 1.0 + dist.get_rank(), requires_grad=True)
    (grad,) = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
    grad.square().sum().backward()
    alone = copy.deepcopy(net)
    alone.zero_grad()
    whole = torch.tensor([[1.0, 1.0], [2.0, 2.0]], requires_grad=True)
    (grad,) = torch.autograd.grad(alone(whole).square().sum(), whole, create_graph=True)
    (grad.square().sum() / 2).backward()
    torch.testing.assert_close(gradients(net), gradients(alone))


def test_gradient_penalties_are_averaged(two_ranks: RankPool) -> None:
    two_ranks.run(check_created_graph)
