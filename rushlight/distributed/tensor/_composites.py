"""Ops of DTensors that are made of several, or that need no placements at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed.tensor._api import DTensor, local_of, wrap
from rushlight.distributed.tensor._cross_entropy import cross_entropy
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec
from rushlight.distributed.tensor._redistribute import move
from rushlight.distributed.tensor._rules import LOSSES
from rushlight.distributed.tensor.placement_types import Replicate, Shard
from rushlight.utils._pytree import tree_map

Composite = Callable[[Callable[..., Any], Any, Any], Any]

__all__ = ["COMPOSITES"]


def _norm(func: Any, args: Any, kwargs: Any) -> Any:
    """The norm of all elements is the norm of the norms of the parts."""
    x, order = (*args, kwargs.get("ord", kwargs.get("p", 2)))[:2]
    is_matrix_norm = func is rl.linalg.norm and order is not None and len(args) + len(kwargs) > 1
    order = 2 if order is None or order == "fro" else order
    if not isinstance(x, DTensor) or len(args) > 2 or kwargs.keys() - {"ord", "p"}:
        return NotImplemented
    if is_matrix_norm or not isinstance(order, (int, float)) or not 0 < order < math.inf:
        return NotImplemented
    kept = tuple(p if isinstance(p, Shard) else Replicate() for p in x.placements)
    local = move(x._local_tensor, x._spec, kept)
    norms = rl.linalg.vector_norm(local, order)
    for m, placement in enumerate(kept):
        if isinstance(placement, Shard):
            places = (*(Replicate(),) * m, Shard(0), *(Replicate(),) * (x.device_mesh.ndim - m - 1))
            spec = DTensorSpec(x.device_mesh, places, rl.Size((x.device_mesh.size(m),)))
            copies = (Replicate(),) * x.device_mesh.ndim
            norms = rl.linalg.vector_norm(move(norms.unsqueeze(0), spec, copies), order)
    return wrap(norms, DTensorSpec(x.device_mesh, (Replicate(),) * x.device_mesh.ndim, norms.shape))


def _foreach_norm(func: Any, args: Any, kwargs: Any) -> Any:
    tensors, *rest = args
    return tuple(rl.linalg.vector_norm(tensor, *rest, **kwargs) for tensor in tensors)


def _loss_by_elements(func: Any, args: Any, kwargs: Any) -> Any:
    """A loss is the mean or the sum of losses that belong to one element each."""
    reduction = kwargs.get("reduction", "mean")
    if reduction not in ("mean", "sum") or kwargs.keys() & {"size_average", "reduce"}:
        return NotImplemented
    losses = func(*args, **{**kwargs, "reduction": "none"})
    return getattr(losses, reduction)()


def _dropout(func: Any, args: Any, kwargs: Any) -> Any:
    """Nothing, where nothing is drawn."""
    p, training = (*args[1:3], *(None,) * 2)[:2]
    p = kwargs.get("p", 0.5) if p is None else p
    training = kwargs.get("training", True) if training is None else training
    return NotImplemented if training and p else args[0]


def _local(func: Any, args: Any, kwargs: Any) -> Any:
    """Fused steps of optimizers: the state and the gradient of a part are where the part is."""
    return func(*tree_map(local_of, args), **tree_map(local_of, kwargs))


def _unscale(func: Any, args: Any, kwargs: Any) -> Any:
    """What GradScaler does with gradients: if those of one rank are not finite, none are."""
    grads, found, *rest = args
    _local(func, (grads, found, *rest), kwargs)
    for mesh in {grad.device_mesh for grad in grads if isinstance(grad, DTensor)}:
        for m in range(mesh.ndim):
            dist.all_reduce(found, dist.ReduceOp.MAX, mesh.get_group(m))


def _new(func: Any, args: Any, kwargs: Any) -> Any:
    """Fresh tensors are copies on all ranks."""
    x = args[0]
    made: Tensor = func(x._local_tensor, *args[1:], **kwargs)
    return wrap(made, DTensorSpec(x.device_mesh, (Replicate(),) * x.device_mesh.ndim, made.shape))


def _attributes(func: Any, args: Any, kwargs: Any) -> Any:
    """Of the part, as of the whole."""
    return func(args[0]._local_tensor, *args[1:], **kwargs)


_TABLE: dict[Composite, tuple[str, ...]] = {
    _norm: ("norm", "vector_norm"),
    _foreach_norm: ("_foreach_norm",),
    _loss_by_elements: tuple(LOSSES),
    cross_entropy: ("cross_entropy",),
    _dropout: ("dropout",),
    _local: tuple(
        f"_fused_{name}_"
        for name in (
            *("adadelta", "adagrad", "adam", "adamax", "asgd"),
            *("nadam", "radam", "rmsprop", "rprop", "sgd"),
        )
    ),
    _unscale: ("_unscale_",),
    _new: ("new_empty", "new_full", "new_ones", "new_zeros"),
    _attributes: ("is_complex", "is_floating_point", "is_signed"),
}
COMPOSITES = {name: composite for composite, names in _TABLE.items() for name in names}
