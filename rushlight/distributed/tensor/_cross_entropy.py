"""cross_entropy on logits that are spread over a mesh, by batch and by class.

With the classes spread, log-sum-exp is that of the ranks' log-sum-exps, and the rank that has the
target's logit adds it: two numbers for each sample travel instead of all logits.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.tensor._api import DTensor, wrap
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec
from rushlight.distributed.tensor._implicit import as_copies, is_implicit
from rushlight.distributed.tensor._redistribute import move
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["cross_entropy"]


def cross_entropy(func: Any, args: Any, kwargs: Any) -> Any:
    """The composite of that name; targets are classes, none of them with a weight of its own."""
    reduction, ignored = kwargs.get("reduction", "mean"), kwargs.get("ignore_index", -100)
    if len(args) != 2 or kwargs.keys() - {"reduction", "ignore_index"}:
        return NotImplemented
    logits, target = args
    if not isinstance(logits, DTensor) or logits.dim() < 2 or not isinstance(target, Tensor):
        return NotImplemented
    if not isinstance(target, DTensor) and is_implicit():
        target = as_copies(target, logits.device_mesh)
    if not isinstance(target, DTensor) or target.dtype.is_floating_point:
        return NotImplemented
    if reduction not in ("mean", "sum", "none") or target.dim() != logits.dim() - 1:
        return NotImplemented
    cut = [m for m, p in enumerate(logits.placements) if p.is_shard(1)]
    if len(cut) == 1 and logits.shape[1] >= logits.device_mesh.size(cut[0]) ** 2:
        losses = _with_classes_apart(logits, target, ignored)
    elif reduction == "none":
        return NotImplemented  # its rule does it
    else:
        losses = func(logits, target, reduction="none", ignore_index=ignored)
    if reduction == "none":
        return losses
    return losses.sum() / (target != ignored).sum() if reduction == "mean" else losses.sum()


def _with_classes_apart(logits: DTensor, target: DTensor, ignored: int) -> DTensor:
    """The loss of each sample; one dim of the mesh shards the classes, and no part is empty."""
    mesh, rest = logits.device_mesh, target.shape

    def placed(classes: Placement, batch: int = 0) -> tuple[Placement, ...]:
        return tuple(
            classes if p.is_shard(1) else Shard(batch) if p.is_shard(0) else Replicate()
            for p in logits.placements
        )

    spec = DTensorSpec(mesh, placed(Shard(1)), logits.shape)
    local = move(logits._local_tensor, logits._spec, spec.placements)
    targets = move(target._local_tensor, target._spec, placed(Replicate()))

    ranks = next(mesh.size(m) for m in spec.sharders(1))
    by_rank = DTensorSpec(mesh, placed(Shard(0), 1), rl.Size((ranks, *rest)))
    totals = move(local.logsumexp(1).unsqueeze(0), by_rank, placed(Replicate(), 1)).logsumexp(0)

    classes = logits.shape[1]
    if bool(((targets != ignored) & ((targets < 0) | (targets >= classes))).any()):
        raise IndexError(
            f"cross_entropy: targets must be in [0, {classes}) or ignore_index, {ignored}."
        )
    places = targets - spec.offset(1)
    here = (places >= 0) & (places < local.shape[1])
    found = local.gather(1, rl.where(here, places, 0).unsqueeze(1)).squeeze(1)
    addends = DTensorSpec(mesh, placed(Partial()), rest)
    chosen = move(rl.where(here, found, 0.0), addends, placed(Replicate()))
    losses = rl.where(targets == ignored, 0.0, totals - chosen)
    return wrap(losses, DTensorSpec(mesh, placed(Replicate()), rest))
