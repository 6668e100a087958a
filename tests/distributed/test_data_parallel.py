"""DistributedDataParallel: gradients of several processes are those of one with the whole batch.

The oracle is the same network in the rank's own process, without any collective.
"""

import copy
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
from rushlight.distributed._composable.replicate import replicate
from rushlight.nn.parallel import DistributedDataParallel

OPTIONS: list[dict[str, Any]] = [
    {},
    {"bucket_cap_mb": TINY},
    {"bucket_cap_mb_list": [TINY, 2 * TINY]},
    {"gradient_as_bucket_view": True, "bucket_cap_mb": TINY},
    {"find_unused_parameters": True, "bucket_cap_mb": TINY},
    {"find_unused_parameters": True, "skip_all_reduce_unused_params": True},
    {"static_graph": True, "bucket_cap_mb": TINY},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_training_equals_that_of_one_process(two_ranks: RankPool, options: dict[str, Any]) -> None:
    two_ranks.run(check_options, options)


def check_options(options: dict[str, Any]) -> None:
    check_against_one_process(build(), **options)


def check_replicated() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    net = build()
    alone = copy.deepcopy(net)
    assert replicate(net, device_mesh=mesh, bucket_cap_mb=TINY) is net
    parts = parts_of_batch(0)
    for turn in range(2):
        net.set_requires_gradient_sync(turn == 1)
        net(parts[dist.get_rank()]).square().sum().backward()
    for part in parts * 2:
        (alone(part).square().sum() / 2).backward()
    torch.testing.assert_close(gradients(net), gradients(alone))

    net = build()
    replicate(net, [net[0]])
    net(parts[dist.get_rank()]).sum().backward()
    own, shared = net[0].weight.grad, net[2].weight.grad
    others = [torch.empty(8, 4), torch.empty(8, 4)], [torch.empty(8, 8), torch.empty(8, 8)]
    for grads, grad in zip(others, (own, shared), strict=True):
        dist.all_gather(grads, grad)
    assert not others[0][0].equal(others[0][1]) and others[1][0].equal(others[1][1])


def test_a_module_is_replicated_as_it_is(two_ranks: RankPool) -> None:
    two_ranks.run(check_replicated)


def test_three_ranks_train_as_one(three_ranks: RankPool) -> None:
    for options in OPTIONS[1], OPTIONS[3]:
        three_ranks.run(check_options, options)


def check_exact_gradients() -> None:
    """Small integers have exact sums, so that every bit must be right."""
    net = nn.Linear(3, 2)
    with torch.no_grad():
        for param in net.parameters():
            param.copy_(torch.arange(param.numel()).view_as(param))
    model = DistributedDataParallel(net, bucket_cap_mb=TINY)
    model(torch.full((4, 3), 2.0 + dist.get_rank())).sum().backward()
    weight, bias = gradients(net)
    mean = (2 + 2 + dist.get_world_size() - 1) / 2
    assert weight.tolist() == [[4 * mean] * 3] * 2
    assert bias.tolist() == [4, 4]


def test_gradients_are_exact_where_sums_are(two_ranks: RankPool) -> None:
    two_ranks.run(check_exact_gradients)


class Branches(nn.Module):
    """Uses one of two layers, and never the third."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.never = (nn.Linear(2, 2) for _ in range(3))

    def forward(self, x: torch.Tensor, takes_first: bool) -> Any:
        return {"y": [self.first(x) if takes_first else self.second(x)]}


def check_unused() -> None:
    for cap in TINY, 25:
        model = DistributedDataParallel(Branches(), find_unused_parameters=True, bucket_cap_mb=cap)
        net = model.module
        for _ in range(3):
            model.zero_grad()
            model(torch.ones(1, 2), dist.get_rank() == 0)["y"][0].sum().backward()
            for used in net.first, net.second:  # each by one of two ranks
                assert used.weight.grad is not None
                assert used.weight.grad.tolist() == [[0.5, 0.5]] * 2
            assert net.never.weight.grad is None  # by none: optimizers must not move it
        model.zero_grad()
        model(torch.ones(1, 2), True)["y"][0].sum().backward()
        assert net.second.weight.grad is None


def check_no_parameter() -> None:
    """One rank's loss goes through the output, and to no parameter: the other must not wait."""

    class Sometimes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x) if dist.get_rank() == 0 else x * 2

    model = DistributedDataParallel(Sometimes(), find_unused_parameters=True)
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()
        assert model.module.layer.weight.grad is not None
        assert model.module.layer.weight.grad.tolist() == [[0.5, 0.5]] * 2


def test_parameters_may_be_left_out(two_ranks: RankPool) -> None:
    two_ranks.run(check_unused)
    two_ranks.run(check_no_parameter)


class TwoOutputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.left(x), self.right(x)


def check_unused_output() -> None:
    model = DistributedDataParallel(TwoOutputs(), find_unused_parameters=True, bucket_cap_mb=TINY)
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(3, 2))[0].sum().backward()
        assert model.module.left.weight.grad is not None
        assert model.module.right.weight.grad is None


def test_outputs_may_be_left_out(two_ranks: RankPool) -> None:
    two_ranks.run(check_unused_output)


def check_missing_gradient() -> None:
    model = DistributedDataParallel(Branches())
    model(torch.ones(1, 2), True)["y"][0].sum().backward()
    with pytest.raises(RuntimeError, match="Expected to have finished reduction") as caught:
        model(torch.ones(1, 2), True)
    assert "second.weight, second.bias, never.weight, never.bias" in str(caught.value)


def test_missing_gradients_are_named(two_ranks: RankPool) -> None:
    two_ranks.run(check_missing_gradient)


def check_no_sync(as_views: bool) -> None:
    net = build()
    alone = copy.deepcopy(net)
    model = DistributedDataParallel(net, bucket_cap_mb=TINY, gradient_as_bucket_view=as_views)
    mine = dist.get_rank()
    for step in range(0, 9, 3):
        model.zero_grad()
        alone.zero_grad()
        with model.no_sync():
            for inner in range(2):
                model(parts_of_batch(step + inner)[mine]).square().sum(1).mean().backward()
        own = copy.deepcopy(alone)
        for inner in range(2):
            own(parts_of_batch(step + inner)[mine]).square().sum(1).mean().backward()
        torch.testing.assert_close(gradients(model), gradients(own))
        model(parts_of_batch(step + 2)[mine]).square().sum(1).mean().backward()
        for inner in range(3):
            mean_loss(alone, parts_of_batch(step + inner)).backward()
        torch.testing.assert_close(gradients(model), gradients(alone))
    with model.no_sync():
        output = model(parts_of_batch(0)[mine])
    model.zero_grad()
    alone.zero_grad()
    model.reducer.prepare_for_backward([output])
    output.square().sum(1).mean().backward()
    mean_loss(alone, parts_of_batch(0)).backward()
    torch.testing.assert_close(gradients(model), gradients(alone))


@pytest.mark.parametrize("as_views", [False, True])
def test_no_sync_adds_gradients_up(two_ranks: RankPool, as_views: bool) -> None:
    two_ranks.run(check_no_sync, as_views)


def check_start_and_buffers() -> None:
    torch.manual_seed(dist.get_rank())
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    net[1].running_mean += dist.get_rank()
    net.register_buffer("mark", torch.full((3,), dist.get_rank(), dtype=torch.float16))
    net.register_buffer("empty", torch.empty(0))
    model = DistributedDataParallel(net)
    states: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(states, {k: v.tolist() for k, v in model.state_dict().items()})
    assert states[0] == states[1]
    assert "module.0.weight" in states[0]
    net.mark += dist.get_rank()
    with torch.no_grad():
        model(torch.randn(4, 2))
    assert net.mark.tolist() == [0, 0, 0]
    net.mark += dist.get_rank()
    with torch.no_grad():
        model(torch.randn(4, 2))
    assert net.mark.tolist() == [dist.get_rank()] * 3  # as after no_sync: nothing has changed
    for options in {"broadcast_buffers": False}, {"forward_sync_buffers": False}:
        net.mark.fill_(dist.get_rank())
        model = DistributedDataParallel(net, **options)
        model(torch.randn(4, 2))
        kept = dist.get_rank() if "broadcast_buffers" in options else 0
        assert net.mark.tolist() == [kept] * 3


def test_ranks_begin_equal_and_share_buffers(two_ranks: RankPool) -> None:
    two_ranks.run(check_start_and_buffers)


def check_disagreement() -> None:
    rank = dist.get_rank()
    cases = [
        (nn.Linear(2, 3 + rank), r"weight is float32 of shape \(3, 2\) in process 0, but weight"),
        (nn.Linear(2, 3, dtype=(torch.float32, torch.float64)[rank]), "float64"),
        (nn.Sequential(nn.Linear(2, 2), *[nn.Linear(2, 2)] * rank), "process 0 lacks 1.weight"),
        (nn.Sequential(nn.Linear(2, 2), *[nn.Linear(2, 2)] * (1 - rank)), "process 1 lacks 1.we"),
    ]
    for net, message in cases:
        with pytest.raises(RuntimeError, match=message):
            DistributedDataParallel(net)


def test_models_that_differ_are_refused_in_every_process(two_ranks: RankPool) -> None:
    two_ranks.run(check_disagreement)


def check_refusals() -> None:
    frozen = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(RuntimeError, match="doesn't have any parameters that require a gradient"):
        DistributedDataParallel(frozen)
    with pytest.raises(RuntimeError, match="uninitialized parameters"):
        DistributedDataParallel(nn.LazyLinear(2))
    with pytest.raises(ValueError, match="only work with single-device GPU modules"):
        DistributedDataParallel(build(), device_ids=[0])
    with pytest.raises(ValueError, match="None or contain a single element"):
        DistributedDataParallel(build(), device_ids=[0, 1])
    with pytest.raises(ValueError, match="need each other"):
        DistributedDataParallel(build(), param_to_hook_all_reduce=torch.ones(1))
    model = DistributedDataParallel(build())
    with pytest.raises(TypeError, match="must be callable"):
        model.register_comm_hook(None, 3)
    model.register_comm_hook(None, print)
    with pytest.raises(RuntimeError, match="only be called once"):
        model.register_comm_hook(None, print)


def test_mistakes_are_refused(two_ranks: RankPool) -> None:
    two_ranks.run(check_refusals)
