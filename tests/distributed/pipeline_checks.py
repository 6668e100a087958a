"""What the ranks of pipelines check: that stages together are the whole network of one process."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from distributed.checks import raised

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.fsdp import fully_shard
from rushlight.distributed.pipelining import PipelineStage, SplitPoint, pipe_split, pipeline
from rushlight.distributed.pipelining._orders import _Action, _ComputationType
from rushlight.distributed.pipelining.microbatch import TensorChunkSpec
from rushlight.distributed.pipelining.schedules import (
    PipelineScheduleSingle,
    ScheduleGPipe,
    get_schedule_class,
)
from rushlight.nn.parallel import DistributedDataParallel

SCHEDULES = [
    ("GPipe", 1),
    ("1F1B", 1),
    ("LoopedBFS", 2),
    ("Interleaved1F1B", 2),
    ("Interleaved1F1B", 3),
    ("InterleavedZeroBubble", 1),
    ("InterleavedZeroBubble", 2),
    ("ZBVZeroBubble", 2),
]
mse = nn.functional.mse_loss


def layers(count: int) -> list[nn.Module]:
    torch.manual_seed(3)
    return [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)) for _ in range(count)]


def whole(parts: Sequence[nn.Module]) -> nn.Module:
    return nn.Sequential(*copy.deepcopy(list(parts)))


def mine_of(name: str, per_rank: int, group: Any = None) -> list[int]:
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if name == "ZBVZeroBubble":
        return [rank, 2 * size - 1 - rank]
    return list(range(rank, per_rank * size, size))


def schedule_of(
    name: str, parts: Sequence[Any], mine: Sequence[int], count: int, group: Any = None, **kw: Any
) -> Any:
    stages = [PipelineStage(parts[i], i, len(parts), "cpu", group=group) for i in mine]
    kind: Any = get_schedule_class(name)
    return kind(stages[0] if issubclass(kind, PipelineScheduleSingle) else stages, count, **kw)


def batch(rows: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(5)
    return torch.randn(rows, 4), torch.randn(rows, 4)


def same_gradients(part: nn.Module, reference: nn.Module) -> None:
    pairs = zip(part.named_parameters(), reference.named_parameters(), strict=True)
    for (name, p), (_, q) in pairs:
        assert p.grad is not None and q.grad is not None, name
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-5, atol=1e-6, msg=name)


def every_schedule(rank: int) -> None:
    """Losses, results and gradients, which add up over steps; the batch need not stay as large."""
    size = dist.get_world_size()
    for name, per_rank in SCHEDULES:
        for count in (size, 3 * size):
            parts = layers(per_rank * size)
            reference = whole(parts)
            mine = mine_of(name, per_rank)
            schedule = schedule_of(name, parts, mine, count, loss_fn=mse)
            for rows in (count, 2 * count):
                x, y = batch(rows)
                expected = reference(x)
                loss = mse(expected, y)
                loss.backward()
                losses: list[torch.Tensor] = []
                is_last = len(parts) - 1 in mine
                out = schedule.step(
                    *([x] if 0 in mine else []), target=y if is_last else None, losses=losses
                )
                if is_last:
                    torch.testing.assert_close(out, expected.detach())
                    torch.testing.assert_close(torch.stack(losses).mean(), loss.detach())
                    assert len(losses) == count and not out.requires_grad
                else:
                    assert out is None and losses == []
                for i in mine:
                    same_gradients(parts[i], reference[i])
            whole_batch_or_its_parts(schedule, count, 0 in mine, is_last)
            mse(reference(x), y).backward()
            with torch.no_grad():
                got = schedule.eval(*([x] if 0 in mine else []), losses=losses)
                if is_last:
                    torch.testing.assert_close(got, reference(x))
                    assert losses == []
                schedule.eval(
                    *([x] if 0 in mine else []), target=y if is_last else None, losses=losses
                )
                assert len(losses) == (count if is_last else 0)
            for i in mine:
                same_gradients(parts[i], reference[i])  # eval leaves them alone


class First(nn.Module):
    """Returns tensors that want gradients, and some that do not."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.other = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, shift: Any = 0.0) -> Any:
        hidden = self.up(x)
        return hidden, (x > 0).sum(0), self.other(x), x.new_ones(x.size(0)) + shift


class Second(nn.Module):
    """Uses some of them."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Linear(4, 4)

    def forward(
        self,
        hidden: torch.Tensor,
        counts: torch.Tensor,
        unused: torch.Tensor,
        ones: torch.Tensor,
        scale: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        out = self.down(hidden.relu()) * ones[:, None]
        return {"y": out if scale is None else out * scale, "counts": counts + 0}


def whole_batch_or_its_parts(schedule: Any, count: int, is_first: bool, is_last: bool) -> None:
    """Microbatches that the program cut go the same way."""
    x, y = batch(2 * count)
    losses: list[torch.Tensor] = []
    out = schedule.step(
        arg_mbs=[(part,) for part in x.chunk(count)] if is_first else None,
        kwarg_mbs=[{}] * count,
        target_mbs=list(y.chunk(count)) if is_last else None,
        losses=losses,
    )
    with torch.no_grad():
        expected = schedule.eval(*([x] if is_first else []))
    if is_last:
        torch.testing.assert_close(out, expected)
        torch.testing.assert_close(torch.stack(losses).mean(), mse(expected, y))


def several_values(rank: int) -> None:
    """Stages that return several tensors, keyword arguments, and how all that is cut and joined."""
    torch.manual_seed(1)
    parts = [First(), Second()]
    reference = copy.deepcopy(parts)
    x, y = batch(6)
    scale = torch.randn(4, 6)

    def loss_fn(output: Any, target: torch.Tensor, weight: float = 1.0) -> torch.Tensor:
        return (output["y"] - target).square().sum() * weight

    full = reference[1](*reference[0](x, shift=2.0), scale=scale.t())
    loss_fn(full, y, 0.5).backward()
    for name in ("GPipe", "InterleavedZeroBubble"):
        for part in parts:
            part.zero_grad()
        specs: Any = {"output_merge_spec": {"y": TensorChunkSpec(0), "counts": TensorChunkSpec(0)}}
        if rank == 1:
            specs["kwargs_chunk_spec"] = {"scale": TensorChunkSpec(0)}
        schedule = schedule_of(name, parts, [rank], 3, loss_fn=loss_fn, scale_grads=False, **specs)
        if rank == 0:
            schedule.step(x, shift=2.0, loss_kwargs={"weight": 0.5})
        else:
            out = schedule.step(scale=scale.t(), target=y, loss_kwargs={"weight": 0.5})
            torch.testing.assert_close(out["y"], full["y"].detach())
            assert out["counts"].view(3, 4).sum(0).tolist() == full["counts"].tolist()
            assert schedule.step(scale=scale.t(), target=y, return_outputs=False) is None
        if rank == 0:
            schedule.step(x, shift=2.0)
            # Nothing uses the second result: its gradients are zeros, not None.
            assert parts[0].other.weight.grad.count_nonzero() == 0
            parts[0].up.weight.grad /= 3  # of 0.5 and 1
            torch.testing.assert_close(parts[0].up.weight.grad, reference[0].up.weight.grad)


def frozen_and_custom(rank: int) -> None:
    """A first stage without gradients; a loss without a way to it; an order of one's own."""

    class Alternating(PipelineScheduleSingle):
        def _get_pipeline_order(self) -> dict[int, list[_Action]]:
            kinds = _ComputationType.FORWARD, _ComputationType.FULL_BACKWARD
            numbers = range(self._n_microbatches)
            return {
                rank: [_Action(rank, kind, i) for i in numbers for kind in kinds]
                for rank in range(self._num_stages)
            }

    parts = layers(2)
    parts[0].requires_grad_(False)
    reference = whole(parts)
    x, y = batch()
    mse(reference(x), y).backward()
    for kind in (Alternating, ScheduleGPipe):
        parts[1].zero_grad()
        schedule = kind(PipelineStage(parts[rank], rank, 2, "cpu"), 4, loss_fn=mse)
        schedule.step(*([x] if rank == 0 else []), target=y if rank else None)
        if rank:
            same_gradients(parts[1], reference[1])
        else:
            assert all(p.grad is None for p in parts[0].parameters())
    reference[0].requires_grad_(True)
    parts[0].requires_grad_(True)
    mse(reference(x), y).backward()
    schedule.step(*([x] if rank == 0 else []), target=y if rank else None)
    same_gradients(parts[rank], reference[rank])


def late_gradients(rank: int) -> None:
    """dw_builder: a module whose gradients of parameters come when they are asked for."""
    parts = layers(2)
    x, y = batch()
    log: list[str] = []

    def builder() -> Callable[..., None]:
        log.append("built")
        return lambda: log.append("run")

    stage = PipelineStage(parts[rank], rank, 2, "cpu", dw_builder=builder)
    kind: Any = get_schedule_class("InterleavedZeroBubble")
    kind([stage], 2, loss_fn=mse).step(*([x] if rank == 0 else []), target=y if rank else None)
    assert log.count("built") == log.count("run") == 2
    whole_backward = ScheduleGPipe(stage, 2, loss_fn=mse)
    whole_backward.step(*([x] if rank == 0 else []), target=y if rank else None)
    assert log[-4:] == ["built", "run"] * 2


class Tied(nn.Module):
    """Has a way around a stage, a parameter in two stages, and arguments that others need, too."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 6)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True) for _ in range(2)
        )
        self.norm = nn.BatchNorm1d(5)
        self.head = nn.Linear(6, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        first = x = self.embed(ids)
        for layer in self.layers:
            pipe_split()
            x = layer(x)
        assert scale is not None
        left, right = torch.split(x, 3, -1)
        pipe_split()
        return self.head(self.norm(torch.cat([right, left], -1)) + first * scale)


def cut_by_itself(rank: int) -> None:
    torch.manual_seed(2)
    net = Tied()
    reference = copy.deepcopy(net)
    ids = torch.randint(0, 7, (8, 5))
    scale = torch.randn(8, 1, 1)
    pipe = pipeline(net, (ids[:2],), {"scale": scale[:2]})
    assert pipe.num_stages == 4
    assert pipe.replicated_params == [{"submod_0": "embed.weight", "submod_3": "embed.weight"}]

    def loss_fn(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())

    mine = [rank, rank + 2]
    stages = [pipe.build_stage(i, "cpu") for i in mine]
    kind: Any = get_schedule_class("Interleaved1F1B")
    losses: list[torch.Tensor] = []
    out = kind(stages, 4, loss_fn=loss_fn).step(
        *([ids] if rank == 0 else []),
        **({"scale": scale} if rank == 0 else {}),
        target=ids if rank else None,
        losses=losses,
    )
    expected, total = [], 0.0
    for part, factor in zip(ids.split(2), scale.split(2), strict=True):
        expected.append(reference(part, factor))
        loss = loss_fn(expected[-1], part) / 4
        loss.backward()
        total += loss.item()
    if rank:
        torch.testing.assert_close(out, torch.cat(expected).detach())
        torch.testing.assert_close(torch.stack(losses).mean().item(), total)
        assert torch.equal(stages[1].submod.norm.running_mean, reference.norm.running_mean)
    # What the optimizer would do: the copies of the shared parameter add up their gradients.
    shared = stages[0 if rank == 0 else 1].submod.embed.weight.grad
    dist.all_reduce(shared)
    found = {name: p.grad for stage in stages for name, p in stage.submod.named_parameters()}
    for name, parameter in reference.named_parameters():
        if name in found:
            torch.testing.assert_close(found[name], parameter.grad, rtol=1e-4, atol=1e-6, msg=name)
    assert {"layers.1.linear1.weight", "norm.bias"} & found.keys()


def cut_at_submodules(rank: int) -> None:
    net = nn.Sequential(*layers(3))
    reference = copy.deepcopy(net)
    spec = {"0": SplitPoint.END, "2.2": SplitPoint.BEGINNING}
    x, _ = batch(4)
    pipe = pipeline(net, (x[:2],), split_spec=spec)
    assert pipe.num_stages == 3 and not net[0]._forward_hooks
    stage_names = [list(pipe.get_stage_module(i).state_dict()) for i in range(3)]
    assert stage_names[0] == ["0.0.weight", "0.0.bias", "0.2.weight", "0.2.bias"]
    assert stage_names[2] == ["2.2.weight", "2.2.bias"]
    torch.testing.assert_close(pipe(x[:2]), (reference(x[:2]),))
    message = raised(AssertionError, pipe, x)
    assert "The recording is for 2" in message


def refusals(rank: int) -> None:
    part = layers(1)[0]
    assert "out of range of 2" in raised(ValueError, PipelineStage, part, 2, 2, "cpu")
    assert "Pipeline group size 2" in raised(RuntimeError, PipelineStage, part, 0, 1, "cpu")
    stage = PipelineStage(part, rank, 2, "cpu")
    few = raised(ValueError, get_schedule_class("1F1B"), stage, 1)
    assert "must be greater than or equal to the number of stages" in few
    wrong = raised(ValueError, ScheduleGPipe, PipelineStage(part, 1 - rank, 2, "cpu"), 2)
    assert f"rank {rank} of 2 gives the stages [{1 - rank}] of 2, but it has [{rank}]" in wrong
    several: Any = get_schedule_class("ZBVZeroBubble")
    assert "exactly 2 stages" in raised(ValueError, several, [stage], 2)
    uneven: Any = get_schedule_class("Interleaved1F1B")
    assert "multiple of the number of rounds (2)" in raised(ValueError, uneven, [stage], 5)
    schedule = ScheduleGPipe(stage, 4, loss_fn=mse)
    with torch.no_grad():
        assert "Please call eval() instead" in raised(RuntimeError, schedule.step)
    assert "losses must be a list" in raised(TypeError, schedule.eval, losses=())
    assert "Expecting 4 arg_mbs but got 3" in raised(ValueError, schedule.eval, torch.ones(3, 4))
    both = raised(ValueError, schedule.step, torch.ones(4, 4), arg_mbs=[()] * 4)
    assert "there are microbatches, and args" in both
    for kind, wrong_mbs, message in (
        (TypeError, {"target_mbs": ()}, "target_mbs must be a list"),
        (TypeError, {"arg_mbs": [1] * 4}, r"arg_mbs must be a list of tuples, but arg_mbs[0]"),
        (TypeError, {"kwarg_mbs": [()] * 4}, "kwarg_mbs must be a list of dicts"),
        (ValueError, {"target_mbs": [0]}, "Expecting 4 target_mbs but got 1"),
    ):
        assert message in raised(kind, schedule.step, **wrong_mbs)
    if rank:
        assert "no target" in raised(ValueError, schedule.step)
    alone = dist.new_subgroups(1)[0]
    whole_net = ScheduleGPipe(
        PipelineStage(part, 0, 1, "cpu", group=alone), 2, loss_fn=lambda output, target: output
    )
    x, y = batch()
    shaped = raised(ValueError, whole_net.step, x, target=y)
    assert "loss_fn returned a tensor of shape (6, 4)" in shaped
    assert "n_microbatches is 0" in raised(ValueError, ScheduleGPipe, stage, 0)


def replicas(rank: int) -> None:
    """Four ranks: two pipelines of two stages, whose parameters are copies of or parts of one."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    pipe_group, copies = mesh["pp"].get_group(), mesh["dp"]
    x, y = batch(16)
    at = dist.get_rank(pipe_group)
    half = dist.get_rank(copies.get_group())
    rows = slice(8 * half, 8 * half + 8)
    for wrapper in ("ddp", "fully_shard", "layers"):
        for name, per_rank in SCHEDULES:
            parts = layers(2 * per_rank)
            reference = whole(parts)
            mine = mine_of(name, per_rank, pipe_group)
            for i in mine:
                if wrapper == "ddp":
                    parts[i] = DistributedDataParallel(
                        parts[i], process_group=copies.get_group(), bucket_cap_mb=1e-4
                    )
                    continue
                for layer in (parts[i][0], parts[i][2]):
                    fully_shard(layer, mesh=copies)
                if wrapper == "fully_shard":
                    fully_shard(parts[i], mesh=copies)
            schedule = schedule_of(name, parts, mine, 4, pipe_group, loss_fn=mse)
            for _ in range(3):
                mse(reference(x), y).backward()
                schedule.step(
                    *([x[rows]] if 0 in mine else []),
                    target=y[rows] if len(parts) - 1 in mine else None,
                )
                for i in mine:
                    pairs = zip(parts[i].parameters(), reference[i].parameters(), strict=True)
                    for p, q in pairs:
                        grad = p.grad.full_tensor() if wrapper != "ddp" else p.grad
                        torch.testing.assert_close(grad, q.grad, msg=f"{wrapper} {name} {at}")
                reference.zero_grad()
                for i in mine:
                    parts[i].zero_grad()


OF_TWO = [
    every_schedule,
    several_values,
    frozen_and_custom,
    late_gradients,
    cut_by_itself,
    cut_at_submodules,
    refusals,
]
