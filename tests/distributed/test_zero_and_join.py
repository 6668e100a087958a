"""ZeroRedundancyOptimizer, Join by itself, and the sampler's defaults."""

import copy
from typing import Any

import pytest
from distributed.rank_pool import RankPool
from distributed.replicas import build, parts_of_batch

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook
from rushlight.distributed.optim import (
    ZeroRedundancyOptimizer,
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
)
from rushlight.nn.parallel import DistributedDataParallel
from rushlight.utils.data import DistributedSampler


def train(model: nn.Module, alone: nn.Module, optimizers: Any, steps: range) -> None:
    for step in steps:
        for optimizer in optimizers:
            optimizer.zero_grad()
        parts = parts_of_batch(step)
        model(parts[dist.get_rank()]).square().mean().backward()
        torch.stack([alone(part).square().mean() for part in parts]).mean().backward()
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(list(model.parameters()), list(alone.parameters()))


def groups_of(net: nn.Module) -> list[dict[str, Any]]:
    params = list(net.parameters())
    return [{"params": params[:2]}, {"params": params[2:], "lr": 0.02}]


def check_zero(as_views: bool) -> None:
    net = build()
    alone = copy.deepcopy(net)
    model = DistributedDataParallel(net)
    zero = ZeroRedundancyOptimizer(
        groups_of(net), torch.optim.Adam, parameters_as_bucket_view=as_views, lr=0.1
    )
    plain = torch.optim.Adam(groups_of(alone), lr=0.1)
    schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (zero, plain)]
    for begin in range(0, 6, 2):
        train(model, alone, (zero, plain), range(begin, begin + 2))
        for schedule in schedules:
            schedule.step()
    assert zero.optim is not None
    kept = sum(state["exp_avg"].numel() for state in zero.optim.state.values())
    everywhere: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, kept)
    assert sum(everywhere) == sum(p.numel() for p in net.parameters())
    assert max(everywhere) < sum(everywhere)

    with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
        zero.state_dict()
    zero.consolidate_state_dict(to=1)
    if dist.get_rank() == 1:
        torch.testing.assert_close(zero.state_dict()["state"], plain.state_dict()["state"])
        assert zero.state_dict()["param_groups"] == plain.state_dict()["param_groups"]
    # A plain optimizer's state is taken up.
    again = ZeroRedundancyOptimizer(groups_of(net), torch.optim.Adam, lr=0.3)
    again.load_state_dict(copy.deepcopy(plain.state_dict()))
    assert again.param_groups[0]["lr"] == plain.param_groups[0]["lr"]
    train(model, alone, (again, plain), range(6, 8))


@pytest.mark.parametrize("as_views", [False, True])
def test_zero_steps_like_the_optimizer_itself(two_ranks: RankPool, as_views: bool) -> None:
    two_ranks.run(check_zero, as_views)


def check_zero_details() -> None:
    net = build()
    alone = copy.deepcopy(net)
    model = DistributedDataParallel(net)
    zero = ZeroRedundancyOptimizer(net[0].parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    plain = torch.optim.SGD(alone[0].parameters(), lr=0.1, momentum=0.9)
    train(model, alone, (zero, plain), range(2))
    zero.add_param_group({"params": net[4].parameters(), "lr": 0.01})
    plain.add_param_group({"params": alone[4].parameters(), "lr": 0.01})
    train(model, alone, (zero, plain), range(2, 4))
    # More processes than parameters.
    single = nn.Parameter(torch.ones(2))
    few = ZeroRedundancyOptimizer([single], torch.optim.SGD, lr=0.5)
    single.grad = torch.ones(2)
    few.step()
    assert single.tolist() == [0.5, 0.5]
    with pytest.raises(NotImplementedError, match="overlap_with_ddp"):
        ZeroRedundancyOptimizer([single], torch.optim.SGD, overlap_with_ddp=True)
    with pytest.raises(ValueError, match="empty parameter list"):
        ZeroRedundancyOptimizer([], torch.optim.SGD)


class Halving(torch.optim.Optimizer):
    """Its step takes no closure."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {})

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        with torch.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    param.mul_(0.5)


def check_zero_without_closure() -> None:
    net = build()
    before = [param.clone() for param in net.parameters()]
    ZeroRedundancyOptimizer(net.parameters(), Halving).step()
    torch.testing.assert_close(list(net.parameters()), [param / 2 for param in before])


def test_zero_with_a_step_that_takes_no_closure(two_ranks: RankPool) -> None:
    two_ranks.run(check_zero_without_closure)


def test_zero_with_new_groups_and_few_parameters(three_ranks: RankPool) -> None:
    three_ranks.run(check_zero_details)


def check_zero_join() -> None:
    net = build()
    alone = copy.deepcopy(net)
    model = DistributedDataParallel(net)
    zero = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=0.1)
    plain = torch.optim.Adam(alone.parameters(), lr=0.1)
    rank, size = dist.get_rank(), dist.get_world_size()
    with Join([model, zero]):
        for step in range(2 + rank):
            zero.zero_grad()
            model(parts_of_batch(step)[rank]).square().mean().backward()
            zero.step()
    for step in range(2 + size - 1):
        plain.zero_grad()
        active = [part for r, part in enumerate(parts_of_batch(step)) if step < 2 + r]
        (torch.stack([alone(part).square().mean() for part in active]).sum() / size).backward()
        plain.step()
    torch.testing.assert_close(list(net.parameters()), list(alone.parameters()))


def test_zero_joins_with_data_parallel(three_ranks: RankPool) -> None:
    three_ranks.run(check_zero_join)


class Counter(Joinable):
    """Counts the batches of all processes."""

    class StandIn(JoinHook):
        def __init__(self, counter: "Counter", log: list[Any]) -> None:
            self.counter, self.log = counter, log

        def main_hook(self) -> None:
            dist.all_reduce(torch.zeros(1))

        def post_hook(self, is_last_joiner: bool) -> None:
            self.log.append(is_last_joiner)

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Any] = []
        self.total = 0.0

    def __call__(self) -> None:
        Join.notify_join_context(self)
        one = torch.ones(1)
        dist.all_reduce(one)
        self.total += one.item()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        self.log.append(kwargs)
        return Counter.StandIn(self, self.log)

    @property
    def join_device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def join_process_group(self) -> Any:
        return dist.group.WORLD


def check_join() -> None:
    rank, counter = dist.get_rank(), Counter()
    with Join([counter], sample="x"):
        for _ in range(3 * (rank + 1)):
            counter()
    assert counter.log == [{"sample": "x"}, rank == 1]
    assert counter.total == (6, 9)[rank]
    with pytest.raises(ValueError, match="at least one joinable"):
        Join([])
    with pytest.raises(TypeError, match="expected a Joinable, but got int"):
        Join([3])


def test_join_of_anything(two_ranks: RankPool) -> None:
    two_ranks.run(check_join)


def check_sampler() -> list[int]:
    sampler = DistributedSampler(range(10), shuffle=False)
    assert (sampler.num_replicas, sampler.rank) == (dist.get_world_size(), dist.get_rank())
    return list(sampler)


def test_the_sampler_takes_its_defaults_from_the_group(three_ranks: RankPool) -> None:
    assert three_ranks.run(check_sampler) == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]


def test_optimizers_step_in_backward() -> None:
    shared = nn.Parameter(torch.ones(3))
    weights, others = [shared, nn.Parameter(torch.ones(3))], [nn.Parameter(torch.ones(3))]
    _apply_optimizer_in_backward(torch.optim.SGD, weights, {"lr": 0.5})
    _apply_optimizer_in_backward(torch.optim.SGD, [shared], {"lr": 0.25})  # one more
    _apply_optimizer_in_backward(torch.optim.SGD, others, {"lr": 0.5}, register_hook=False)
    for _ in range(2):
        sum((p * 2).sum() for p in (*weights, shared, *others)).backward()
    assert [p.tolist() for p in weights] == [[-5.0] * 3, [-1.0] * 3]
    assert others[0].tolist() == [1.0] * 3 and others[0].grad is not None
    assert [p.grad for p in weights] == [None, None]
    assert shared._optimizer_kwargs == [{"lr": 0.5}, {"lr": 0.25}]
    net = nn.ParameterList([*weights, *others])
    found = _get_in_backward_optimizers(net)
    assert len(found) == 4 and found[:2] == shared._in_backward_optimizers
    found[3].step()
    assert others[0].tolist() == [-1.0] * 3


def check_steps_after_the_average() -> None:
    net = build()
    alone = copy.deepcopy(net)
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.1)
    _apply_optimizer_in_backward(torch.optim.SGD, net.parameters(), {"lr": 0.1})
    train(DistributedDataParallel(net), alone, [optimizer], range(3))
    assert all(param.grad is None for param in net.parameters())


def test_optimizers_in_backward_wait_for_the_average(two_ranks: RankPool) -> None:
    two_ranks.run(check_steps_after_the_average)
