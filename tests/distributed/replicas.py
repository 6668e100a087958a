"""What tests of data parallelism share: a network, its batches, and one process as the oracle."""

import copy
from typing import Any

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.nn.parallel import DistributedDataParallel

TINY = 1e-4  # megabytes: a bucket for every one or two parameters


def build() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))


def parts_of_batch(step: int, shape: tuple[int, ...] = (6, 4)) -> list[torch.Tensor]:
    """What each rank gets in a step."""
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator) for _ in range(dist.get_world_size())]


def gradients(module: nn.Module) -> list[Any]:
    return [None if p.grad is None else p.grad.clone() for p in module.parameters()]


def mean_loss(module: nn.Module, parts: list[torch.Tensor]) -> torch.Tensor:
    """The loss of the joined batch, whose gradient is the mean over the ranks."""
    losses = [module(part).square().sum(1).mean() for part in parts]
    return torch.stack(losses).mean()


def check_against_one_process(
    net: nn.Module, steps: int = 20, shape: tuple[int, ...] = (6, 4), **options: Any
) -> None:
    alone = copy.deepcopy(net)
    model = DistributedDataParallel(net, **options)
    optimizers = [torch.optim.SGD(m.parameters(), 0.05, momentum=0.9) for m in (model, alone)]
    for step in range(steps):
        parts = parts_of_batch(step, shape)
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=step % 3 != 0)
        model(parts[dist.get_rank()]).square().sum(1).mean().backward()
        mean_loss(alone, parts).backward()
        torch.testing.assert_close(gradients(model), gradients(alone))
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(list(model.parameters()), list(alone.parameters()))
    everywhere: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, [p.detach().numpy().tobytes() for p in model.parameters()])
    assert all(others == everywhere[0] for others in everywhere)  # bit by bit
