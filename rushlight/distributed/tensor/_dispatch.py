"""What ops do with DTensors: choosing the placements to compute in, and computing.

Along each dim of the mesh an op is computed in parts if its rule (_rules.py) has a label for what
one of its tensors shards, else on whole copies. Where a tensor is whole and the result is not, the
ranks make different things of the same copy, so their gradients of it are addends.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import function_of
from rushlight.distributed.tensor._api import DTensor, wrap
from rushlight.distributed.tensor._composites import COMPOSITES
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec, Placements, gradient_placements
from rushlight.distributed.tensor._implicit import as_copies, is_implicit
from rushlight.distributed.tensor._random import RANDOM, first_rank_numbers
from rushlight.distributed.tensor._redistribute import move
from rushlight.distributed.tensor._rules import Signature, rule_for
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from rushlight.utils._pytree import tensor_leaves, tree_flatten, tree_map, tree_unflatten

__all__ = ["Call", "dispatch"]


class Call:
    """A call of an op with DTensors among its arguments.

    Args:
        func: the op.
        args, kwargs: its arguments.

    Raises:
        RuntimeError: if there are plain tensors too, or several meshes.
    """

    def __init__(self, func: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs
        self.name = getattr(func, "__name__", "")
        self.in_place = self.name == "__setitem__" or (
            self.name.endswith("_") and not self.name.endswith("__")
        )
        self._leaves, self._tree = tree_flatten((args, kwargs))
        self._places = [i for i, x in enumerate(self._leaves) if isinstance(x, Tensor)]
        self.mesh = next(x for x in self._leaves if isinstance(x, DTensor)).device_mesh
        self.tensors = [self._distributed(self._leaves[i]) for i in self._places]

    def _distributed(self, tensor: Tensor) -> DTensor:
        if isinstance(tensor, DTensor):
            if tensor.device_mesh != self.mesh:
                raise RuntimeError(
                    f"{self.name}: Expected all DTensors on one mesh, but got {self.mesh} and "
                    f"{tensor.device_mesh}. Distribute them over the same mesh."
                )
            return tensor
        if tensor.dim() == 0 or tensor.shape == (1,) or is_implicit():  # numbers are no mistake
            return as_copies(tensor, self.mesh)
        raise RuntimeError(
            f"{self.name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to "
            "DTensor before calling distributed operators! distribute_tensor and "
            "DTensor.from_local do."
        )

    def argument(self, position: int, name: str, default: Any) -> Any:
        """Returns an argument by its position or name."""
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(name, default)

    def with_tensors(self, tensors: list[Any]) -> tuple[Any, Any]:
        """Returns args and kwargs with others in place of the tensors."""
        leaves = list(self._leaves)
        for i, tensor in zip(self._places, tensors, strict=True):
            leaves[i] = tensor
        return tree_unflatten(leaves, self._tree)

    def results(self) -> Any:
        """Returns the results for the whole tensors, with shapes and dtypes but no values."""
        whole = [rl.empty(t.shape, dtype=t.dtype, device="meta") for t in self.tensors]
        args, kwargs = self.with_tensors(whole)
        with rl.no_grad():
            return self.func(*args, **kwargs)

    def result_shape(self) -> rl.Size:
        """Returns the shape of the only result."""
        return self.results().shape


def dispatch(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Returns what an op gives for DTensors."""
    func = function_of(func)
    name = getattr(func, "__name__", "")
    # Both read arguments by their places and by PyTorch's names for them.
    is_plain = bool(args) and not kwargs.keys() & {"axis", "keepdims"}
    composite = COMPOSITES.get(name) if is_plain else None
    if composite is not None:
        result = composite(func, args, kwargs)
        if result is not NotImplemented:
            return result
    if kwargs.get("out") is not None:
        out = kwargs["out"]
        result = func(*args, **{k: v for k, v in kwargs.items() if k != "out"})
        return tree_map(lambda to, x: to.copy_(x), out, result)
    call = Call(func, args, kwargs)
    rule = rule_for(name) if is_plain else None
    signature = rule(call) if rule is not None else None
    chosen = None if signature is None else _choices(call, signature)
    if signature is None or chosen is None:
        return _on_whole(call)
    return _in_parts(call, signature, *chosen)


# In parts


def _choices(call: Call, signature: Signature) -> tuple[list[Placements], Placements] | None:
    """The placements to bring the tensors to, and those that the result then has."""
    inputs, outputs = [], []
    for m in range(call.mesh.ndim):
        choice = _choice(call, signature, m)
        if choice is None:
            return None
        inputs.append(choice[0])
        outputs.append(choice[1])
    return list(zip(*inputs, strict=True)), tuple(outputs)


def _choice(call: Call, signature: Signature, m: int) -> tuple[list[Placement], Placement] | None:
    """The same along one dim of the mesh: what moves the fewest elements."""
    now = [tensor.placements[m] for tensor in call.tensors]
    options = _options(signature, now)
    if call.in_place:
        options = [(inputs, out) for inputs, out in options if inputs[0] == out == now[0]]

    def cost(option: tuple[list[Placement], Placement]) -> int:
        return sum(
            tensor.numel()
            for tensor, old, new in zip(call.tensors, now, option[0], strict=True)
            if old != new and not old.is_replicate()
        )

    return min(options, key=cost, default=None)


def _options(signature: Signature, now: list[Placement]) -> list[tuple[list[Placement], Placement]]:
    options: list[tuple[list[Placement], Placement]] = []
    for labels, placement in zip(signature.inputs, now, strict=True):
        label = labels[placement.dim] if isinstance(placement, Shard) else None
        if label is None:
            continue
        if label in signature.output:
            output, rest = Shard(signature.output.index(label)), Replicate()
        elif signature.sums:
            output = rest = Partial()
        else:
            continue
        options.append(
            (
                [
                    Shard(labels.index(label))
                    if label in labels
                    else rest
                    if i in signature.added
                    else Replicate()
                    for i, labels in enumerate(signature.inputs)
                ],
                output,
            )
        )
    addends = _of_addends(signature, now)
    if addends is not None:
        options.append(addends)
    options.append(([Replicate()] * len(now), Replicate()))
    return options


def _of_addends(
    signature: Signature, now: list[Placement]
) -> tuple[list[Placement], Placement] | None:
    """The option of letting addends be addends, if the op is linear."""
    found = [i for i, p in enumerate(now) if p.is_partial("sum") or p.is_partial("avg")]
    if not found or not signature.linear:
        return None
    addend = now[found[0]]
    if signature.linear == "all":
        return (now, addend) if all(p == addend for p in now) else None
    factors = [i for i in range(len(now)) if i not in (*found, *signature.added)]
    if len(found) > 1 or not all(now[i].is_replicate() for i in factors):
        return None
    if found[0] in signature.added or (signature.linear == "first" and found[0] != 0):
        return None
    inputs = [addend if i in signature.added else p for i, p in enumerate(now)]
    return inputs, addend


def _in_parts(
    call: Call, signature: Signature, wanted: list[Placements], output: Placements
) -> Any:
    whole = all(placement.is_replicate() for placement in output)
    locals_ = [
        move(tensor._local_tensor, tensor._spec, places, _gradients(places, output))
        for tensor, places in zip(call.tensors, wanted, strict=True)
    ]
    specs = [
        DTensorSpec(call.mesh, places, tensor.shape)
        for tensor, places in zip(call.tensors, wanted, strict=True)
    ]
    args, kwargs = call.with_tensors(locals_)
    if signature.shape is not None:
        shapes = [signature.shape]
    elif whole and signature.local is None:
        shapes = None
    else:
        shapes = [x.shape for x in tensor_leaves(call.results())]
    if signature.local is None:
        result = call.func(*args, **kwargs)
    else:
        local_shape = DTensorSpec(call.mesh, output, (shapes or [rl.Size()])[0]).local_shape()
        result = signature.local(args, kwargs, local_shape, specs)
    if call.in_place:
        return call.args[0]
    left = iter(shapes or ())
    return _wrapped(result, call, output, lambda x: next(left) if shapes else x.shape)


def _gradients(places: Placements, output: Placements) -> Placements:
    """How the gradient of a tensor that was brought to these placements comes out of the op."""
    return tuple(
        Partial()
        if p.is_replicate() and not out.is_replicate()
        else Replicate()
        if p.is_partial()
        else p
        for p, out in zip(places, output, strict=True)
    )


def _wrapped(
    result: Any, call: Call, places: Placements, shape: Callable[[Tensor], rl.Size]
) -> Any:
    return tree_map(
        lambda x: wrap(x, DTensorSpec(call.mesh, places, shape(x))) if isinstance(x, Tensor) else x,
        result,
    )


# On whole copies


def _on_whole(call: Call) -> Any:
    """Brings whole copies together on every rank, and computes on them."""
    copies = (Replicate(),) * call.mesh.ndim
    whole = [move(tensor._local_tensor, tensor._spec, copies) for tensor in call.tensors]
    args, kwargs = call.with_tensors(whole)
    is_random = call.name in RANDOM
    with first_rank_numbers(call.mesh) if is_random else nullcontext():
        result = call.func(*args, **kwargs)
    changed = call.tensors[0]
    if not call.in_place:
        result = _wrapped(result, call, copies, lambda x: x.shape)
        parts = gradient_placements(changed.placements)
        if is_random and isinstance(result, DTensor) and result.shape == changed.shape:
            return result.redistribute(placements=parts)  # as if each part had been drawn
        return result
    if whole[0].shape != changed.shape:
        raise RuntimeError(
            f"{call.name}: a DTensor's shape cannot be changed in place, from "
            f"{tuple(changed.shape)} to {tuple(whole[0].shape)}. Use the op that returns a result."
        )
    if changed.placements != copies:
        spec = DTensorSpec(call.mesh, copies, changed.shape)
        changed._local_tensor.copy_(move(whole[0], spec, changed.placements))
    return call.args[0]
