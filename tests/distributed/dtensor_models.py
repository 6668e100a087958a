"""What each rank of a world checks of modules whose parameters are DTensors."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable
from typing import Any

from distributed.checks import raised
from distributed.dtensor_checks import near

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.distributed.tensor import (
    DTensor,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from rushlight.distributed.tensor import parallel as tp


def gradient_of(tensor: torch.Tensor) -> torch.Tensor:
    assert tensor.grad is not None
    return tensor.grad


class MLP(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.up = nn.Linear(6, width)
        self.down = nn.Linear(width, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


def training(mesh: Any) -> None:
    """A parallel model takes the same steps as the plain one, with every kind of layout."""
    one = mesh if mesh.ndim == 1 else mesh["tp"]
    sequence = {
        "up": tp.ColwiseParallel(input_layouts=Shard(0)),
        "down": tp.RowwiseParallel(output_layouts=Shard(0)),
    }
    plans: list[tuple[Any, int]] = [
        ({"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()}, 8),
        ({"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()}, 7),
        ({"*": tp.ColwiseParallel(output_layouts=Replicate())}, 8),
        (sequence, 8),
    ]
    makers: list[Callable[[Any], Any]] = [
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
        lambda p: torch.optim.AdamW(p, 0.05),
    ]
    for (plan, width), make in itertools.product(plans, makers):
        if width == 7 and "down" not in plan:
            continue
        torch.manual_seed(1)
        plain = MLP(width).double()
        spread = copy.deepcopy(plain)
        uneven = width % one.size()
        if uneven:
            plan = {
                "up": tp.ColwiseParallel(use_local_output=False),
                "down": tp.RowwiseParallel(),
            }
        spread = tp.parallelize_module(spread, one, plan)
        assert isinstance(spread.up.weight, DTensor) and isinstance(spread.up.weight, nn.Parameter)
        assert spread.up.weight.shape == (width, 6)
        optimizers = [make(model.parameters()) for model in (plain, spread)]
        for _ in range(3):
            x = torch.randn(4, 6, dtype=torch.float64)
            target = torch.randn(4, 5, dtype=torch.float64)
            loss = F.mse_loss(plain(x), target)
            if plan is sequence:
                rows = DTensor.from_local(x, one).redistribute(placements=[Shard(0)]).to_local()
                out = DTensor.from_local(spread(rows), one, [Shard(0)])
                wanted = distribute_tensor(target, one, [Shard(0)])
                other = F.mse_loss(out, wanted)
            else:
                other = F.mse_loss(spread(x), target)
            near(other, loss.detach())
            for optimizer, result in zip(optimizers, (loss, other), strict=True):
                optimizer.zero_grad()
                result.backward()
            norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.1) for m in (plain, spread)]
            near(norms[1], norms[0])
            for optimizer in optimizers:
                optimizer.step()
            for (name, a), b in zip(plain.named_parameters(), spread.parameters(), strict=True):
                assert isinstance(b, DTensor) and isinstance(b.grad, DTensor), name
                near(b.grad, gradient_of(a))
                near(b, a.detach())
        state = spread.state_dict()
        assert all(isinstance(v, DTensor) for v in state.values())
        again = tp.parallelize_module(MLP(width).double(), one, plan)
        again.load_state_dict(state)
        near(again.down.weight, plain.down.weight.detach())
        copied = copy.deepcopy(spread)
        assert isinstance(copied.up.weight, DTensor) and copied.up.weight is not spread.up.weight
        near(copied.up.weight, plain.up.weight.detach())


class Block(nn.Module):
    """A layer of a transformer, heads apart."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.norm = nn.LayerNorm(8)
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8, bias=False) for _ in range(4))
        self.head = nn.Linear(8, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        h = self.norm(x)
        q, k, v = (w(h).unflatten(-1, (-1, 2)).transpose(1, 2) for w in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + self.o(mixed.transpose(1, 2).flatten(2)))


def transformer(mesh: Any) -> None:
    one = mesh if mesh.ndim == 1 else mesh["tp"]
    torch.manual_seed(2)
    plain = Block().double()
    ids = torch.randint(0, 10, (2, 4))
    for local in (True, False):
        spread = tp.parallelize_module(
            copy.deepcopy(plain),
            one,
            {
                "embed": tp.RowwiseParallel(
                    input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False
                ),
                "norm": tp.SequenceParallel(),
                "[qkv]": tp.ColwiseParallel(use_local_output=local),
                "o": tp.RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
                "head": tp.ColwiseParallel(use_local_output=False),
            },
        )
        outs = [plain(ids), spread(ids)]
        near(outs[1], outs[0].detach())
        plain.zero_grad()
        F.cross_entropy(outs[0].flatten(0, 1), ids.flatten()).backward()
        with tp.loss_parallel():
            F.cross_entropy(outs[1].flatten(0, 1), ids.flatten()).backward()
        for (name, a), b in zip(plain.named_parameters(), spread.parameters(), strict=True):
            assert isinstance(b, DTensor), name
            near(b.grad, gradient_of(a))


def modules(mesh: Any) -> None:
    def partition(name: str, module: nn.Module, mesh: Any) -> None:
        if isinstance(module, nn.Linear):
            for key, param in list(module.named_parameters(recurse=False)):
                spread = distribute_tensor(param, mesh, [Shard(0)] * mesh.ndim)
                module.register_parameter(key, nn.Parameter(spread))

    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(5, 2)).double()
    spread: Any = distribute_module(
        copy.deepcopy(plain),
        mesh,
        partition,
        lambda module, inputs, mesh: distribute_tensor(inputs[0], mesh, [Shard(0)] * mesh.ndim),
        lambda module, outputs, mesh: outputs.full_tensor(),
    )
    x = torch.randn(6, 3, dtype=torch.float64)
    near(spread(x), plain(x).detach())
    assert all(isinstance(t, DTensor) for t in spread.state_dict().values())
    near(spread[1].running_mean, plain[1].get_buffer("running_mean"))
    raised(RuntimeError, distribute_module, spread, mesh)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        older = distribute_module(
            nn.Linear(3, 5).double(),
            mesh,
            None,
            lambda inputs, mesh: distribute_tensor(*inputs, mesh),
        )
    assert [warning.category for warning in told] == [FutureWarning]
    assert isinstance(older(x), DTensor)
    nn.init.normal_(spread[0].weight)
    torch.manual_seed(0)
    nn.init.kaiming_uniform_(spread[0].weight)
    torch.manual_seed(0)
    nn.init.kaiming_uniform_(plain[0].weight)
    near(spread[0].weight, plain[0].weight.detach())


def prepared(mesh: Any) -> None:
    class Pair(nn.Module):
        def forward(self, x: Any, y: Any, *, z: Any = None) -> Any:
            assert isinstance(x, DTensor) and x.placements == (Replicate(),)
            assert isinstance(y, int) and isinstance(z, DTensor)
            return x * y + z

    one = mesh if mesh.ndim == 1 else mesh["tp"]
    style = tp.PrepareModuleInputOutput(
        input_layouts=(Shard(0), None),
        desired_input_layouts=(Replicate(), None),
        input_kwarg_layouts={"z": Replicate()},
        desired_input_kwarg_layouts={"z": Replicate()},
        output_layouts=Replicate(),
        desired_output_layouts=Shard(0),
    )
    module = tp.parallelize_module(Pair(), one, style)
    out = module(torch.ones(2, 3), 2, z=torch.ones(3))
    assert type(out) is torch.Tensor and out.tolist() == [[3.0] * 3] * 2
    raised(ValueError, module, torch.ones(2, 3))
    assert "output_layouts=(Replicate(),)" in repr(style)
    raised(AssertionError, tp.PrepareModuleInput, input_layouts=Shard(0))
    raised(NotImplementedError, tp.parallelize_module, nn.ReLU(), one, tp.ColwiseParallel())
    raised(TypeError, tp.parallelize_module, nn.ReLU(), one, "colwise")


EVERYTHING = [training, transformer, modules, prepared]
