"""Small models for the tests of sharded modules, and how they are compared."""

from __future__ import annotations

from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.fsdp import FullyShardedDataParallel, fully_shard
from rushlight.distributed.fsdp.wrap import ModuleWrapPolicy
from rushlight.distributed.tensor import DTensor
from rushlight.distributed.wrapper import clean
from rushlight.utils.checkpoint import checkpoint

WIDTH = 6


class Block(nn.Module):
    """Two layers, with a checkpoint inside if asked for."""

    def __init__(self, inside: str = "") -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 5), nn.Linear(5, WIDTH, bias=False)
        self.inside = inside

    def forward(self, x: Any) -> Any:
        if self.inside:
            reentrant = self.inside == "reentrant"
            return x + checkpoint(self.compute, self.norm(x), use_reentrant=reentrant)
        return x + self.compute(self.norm(x))

    def compute(self, x: Any) -> Any:
        return self.down(F.gelu(self.up(x)))


class Net(nn.Module):
    """An embedding, two blocks of which the second is called twice, and a tied head."""

    def __init__(self, inside: str = "", around: str = "") -> None:
        super().__init__()
        self.embed = nn.Embedding(7, WIDTH)
        self.blocks = nn.ModuleList(Block(inside) for _ in range(2))
        self.register_buffer("scale", torch.tensor([0.5]))
        self.head = nn.Linear(WIDTH, 7)
        self.head.weight = self.embed.weight
        self.around = around

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids)
        for block in (*self.blocks, self.blocks[1]):
            if self.around:
                x = checkpoint(block, x, use_reentrant=self.around == "reentrant")
            else:
                x = block(x)
        return self.head(x) * self.scale


def made(**options: Any) -> Net:
    torch.manual_seed(3)
    return Net(**options)


def sharded(model: Any, mesh: Any = None, **options: Any) -> Any:
    for block in model.blocks:
        fully_shard(block, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def batches(steps: int, seed: int = 5) -> list[Any]:
    """For each step ids of all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(0, 7, (dist.get_world_size(), 2, 4), generator=generator)
        for _ in range(steps)
    ]


def loss_of(model: Any, ids: Any) -> Any:
    return F.cross_entropy(model(ids).flatten(0, 1).float(), ids.flatten())


def whole(value: Any) -> Any:
    return value.full_tensor() if isinstance(value, DTensor) else value


def same(model: Any, reference: Any, grads: bool = False, tolerance: float = 1e-5) -> None:
    theirs = dict(reference.named_parameters())
    names = [clean(name) for name, _ in model.named_parameters()]
    assert names == list(theirs)
    for name, param in zip(names, model.parameters(), strict=True):
        a, b = (param.grad, theirs[name].grad) if grads else (param, theirs[name])
        assert (a is None) == (b is None), name
        if a is not None:
            a = whole(a.detach())
            assert a.shape == b.shape and torch.allclose(a, b, atol=tolerance), (name, a, b)


def trains(model: Any, reference: Any = None, tolerance: float = 1e-5, **options: Any) -> None:
    """Three steps of the model are those of one model that sees what all ranks see."""
    reference = reference or made()
    kind = options.pop("optimizer", torch.optim.AdamW)
    mine = kind(model.parameters(), lr=0.01, **options)
    other = kind(reference.parameters(), lr=0.01, **options)
    for ids in batches(3):
        losses = [loss_of(reference, part) for part in ids]
        other.zero_grad()
        torch.stack(losses).mean().backward()
        mine.zero_grad()
        loss = loss_of(model, ids[dist.get_rank()])
        loss.backward()
        near = torch.allclose(loss, losses[dist.get_rank()], atol=tolerance)
        assert near, (loss, losses[dist.get_rank()])
        same(model, reference, grads=True, tolerance=tolerance)
        is_freed(model)
        total = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        expected = nn.utils.clip_grad_norm_(reference.parameters(), 0.5)
        assert torch.allclose(whole(total), expected, atol=tolerance)
        mine.step()
        other.step()
    same(model, reference, tolerance=max(tolerance, 1e-4))


def states(model: Any) -> list[Any]:
    found = [part.__dict__.get("_fsdp_state") for part in model.modules()]
    return [state for state in found if state is not None]


def is_freed(model: Any) -> None:
    for state in states(model):
        assert not state.calls and not state.in_backward and not state.context.depth
        for group in state.groups:
            assert group.whole is None and group.pending_gather is None
            assert not group.is_exposed and not group.waiting and not group.reductions


def wrapped(model: Any = None, **options: Any) -> Any:
    options.setdefault("auto_wrap_policy", ModuleWrapPolicy({Block}))
    return FullyShardedDataParallel(model or made(), **options)
