"""What each rank of a world checks of sharded modules: against one model on the whole batch."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from distributed.fsdp_models import (
    WIDTH,
    Block,
    Net,
    batches,
    is_freed,
    loss_of,
    made,
    same,
    sharded,
    trains,
    whole,
    wrapped,
)

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from rushlight.distributed.fsdp import (
    BackwardPrefetch,
    CPUOffload,
    CPUOffloadPolicy,
    FSDPModule,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    StateDictType,
    fully_shard,
    register_fsdp_forward_method,
)
from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817
from rushlight.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from rushlight.distributed.fsdp.wrap import ModuleWrapPolicy
from rushlight.distributed.tensor import DTensor, Shard
from rushlight.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def refused(kind: type[Exception], call: Callable[[], Any], text: str | None = None) -> None:
    with pytest.raises(kind, match=text):
        call()


# fully_shard


def parameters_are_parts() -> None:
    model = sharded(made())
    assert isinstance(model, FSDPModule) and isinstance(model, Net)
    assert type(model).__name__ == "FSDPNet"
    size, rank = dist.get_world_size(), dist.get_rank()
    assert model.head.weight is model.embed.weight
    weight: Any = model.embed.weight
    assert isinstance(weight, DTensor) and isinstance(weight, nn.Parameter)
    assert weight.placements == (Shard(0),) and weight.shape == (7, WIDTH)
    expected = made().embed.weight.detach().chunk(size)
    mine = expected[rank] if rank < len(expected) else expected[0][:0]
    assert torch.equal(weight.to_local().detach(), mine)
    assert isinstance(Net(), Net)
    refused(ValueError, lambda: fully_shard(model.blocks), "do not implement forward")
    refused(ValueError, lambda: fully_shard(model), "sharded already")
    refused(ValueError, lambda: fully_shard(nn.ParameterList([torch.ones(())])), "scalar")


def it_trains() -> None:
    trains(sharded(made()))
    trains(sharded(made()), optimizer=torch.optim.SGD, momentum=0.9)
    trains(sharded(made()), optimizer=torch.optim.AdamW, fused=True)
    trains(sharded(made()), optimizer=torch.optim.Adagrad)
    trains(sharded(made(), reshard_after_forward=False))
    trains(sharded(made(), reshard_after_forward=True))
    trains(fully_shard(made()))
    model = made()
    fully_shard([model.blocks[0], model.blocks[1]])
    trains(fully_shard(model))


def checkpoints_inside_and_around() -> None:
    for kind in ("new", "reentrant"):
        trains(sharded(made(inside=kind)))
        trains(sharded(made(around=kind)))


def wrappers_of_activations() -> None:
    is_block = {"check_fn": lambda part: isinstance(part, Block)}
    model = made()
    apply_activation_checkpointing(model, **is_block)
    assert list(model.state_dict()) == list(made().state_dict())
    assert [name for name, _ in model.named_parameters()][1].startswith("blocks.0._checkpoint")
    for block in model.blocks:
        fully_shard(block)
        assert next(name for name, _ in block.named_parameters()) == "norm.weight"
    trains(fully_shard(model))
    model = wrapped()
    offload = functools.partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.REENTRANT)
    apply_activation_checkpointing(model, offload, **is_block)
    trains(model)
    model = made()
    apply_activation_checkpointing(model, offload_wrapper, **is_block)
    trains(sharded(model))


def memory_is_given_back() -> None:
    """After forward nobody holds whole parameters of blocks; saved are only places."""
    model = sharded(made())
    kept: list[Any] = []
    for block in model.blocks:
        gathered = block._state.groups[0].gathered

        def watched(gathered: Any = gathered) -> Any:
            memory = gathered()
            kept.append(weakref.ref(memory.untyped_storage()._values()))
            return memory

        block._state.groups[0].gathered = watched
    ids = batches(1)[0][dist.get_rank()]
    before = torch.autograd.graph.saved_tensors_hooks
    loss = loss_of(model, ids)
    for block in model.blocks:
        assert block._state.groups[0].whole is None
        assert isinstance(block.up.weight, DTensor)
    assert model._state.groups[0].whole is not None  # the root keeps it for backward
    assert before is torch.autograd.graph.saved_tensors_hooks
    loss.backward()
    is_freed(model)
    with torch.no_grad():
        model(ids)
    is_freed(model)


def gradients_add_up_without_sync() -> None:
    model, reference = sharded(made()), made()
    first, second = batches(2)
    model.set_requires_gradient_sync(False)
    model.set_reshard_after_backward(False)
    loss_of(model, first[dist.get_rank()]).backward()
    assert all(param.grad is None for param in model.parameters())
    assert model.blocks[0]._state.groups[0].whole is not None
    model.set_requires_gradient_sync(True)
    model.set_reshard_after_backward(True)
    loss_of(model, second[dist.get_rank()]).backward()
    for ids in (first, second):
        torch.stack([loss_of(reference, part) for part in ids]).mean().backward()
    same(model, reference, grads=True)
    # Of gradients that are averaged each time too.
    loss_of(model, first[dist.get_rank()]).backward()
    torch.stack([loss_of(reference, part) for part in first]).mean().backward()
    same(model, reference, grads=True)
    is_freed(model)


def several_forwards_before_backward() -> None:
    model, reference = sharded(made()), made()
    first, second = batches(2)
    mine = [loss_of(model, ids[dist.get_rank()]) for ids in (first, second)]
    (mine[0] + mine[1]).backward()
    losses = [loss_of(reference, part) for ids in (first, second) for part in ids]
    (torch.stack(losses).sum() / dist.get_world_size()).backward()
    same(model, reference, grads=True)
    loss = loss_of(model, first[dist.get_rank()])
    loss.backward(retain_graph=True)
    loss.backward()
    for _ in range(2):
        torch.stack([loss_of(reference, part) for part in first]).mean().backward()
    same(model, reference, grads=True)


def dtypes_differ() -> None:
    seen = []
    model: Any = made()
    for block in model.blocks:
        fully_shard(block, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32)
    fully_shard(model, mp_policy=policy)
    model.blocks[0].up.register_forward_hook(
        lambda module, args, output: seen.extend([module.weight.dtype, output.dtype])
    )
    assert model(batches(1)[0][0]).dtype == torch.float32
    assert seen == [torch.bfloat16] * 2
    assert model.blocks[0].up.weight.dtype == torch.float32
    trains(model, tolerance=0.05, optimizer=torch.optim.SGD)
    half = sharded(made().to(torch.bfloat16))
    loss_of(half, batches(1)[0][dist.get_rank()]).backward()
    assert half.embed.weight.grad.dtype == torch.bfloat16


def steps_with_infinite_gradients_are_left_out() -> None:
    for model in (sharded(made()), wrapped()):
        scaler = ShardedGradScaler("cpu", init_scale=8.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for is_bad in (True, False):
            loss = loss_of(model, batches(1)[0][dist.get_rank()])
            scaler.scale(loss).backward()
            weight = next(model.parameters())
            before = whole(weight.detach())
            if is_bad and dist.get_rank() == 1:
                with torch.no_grad():
                    weight.grad.to_local().fill_(float("inf"))
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            assert torch.equal(whole(weight.detach()), before) == is_bad
        assert scaler.get_scale() == 4.0


def mixed_and_frozen_parameters() -> None:
    def build() -> Net:
        model = made()
        model.blocks[0].requires_grad_(False)
        model.blocks[1].up.requires_grad_(False)
        return model

    trains(sharded(build()), build())
    model: Any = sharded(made())
    model.blocks[0].requires_grad_(False)
    model.blocks[1].up.requires_grad_(False)
    trains(model, build())
    pair: Any = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2).double())
    pair.forward = lambda x: pair[1](pair[0](x).double())
    fully_shard(pair)
    pair(torch.ones(2, 3)).sum().backward()
    dtypes = [param.grad.dtype for param in pair.parameters() if param.grad is not None]
    assert dtypes == [torch.float32] * 2 + [torch.float64] * 2


def unused_parameters_have_no_gradient() -> None:
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    holder: Any = nn.Identity()
    holder.parts = model
    holder.forward = lambda x: model["a"](x)
    fully_shard(holder)
    holder(torch.ones(2, 3)).sum().backward()
    assert model["a"].weight.grad is not None and model["b"].weight.grad is None


def ranks_that_differ_are_told() -> None:
    parts: Any = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 1)])
    holder: Any = nn.Identity()
    holder.parts = parts
    holder.forward = lambda x: parts[dist.get_rank() % 2](x)
    fully_shard(holder)
    loss = holder(torch.ones(2, 3)).sum()
    refused(RuntimeError, loss.backward, "rank 0 calls reduce_scatter .* but rank 1 calls")
    trains(sharded(made()))


def by_hand() -> None:
    model = sharded(made())
    model.unshard()
    assert not isinstance(model.head.weight, DTensor) and model.head.weight.shape == (7, WIDTH)
    assert isinstance(model.blocks[0].up.weight, DTensor)
    model.reshard()
    handle = model.blocks[0].unshard(async_op=True)
    handle.wait()
    assert torch.equal(model.blocks[0].up.weight, made().blocks[0].up.weight)
    assert isinstance(model.state_dict()["blocks.0.up.weight"], DTensor)
    model.blocks[0].set_modules_to_forward_prefetch([model.blocks[1]])
    model.blocks[1].set_modules_to_backward_prefetch([model.blocks[0]])
    trains(model)

    class Speaker(nn.Linear):
        def speak(self, x: Any) -> Any:
            return self(x) + self.weight.sum()

    torch.manual_seed(0)
    plain = Speaker(3, 2)
    torch.manual_seed(0)
    speaker: Any = fully_shard(Speaker(3, 2))
    register_fsdp_forward_method(speaker, "speak")
    x = torch.ones(1, 3)
    assert torch.equal(speaker.speak(x), plain.speak(x))
    refused(ValueError, lambda: register_fsdp_forward_method(speaker, "sing"), "sing")
    speaker.set_gradient_divide_factor(1.0)
    speaker.speak(x).sum().backward()
    plain.speak(x).sum().backward()
    expected = plain.weight.grad * dist.get_world_size()
    assert torch.allclose(whole(speaker.weight.grad), expected)


def from_meta() -> None:
    meta: Any = torch.device("meta")
    with meta:
        model = made()
    sharded(model, mesh=dist.init_device_mesh("cpu", (dist.get_world_size(),)))
    ids = batches(1)[0][0]
    refused(RuntimeError, lambda: model(ids), "materialized from meta device")
    model.to_empty(device="cpu")
    torch.manual_seed(1)
    for part in model.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    torch.nn.init.constant_(model.scale, 0.5)
    reference = made()
    for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
        other.data = whole(mine.detach())
    trains(model, reference)


def other_dims() -> None:
    size = dist.get_world_size()
    model = nn.Sequential(nn.Linear(2 * size, 3), nn.Linear(3, 2))
    reference = nn.Sequential(nn.Linear(2 * size, 3), nn.Linear(3, 2))
    reference.load_state_dict(model.state_dict())
    fully_shard(model, shard_placement_fn=lambda p: Shard(-1) if p.shape[-1] == 2 * size else None)
    assert model[0].weight.placements == (Shard(1),)
    x = torch.arange(4.0 * size).view(2, -1)
    model(x).sum().backward()
    reference(x).sum().backward()
    same(model, reference, grads=True)
    refused(
        NotImplementedError,
        lambda: fully_shard(nn.Linear(3, 3), shard_placement_fn=lambda p: Shard(p.dim() - 1)),
        "is no multiple of",
    ) if size != 3 else None


def mistakes() -> None:
    model = sharded(made())
    ids = batches(1)[0][0]
    loss = loss_of(model, ids)
    with torch.no_grad():
        model.blocks[0].up.weight.mul_(2)
    refused(RuntimeError, loss.backward, "were changed between forward and")
    trains(sharded(made()))
    refused(IndexError, lambda: model(ids + 100))
    model(ids)
    is_there = dist.init_device_mesh("cpu", (1, 1, dist.get_world_size()))
    refused(ValueError, lambda: fully_shard(made(), mesh=is_there), "1D or 2D")
    for name in ("mesh", "mp_policy", "offload_policy"):
        refused(TypeError, functools.partial(fully_shard, made(), **{name: 3}), f"{name} is 3")
    refused(TypeError, lambda: fully_shard([made(), 3]), "module is 3")
    low: Any = "bfloat16"
    refused(TypeError, lambda: MixedPrecisionPolicy(param_dtype=low), "param_dtype is 'bfloat16'")
    trains(sharded(made(), offload_policy=CPUOffloadPolicy()))


# FullyShardedDataParallel


def the_wrapper_trains() -> None:
    trains(wrapped())
    for strategy in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
        trains(wrapped(sharding_strategy=strategy))
    trains(wrapped(backward_prefetch=None, cpu_offload=CPUOffload(True)))
    trains(wrapped(backward_prefetch=BackwardPrefetch.BACKWARD_POST), optimizer=torch.optim.SGD)
    low = MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16)
    trains(wrapped(mixed_precision=low), tolerance=0.05, optimizer=torch.optim.SGD)
    torch.manual_seed(dist.get_rank())
    trains(wrapped(Net(), sync_module_states=True), reference=_of_seed_0())
    model = wrapped()
    assert len(FSDP.fsdp_modules(model)) == 3 and FSDP.fsdp_modules(model, root_only=True) == [
        model
    ]
    assert model.check_is_root() and isinstance(model.module, Net) and model.around == ""


def _of_seed_0() -> Net:
    torch.manual_seed(0)
    return Net()


def the_wrapper_refuses_other_classes() -> None:
    for name in ("module", "sharding_strategy", "cpu_offload", "mixed_precision"):
        options: Any = {"module": made(), name: 3}
        refused(TypeError, functools.partial(FSDP, **options), f"{name} is 3")
    refused(TypeError, lambda: FSDP(made(), auto_wrap_policy=3), "auto_wrap_policy is 3")


def the_wrapper_makes_what_is_on_meta() -> None:
    def build(kind: Any) -> Any:
        torch.manual_seed(1)
        device: Any = torch.device(kind)
        with device:
            return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))

    model: Any = FSDP(build("meta"), sync_module_states=True)
    assert model[0].weight.shape == (4, 3) and not model[0].weight.is_meta
    model(torch.ones(4, 3, device=model[0].weight.device)).sum().backward()  # a GPU if there is one
    model = FSDP(build("meta"), param_init_fn=lambda part: part.to_empty(device="cpu"))
    model.load_state_dict(build("cpu").state_dict())
    same(model, build("cpu"))
    scale: Any = nn.Module()
    scale.register_buffer("x", torch.empty(2, device="meta"))
    refused(RuntimeError, lambda: FSDP(scale), "Pass param_init_fn")

    low = MixedPrecision(torch.bfloat16, torch.float32)
    policy = ModuleWrapPolicy({nn.Linear})
    model = FSDP(build("cpu"), auto_wrap_policy=policy, mixed_precision=low)
    assert [type(part) for part in model.module] == [FSDP] * 3  # the normalization too
    assert model(torch.randn(4, 3)).dtype == torch.bfloat16
    assert model.module[1].running_mean.dtype == torch.float32
    plain = build("cpu")
    model = FSDP(plain, ignored_modules=[plain[0]], auto_wrap_policy={nn.Linear})
    assert type(plain[0]) is nn.Linear and type(plain[2]) is FSDP
    assert type(plain[0].weight) is nn.Parameter
    model(torch.ones(4, 3)).sum().backward()
    assert model.clip_grad_norm_(1.0).dim() == 0


def the_wrapper_accumulates_and_clips() -> None:
    model, reference = wrapped(), made()
    first, second = batches(2)
    with model.no_sync():
        loss_of(model, first[dist.get_rank()]).backward()
    loss_of(model, second[dist.get_rank()]).backward()
    for ids in (first, second):
        torch.stack([loss_of(reference, part) for part in ids]).mean().backward()
    norm = model.clip_grad_norm_(0.1)
    expected = nn.utils.clip_grad_norm_(reference.parameters(), 0.1)
    assert type(norm) is torch.Tensor and torch.allclose(norm, expected)
    same(model, reference, grads=True)


def the_wrapper_has_state_dicts() -> None:
    model, reference = wrapped(), made()
    expected = reference.state_dict()
    full = model.state_dict()
    assert list(full) == list(expected)
    assert all(torch.equal(full[name], expected[name]) for name in expected)
    with FSDP.state_dict_type(
        model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(True, rank0_only=True)
    ):
        assert bool(model.state_dict()) == (dist.get_rank() == 0)
    for kind in StateDictType:
        other = wrapped(Net())
        with FSDP.state_dict_type(model, kind), FSDP.state_dict_type(other, kind):
            state = model.state_dict()
            if kind is StateDictType.SHARDED_STATE_DICT:
                assert isinstance(state["head.bias"], DTensor)
            assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
        same(other, reference)
    refused(
        RuntimeError,
        lambda: FSDP.set_state_dict_type(
            model, StateDictType.SHARDED_STATE_DICT, FullStateDictConfig()
        ),
        "Expected state_dict_config of type",
    )
    refused(
        RuntimeError,
        lambda: FSDP.set_state_dict_type(
            model,
            StateDictType.FULL_STATE_DICT,
            FullStateDictConfig(),
            FullStateDictConfig(),  # pyright: ignore[reportArgumentType]
        ),
        "Expected optim_state_dict_config of type",
    )
    refused(
        RuntimeError, lambda: model.load_state_dict({"head.bias": torch.ones(3)}), "size mismatch"
    )


def the_wrapper_has_optimizer_states() -> None:
    model = wrapped()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    ids = batches(1)[0]
    loss_of(model, ids[dist.get_rank()]).backward()
    optimizer.step()
    state = FSDP.optim_state_dict(model, optimizer)
    name = "blocks.0.up.weight"
    assert state["state"][name]["exp_avg"].shape == (5, WIDTH)
    assert name in state["param_groups"][0]["params"]
    other = wrapped()
    second = torch.optim.Adam(other.parameters(), lr=0.1)
    second.load_state_dict(FSDP.optim_state_dict_to_load(other, second, state))
    assert second.param_groups[0]["lr"] == 0.01
    mine = second.state[other.module.blocks[0].up.weight]["exp_avg"]
    assert torch.equal(mine.full_tensor(), state["state"][name]["exp_avg"])
    config = FullOptimStateDictConfig(rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, None, config):
        assert bool(FSDP.optim_state_dict(model, optimizer)) == (dist.get_rank() == 0)
    assert FSDP.full_optim_state_dict(model, optimizer, None, False)["state"].keys() == (
        state["state"].keys()
    )
    earlier = optimizer.state_dict()
    earlier["param_groups"][0]["lr"] = 0.5
    for values in earlier["state"].values():
        values["exp_avg"] = torch.zeros_like(values["exp_avg"])
    given = FSDP.optim_state_dict(model, optimizer, earlier)
    assert given["param_groups"][0]["lr"] == 0.5 and name in given["param_groups"][0]["params"]
    assert given["state"][name]["exp_avg"].tolist() == torch.zeros(5, WIDTH).tolist()
    assert given["state"][name]["exp_avg_sq"].any()


def parameters_are_summoned() -> None:
    model = wrapped()
    with FSDP.summon_full_params(model):
        names = [name for name, _ in model.named_parameters()]
        assert names == [name for name, _ in made().named_parameters()]
        assert type(model.module.head.weight) is nn.Parameter
        with torch.no_grad():
            model.module.head.bias.fill_(7.0)
    assert model.state_dict()["head.bias"].tolist() == [7.0] * 7
    with FSDP.summon_full_params(model, writeback=False):
        model.module.head.bias.data.fill_(1.0)
    assert model.state_dict()["head.bias"].tolist() == [7.0] * 7
    loss_of(model, batches(1)[0][0]).backward()
    with FSDP.summon_full_params(model, rank0_only=True, writeback=False, with_grads=True):
        is_whole = not isinstance(model.module.head.bias, DTensor)
        assert is_whole == (dist.get_rank() == 0)
        if is_whole:
            assert model.module.head.bias.grad.shape == (7,)
    model.apply(
        lambda part: (
            nn.init.ones_(part.bias)
            if isinstance(part, nn.Linear) and part.bias is not None
            else None
        )
    )
    assert model.state_dict()["head.bias"].tolist() == [1.0] * 7


# Several dims


def on_meshes_of_two_dims() -> None:
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    trains(sharded(made(), mesh=mesh))
    model, reference = sharded(made(), mesh=mesh), made()
    first, second = batches(2)
    model.set_requires_all_reduce(False)
    loss_of(model, first[dist.get_rank()]).backward()
    model.set_requires_all_reduce(True)
    loss_of(model, second[dist.get_rank()]).backward()
    for ids in (first, second):
        torch.stack([loss_of(reference, part) for part in ids]).mean().backward()
    same(model, reference, grads=True)
    trains(wrapped(device_mesh=mesh, sharding_strategy=ShardingStrategy.HYBRID_SHARD))
    groups = mesh["shard"].get_group(), mesh["replicate"].get_group()
    trains(wrapped(process_group=groups, sharding_strategy=ShardingStrategy.HYBRID_SHARD))


def beside_tensor_parallel() -> None:
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    model: Any = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))
    torch.manual_seed(0)
    reference = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    fully_shard(parallelize_module(model, mesh["tp"], plan), mesh=mesh["dp"])
    assert model[0].weight.shape == (8, 3)
    mine = torch.optim.Adam(model.parameters(), lr=0.01)
    other = torch.optim.Adam(reference.parameters(), lr=0.01)
    for _ in range(2):
        x = torch.randn(2, 4, 3)
        for part, optimizer, net in (
            (x[mesh.get_local_rank("dp")], mine, model),
            (x, other, reference),
        ):
            optimizer.zero_grad()
            net(part).square().mean().backward()
            optimizer.step()
        same(model, reference, grads=True)
    same(model, reference)


OF_TWO: list[Callable[[], None]] = [
    parameters_are_parts,
    it_trains,
    checkpoints_inside_and_around,
    wrappers_of_activations,
    memory_is_given_back,
    gradients_add_up_without_sync,
    several_forwards_before_backward,
    dtypes_differ,
    steps_with_infinite_gradients_are_left_out,
    mixed_and_frozen_parameters,
    unused_parameters_have_no_gradient,
    ranks_that_differ_are_told,
    by_hand,
    from_meta,
    other_dims,
    mistakes,
    the_wrapper_trains,
    the_wrapper_refuses_other_classes,
    the_wrapper_makes_what_is_on_meta,
    the_wrapper_accumulates_and_clips,
    the_wrapper_has_state_dicts,
    the_wrapper_has_optimizer_states,
    parameters_are_summoned,
]

# Of four ranks, where some parts are empty.
OF_FOUR: list[Callable[[], None]] = [
    parameters_are_parts,
    memory_is_given_back,
    gradients_add_up_without_sync,
    from_meta,
    the_wrapper_has_state_dicts,
    on_meshes_of_two_dims,
    beside_tensor_parallel,
]
