"""The way from one layout of a tensor to another, and of its gradient back.

A gradient lies like its tensor, except that the addends of a Partial each have the whole gradient.
So the gradient of every move is a move too.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.autograd import Function
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec, Placements, gradient_placements
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["move"]

_REDUCE = {
    "sum": lambda parts: parts.sum(0),
    "avg": lambda parts: parts.mean(0),
    "product": lambda parts: parts.prod(0),
    "max": lambda parts: parts.amax(0),
    "min": lambda parts: parts.amin(0),
}


def move(
    local: Tensor,
    spec: DTensorSpec,
    placements: Placements,
    grad_from: Placements | None = None,
    grad_to: Placements | None = None,
) -> Tensor:
    """Returns this rank's part of a tensor in other placements.

    Args:
        local: the part that it has.
        spec: the layout of that.
        placements: the ones wanted.
        grad_from: how the gradient of the result will lie; like the result by default.
        grad_to: how the gradient of local is to lie; like local by default.
    """
    grad_from = grad_from or gradient_placements(placements)
    grad_to = grad_to or gradient_placements(spec.placements)
    if spec.placements == placements and (grad_from == grad_to or not local.requires_grad):
        return local
    return _Move.apply(spec, placements, grad_from, grad_to, local)


class _Move(Function):
    @staticmethod
    def forward(
        ctx: Any,
        spec: DTensorSpec,
        placements: Placements,
        grad_from: Placements,
        grad_to: Placements,
        local: Tensor,
    ) -> Tensor:
        ctx.spec, ctx.grad_from, ctx.grad_to = spec, grad_from, grad_to
        moved = _moved(local, spec, placements)
        return local.view_as(local) if moved is local else moved

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        spec = ctx.spec
        grad = move(grads[0], DTensorSpec(spec.mesh, ctx.grad_from, spec.shape), ctx.grad_to)
        for m, placement in enumerate(spec.placements):
            if placement.is_partial("avg"):
                grad = grad / spec.mesh.size(m)
            elif isinstance(placement, Partial) and placement.reduce_op != "sum":
                raise RuntimeError(
                    f"redistribute: {placement!r} has no gradient. Only Partial('sum') and "
                    "Partial('avg') are differentiable."
                )
        return None, None, None, None, grad


def _moved(local: Tensor, spec: DTensorSpec, wanted: Placements) -> Tensor:
    """What move does, without the gradient."""
    mesh, now = spec.mesh, list(spec.placements)
    # Parts whose cutting by an earlier dim of the mesh changes are put together first, inner ones
    # before outer ones; then each dim of the mesh, outer ones first, makes what is wanted.
    for m in reversed(range(mesh.ndim)):
        if isinstance(now[m], Shard) and not _stays(m, spec.placements, wanted):
            local = _gather(local, DTensorSpec(mesh, tuple(now), spec.shape), m)
            now[m] = Replicate()
    for m, target in enumerate(wanted):
        if now[m] != target:
            local = _step(local, DTensorSpec(mesh, tuple(now), spec.shape), m, target)
            now[m] = target
    return local


def _stays(m: int, old: Placements, new: Placements) -> bool:
    """Whether a part along a dim of the mesh can be kept, or exchanged for another in one go."""
    changed = [k for k in range(len(old)) if old[k] != new[k]]
    dims = {p.dim for p in (old[m], new[m]) if isinstance(p, Shard)}

    def shares(k: int) -> bool:
        return any(isinstance(p, Shard) and p.dim in dims for p in (old[k], new[k]))

    if m not in changed:
        return not any(k < m and shares(k) for k in changed)
    return isinstance(new[m], Shard) and not any(shares(k) for k in range(len(old)) if k != m)


# What counts the collectives, by PyTorch's names of them; see debug.py.
counters: list[Counter[str]] = []


def _note(name: str) -> None:
    for counter in counters:
        counter[name] += 1


def _step(local: Tensor, spec: DTensorSpec, m: int, target: Placement) -> Tensor:
    """Changes the placement along one dim of the mesh; no later dim cuts what this one does."""
    source = spec.placements[m]
    if isinstance(target, Replicate):
        assert isinstance(source, Partial)
        return _reduced(local, spec.mesh, m, source)
    if isinstance(target, Partial):
        if isinstance(source, Partial):
            local = _reduced(local, spec.mesh, m, source)
        return local / spec.mesh.size(m) if target.reduce_op == "sum" else local
    assert isinstance(target, Shard)
    sizes = DTensorSpec(
        spec.mesh, (*spec.placements[:m], target, *spec.placements[m + 1 :]), spec.shape
    ).parts(m, target.dim)
    parts = list(local.split(sizes, target.dim))
    here = spec.coordinate(m)
    if isinstance(source, Replicate):
        return parts[here].contiguous()
    if isinstance(source, Partial):
        received = [rl.empty_like(parts[here]) for _ in sizes]
        _note("reduce_scatter_tensor")
        dist.all_to_all(received, parts, spec.mesh.get_group(m))
        return _REDUCE[source.reduce_op](rl.stack(received))
    assert isinstance(source, Shard)
    shape = list(parts[here].shape)
    received = []
    for length in spec.parts(m, source.dim):
        shape[source.dim] = length
        received.append(local.new_empty(shape))
    _note("all_to_all_single")
    dist.all_to_all(received, parts, spec.mesh.get_group(m))
    return rl.cat(received, source.dim)


def _gather(local: Tensor, spec: DTensorSpec, m: int) -> Tensor:
    """Puts the parts along a dim of the mesh together."""
    placement = spec.placements[m]
    assert isinstance(placement, Shard)
    dim, sizes = placement.dim, spec.parts(m, placement.dim)
    missing = sizes[0] - local.shape[dim]  # all give as much as the first, which has most
    if missing:
        shape = [missing if i == dim else size for i, size in enumerate(local.shape)]
        local = rl.cat([local, local.new_zeros(shape)], dim)
    received = [rl.empty_like(local, memory_format=rl.contiguous_format) for _ in sizes]
    _note("all_gather_into_tensor")
    dist.all_gather(received, local, spec.mesh.get_group(m))
    return rl.cat([part.narrow(dim, 0, n) for part, n in zip(received, sizes, strict=True)], dim)


def _reduced(local: Tensor, mesh: DeviceMesh, m: int, placement: Partial) -> Tensor:
    result = local.clone(memory_format=rl.contiguous_format)
    op = getattr(dist.ReduceOp, placement.reduce_op.upper())
    _note("all_reduce")
    dist.all_reduce(result, op, mesh.get_group(m))
    return result
