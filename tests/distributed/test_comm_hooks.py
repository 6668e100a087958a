"""Communication hooks: what they are given, and what becomes of the gradients that they return."""

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.rank_pool import RankPool
from distributed.replicas import TINY, build, gradients, parts_of_batch

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.algorithms.ddp_comm_hooks import (
    DDPCommHookType,
    debugging_hooks,
    default_hooks,
    quantization_hooks,
    register_ddp_comm_hook,
)
from rushlight.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local_sgd
from rushlight.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power_sgd
from rushlight.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from rushlight.distributed.algorithms.model_averaging.hierarchical_model_averager import (
    HierarchicalModelAverager,
)
from rushlight.distributed.algorithms.model_averaging.utils import (
    average_parameters,
    get_params_to_average,
)
from rushlight.distributed.optim import PostLocalSGDOptimizer
from rushlight.futures import Future
from rushlight.nn.parallel import DistributedDataParallel


def check_noop() -> None:
    net = build()
    alone = copy.deepcopy(net)
    model = DistributedDataParallel(net, bucket_cap_mb=TINY)
    model.register_comm_hook(None, debugging_hooks.noop_hook)
    part = parts_of_batch(0)[dist.get_rank()]
    model(part).square().mean().backward()
    alone(part).square().mean().backward()
    torch.testing.assert_close(gradients(net), gradients(alone))


def test_no_communication_leaves_each_process_its_gradients(two_ranks: RankPool) -> None:
    two_ranks.run(check_noop)


def check_hook(hook: Any, tolerance: float) -> None:
    net = build()
    alone = copy.deepcopy(net)
    model = DistributedDataParallel(net, bucket_cap_mb=TINY)
    model.register_comm_hook(None, hook)
    for step in range(3):
        for each in net, alone:
            each.zero_grad()
        parts = parts_of_batch(step)
        model(parts[dist.get_rank()]).square().mean().backward()
        torch.stack([alone(part).square().mean() for part in parts]).mean().backward()
        found, expected = gradients(net), gradients(alone)
        torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
        if tolerance > 1e-4:  # something was lost
            assert not all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("hook", "tolerance"),
    [
        (default_hooks.allreduce_hook, 1e-6),
        (default_hooks.fp16_compress_hook, 2e-3),
        (default_hooks.bf16_compress_hook, 2e-2),
        (default_hooks.fp16_compress_wrapper, 2e-3),
        (default_hooks.bf16_compress_wrapper, 2e-2),
        (quantization_hooks.quantization_pertensor_hook, 2e-2),
        (quantization_hooks.quantization_perchannel_hook, 2e-2),
    ],
)
def test_hooks_average(two_ranks: RankPool, hook: Any, tolerance: float) -> None:
    two_ranks.run(check_named_hook, hook.__name__, tolerance)


def check_named_hook(name: str, tolerance: float) -> None:
    hook = getattr(quantization_hooks if "quantization" in name else default_hooks, name)
    check_hook(hook(default_hooks.allreduce_hook) if "wrapper" in name else hook, tolerance)


def check_rounding() -> None:
    """By rows of three, of which the last is filled up; a row of zeros stays zero."""
    rows = [torch.tensor([3.0, -1.5, 0.0, 0.0, 0.0, 0.0, 510.0]), torch.full((7,), 2.0)]
    rows[1][3:6] = 0
    bucket: Any = SimpleNamespace(buffer=lambda: rows[dist.get_rank()])
    future = quantization_hooks.quantization_perchannel_hook(None, bucket, bucket_size=3)
    average = future.wait()
    torch.testing.assert_close(average, torch.stack(rows).mean(0), atol=0.02, rtol=1e-6)
    assert average[3:6].tolist() == [0, 0, 0]


def test_bytes_have_a_scale_for_each_row(two_ranks: RankPool) -> None:
    two_ranks.run(check_rounding)


def check_hooks_by_name() -> None:
    for kind in DDPCommHookType:
        model = DistributedDataParallel(build(), bucket_cap_mb=TINY)
        register_ddp_comm_hook(kind, model)
        model(torch.ones(2, 4)).sum().backward()
        assert all(param.grad is not None for param in model.parameters()), kind


def test_hooks_are_registered_by_name(two_ranks: RankPool) -> None:
    two_ranks.run(check_hooks_by_name)


def check_buckets() -> None:
    seen: list[Any] = []

    def hook(state: list[Any], bucket: dist.GradBucket) -> Future:
        shapes = [tuple(grad.shape) for grad in bucket.gradients()]
        assert shapes == [tuple(param.shape) for param in bucket.parameters()]
        for grad, param in zip(bucket.gradients(), bucket.parameters(), strict=True):
            assert param.grad is not None and torch.equal(grad, param.grad)
        state.append((bucket.index(), bucket.is_last(), shapes))
        future = Future()
        future.set_result(torch.full_like(bucket.buffer(), 7.0))
        return future

    for as_views in False, True:
        seen.clear()
        net = build()
        model = DistributedDataParallel(net, bucket_cap_mb=TINY, gradient_as_bucket_view=as_views)
        model.register_comm_hook(seen, hook)
        model(torch.ones(2, 4)).sum().backward()
        assert [is_last for _, is_last, _ in seen] == [False] * (len(seen) - 1) + [True]
        assert [index for index, _, _ in seen] == list(range(len(seen)))
        assert [shape for _, _, shapes in seen for shape in shapes] == [
            tuple(param.shape) for param in reversed(list(net.parameters()))
        ]
        assert all((param.grad == 7).all() for param in net.parameters() if param.grad is not None)

    def failing(_: object, bucket: dist.GradBucket) -> Future:
        future = Future()
        future.set_exception(ValueError("not sent"))
        return future

    model = DistributedDataParallel(build())
    model.register_comm_hook(None, failing)
    with pytest.raises(ValueError, match="not sent"):
        model(torch.ones(2, 4)).sum().backward()


def check_wrong_hooks() -> None:
    def of_another_bucket(state: object, bucket: int) -> None: ...

    def with_another_result(state: object, bucket: dist.GradBucket) -> int: ...

    model = DistributedDataParallel(build())
    for hook, what in (of_another_bucket, "bucket"), (with_another_result, "return"):
        with pytest.raises(ValueError, match=f"Communication hook: {what} annotation should be"):
            model.register_comm_hook(None, hook)
    model.register_comm_hook(None, lambda state, bucket: 1)
    with pytest.raises(RuntimeError, match=r"must return a torch.futures.Future object, but got"):
        model(torch.ones(2, 4)).sum().backward()


def test_a_hook_that_is_none_is_refused(two_ranks: RankPool) -> None:
    two_ranks.run(check_wrong_hooks)


def test_a_hook_sees_the_buckets_and_decides_on_gradients(two_ranks: RankPool) -> None:
    two_ranks.run(check_buckets)


def check_power_sgd(batched: bool) -> None:
    hook = power_sgd.batched_powerSGD_hook if batched else power_sgd.powerSGD_hook
    net = nn.Linear(12, 10)
    torch.manual_seed(0)
    # Gradients are averages over few samples, and so have low rank.
    model = DistributedDataParallel(net)
    state = power_sgd.PowerSGDState(
        None, matrix_approximation_rank=4, start_powerSGD_iter=2, min_compression_rate=1
    )
    model.register_comm_hook(state, hook)
    alone = copy.deepcopy(net)
    expected = [torch.zeros(0)]
    left, right = torch.randn(2, 2, 12), torch.randn(2, 10)
    sums = [torch.zeros(10, 12), torch.zeros(10, 12)]
    for _ in range(30):
        for each in net, alone:
            each.zero_grad()
        (model(left[dist.get_rank()]) * right).sum().backward()
        ((alone(left[0]) * right).sum() / 2 + (alone(left[1]) * right).sum() / 2).backward()
        found, expected = gradients(net), gradients(alone)
        if not batched:  # rank 2 fits, whatever the vectors are that it is looked for with
            torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        sums[0] += found[0]
        sums[1] += expected[0]
    # What was lost comes later: sums differ by less than one gradient.
    assert (sums[0] - sums[1]).norm() < 1.5 * expected[0].norm()
    again = pickle.loads(pickle.dumps(state))
    assert again.iter == state.iter == 30 and again.error_dict.keys() == state.error_dict.keys()


def test_power_sgd_finds_low_rank_gradients(two_ranks: RankPool) -> None:
    for batched in False, True:
        two_ranks.run(check_power_sgd, batched)
    with pytest.raises(ValueError, match="start_powerSGD_iter"):
        power_sgd.PowerSGDState(None, start_powerSGD_iter=1)


def check_post_local_sgd() -> None:
    """Two processes learn the same, then each on its own, and are averaged every second step."""
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 1))
    assert model._get_ddp_logging_data()["world_size"] == 2
    alone = dist.new_subgroups(1)[0]
    state = local_sgd.PostLocalSGDState(None, alone, start_localSGD_iter=2)
    model.register_comm_hook(state, local_sgd.post_localSGD_hook)
    averager = PeriodicModelAverager(period=2, warmup_steps=2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    are_equal = []
    for step in range(6):
        sgd.zero_grad()
        model(torch.full((2, 3), 1.0 + rank + step)).square().mean().backward()
        sgd.step()
        averager.average_parameters(model.parameters() if step % 2 else sgd.param_groups)
        others = [torch.zeros(1, 3), torch.zeros(1, 3)]
        dist.all_gather(others, model.module.weight.detach())
        are_equal.append(torch.allclose(others[0], others[1]))
    assert are_equal == [True, True, True, False, True, False] and state.iter == 2
    state.post_local_gradient_allreduce = False
    sgd.zero_grad()
    model(torch.full((2, 3), 1.0 + rank)).sum().backward()
    grad = model.module.weight.grad
    assert grad is not None and grad.tolist() == [[2.0 + 2 * rank] * 3]


def test_processes_learn_apart_and_are_averaged(two_ranks: RankPool) -> None:
    two_ranks.run(check_post_local_sgd)


def check_hierarchy() -> None:
    """Pairs are averaged every second step, all four every fourth one, after the first step."""
    rank = dist.get_rank()
    averager = HierarchicalModelAverager({2: 2, 4: 4}, warmup_steps=1)
    members = [dist.get_process_group_ranks(g) for g in averager.period_process_group_dict.values()]
    assert members == [[0, 1] if rank < 2 else [2, 3], [0, 1, 2, 3]]
    weight = nn.Parameter(torch.tensor([float(rank)]))
    weight.grad = torch.zeros(1)
    still = nn.Parameter(torch.tensor([float(rank)]))  # has no gradient
    expected = torch.arange(4.0)
    for step in range(7):
        with torch.no_grad():
            weight.add_(rank)
        params = [weight, still]
        averager.average_parameters(params if step % 2 else [{"params": params}])
        expected += torch.arange(4.0)
        if step == 4:
            expected = expected.mean().expand(4).clone()
        elif step in (2, 6):
            expected = expected.view(2, 2).mean(1).repeat_interleave(2)
        assert weight.item() == expected[rank] and still.item() == rank
    assert averager.step == 7
    with pytest.warns(UserWarning, match="period 1"):
        at_once = HierarchicalModelAverager({1: 4})
    at_once.average_parameters([weight])
    assert weight.item() == expected.mean()
    for sizes, warmup_steps, text in [
        ({}, 0, "must not be empty"),
        ({0: 2, 4: 4}, 0, "must be a positive value"),
        ({2: 2, 4: 3}, 0, "3 must be equal to the size of arg ``process_group`` 4"),
        ({2: 3, 4: 4}, 0, "must be divisible"),
        ({2: 2, 4: 4}, -1, "must be a non-negative number"),
    ]:
        with pytest.raises(ValueError, match=text):
            HierarchicalModelAverager(sizes, warmup_steps)


def test_larger_groups_are_averaged_more_rarely() -> None:
    pool = RankPool(4)
    try:
        pool.run(check_hierarchy)
    finally:
        pool.close()


def check_post_local_sgd_optimizer() -> None:
    """Its steps are those of an optimizer and an averager; its state counts the averager's."""
    rank = dist.get_rank()
    net = nn.Linear(3, 1)
    with torch.no_grad():
        net.weight.fill_(1.0)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
    optimizer = PostLocalSGDOptimizer(sgd, PeriodicModelAverager(period=2, warmup_steps=1))
    are_equal = []
    for _ in range(4):
        optimizer.zero_grad()
        net(torch.full((2, 3), 1.0 + rank)).square().mean().backward()
        optimizer.step()
        others = [torch.zeros(1, 3), torch.zeros(1, 3)]
        dist.all_gather(others, net.weight.detach())
        are_equal.append(torch.allclose(others[0], others[1]))
    assert are_equal == [False, True, False, True]
    saved = optimizer.state_dict()
    assert saved["step"] == 4 and optimizer.state is sgd.state
    averager = PeriodicModelAverager(period=2)
    again = PostLocalSGDOptimizer(torch.optim.SGD(net.parameters(), lr=1.0, momentum=0.5), averager)
    again.load_state_dict(saved)
    assert averager.step == 4 and again.param_groups[0]["lr"] == 0.1
    with pytest.warns(UserWarning, match="step counter"):
        again.load_state_dict(sgd.state_dict())
    assert averager.step == 0
    again.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    assert len(again.param_groups) == 2 and repr(again) == repr(again.optim)


def test_an_optimizer_averages_by_itself(two_ranks: RankPool) -> None:
    two_ranks.run(check_post_local_sgd_optimizer)


def test_only_parameters_are_averaged() -> None:
    outside = dist.GroupMember.NON_GROUP_MEMBER
    assert dist._rank_not_in_group(outside) and not dist._rank_not_in_group(None)
    param = nn.Parameter(torch.ones(2))
    average_parameters([param], outside)  # which does nothing
    with pytest.raises(NotImplementedError, match="is not supported"):
        get_params_to_average([3])  # pyright: ignore[reportArgumentType]


def test_an_averager_needs_a_period() -> None:
    for options in {"period": 0}, {"period": 2, "warmup_steps": -1}:
        with pytest.raises(ValueError, match="must be a"):
            PeriodicModelAverager(process_group=object(), **options)
    with pytest.warns(UserWarning, match="period 1"):
        PeriodicModelAverager(1, process_group=object())
