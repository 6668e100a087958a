"""ParamGroup: parameters that are gathered together, and whose gradients are averaged together.

Each rank keeps a part of every parameter, a DTensor. To compute, one all_gather puts the parts of
all together in one piece of memory; it is given back as soon as nobody needs it. In the graph of
autograd stand two nodes: the outputs of _Whole are the whole parameters, and when all their
gradients are there, it begins a reduce_scatter; _Parts, older than all else in the forward and so
the last to run, waits for it and hands the gradients to the parts.
Invariant: what a graph saves of whole parameters is only where they lie; see pack and unpack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight import distributed as dist
from rushlight.autograd import Function
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.fsdp._policies import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from rushlight.distributed.tensor._api import DTensor, local_of, wrap
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec
from rushlight.distributed.tensor.placement_types import Placement, Replicate, Shard, chunk_sizes
from rushlight.nn import Module, Parameter

__all__ = ["Packed", "ParamGroup", "Place", "ShardMesh"]

Place = tuple[Module, str]  # where a parameter stands: the module and the attribute


class ShardMesh:
    """The ranks that parameters are cut over.

    Args:
        mesh: of one dim, along which they are cut; or of two: copies along the first.

    Raises:
        ValueError: for other numbers of dims.
    """

    def __init__(self, mesh: DeviceMesh) -> None:
        if mesh.ndim not in (1, 2):
            raise ValueError(
                f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}. Parameters are cut "
                "along the last dim, and are copies along the first of two. Take a part of the "
                "mesh: mesh['dp']."
            )
        self.mesh = mesh
        self.group = mesh.get_group(mesh.ndim - 1)
        self.size = mesh.size(mesh.ndim - 1)
        self.rank = mesh.get_local_rank(mesh.ndim - 1)
        self.copies = mesh.get_group(0) if mesh.ndim == 2 and mesh.size(0) > 1 else None

    def layout(self, shard: Shard, whole: Tensor) -> tuple[DeviceMesh, tuple[Placement, ...]]:
        """Returns how the parts of a parameter lie; of a DTensor what lies here is cut further."""
        placements: tuple[Placement, ...] = (*(Replicate(),) * (self.mesh.ndim - 1), shard)
        if not isinstance(whole, DTensor):
            return self.mesh, placements
        inner, names = whole.device_mesh, self.mesh.mesh_dim_names
        if inner._root is not self.mesh._root or names is None or inner.mesh_dim_names is None:
            raise ValueError(
                f"fully_shard: a parameter is on {inner} already, and is to be cut over "
                f"{self.mesh}. Both must be parts of one mesh whose dims have names."
            )
        # The dims that cut first come first.
        return inner._root[(*inner.mesh_dim_names, *names)], (*whole.placements, *placements)


class ShardedParam:
    """One parameter of a group: where it stands, and how it is cut."""

    def __init__(
        self, name: str, places: list[Place], whole: Parameter, shard: Shard, ranks: ShardMesh
    ) -> None:
        self.name = name  # for messages
        self.places = places
        self.whole_spec = whole._spec if isinstance(whole, DTensor) else None
        self.shape = local_of(whole).shape
        self.dim = shard.dim
        sizes = chunk_sizes(self.shape[self.dim], ranks.size)
        if self.dim and sizes[-1] != sizes[0]:
            raise NotImplementedError(
                f"fully_shard: {name} of shape {tuple(self.shape)} is to be cut along dim "
                f"{self.dim}, but {self.shape[self.dim]} is no multiple of {ranks.size}. Uneven "
                "parts are possible along dim 0 only."
            )
        # Every rank sends as much as the first, whose part is largest.
        self.part_shape = (*self.shape[: self.dim], sizes[0], *self.shape[self.dim + 1 :])
        self.count = rl.Size(self.part_shape).numel()
        self.length = sizes[ranks.rank]
        self.sharded: Any = None  # set while the whole parameter stands in the module

    def stand(self, tensor: Any) -> None:
        """Puts a tensor where the parameter stands in its modules."""
        for module, name in self.places:
            module._parameters[name] = tensor

    @property
    def current(self) -> Any:
        """The sharded parameter."""
        if self.sharded is not None:
            return self.sharded
        module, name = self.places[0]
        return module._parameters[name]

    def parts_of(self, whole: Tensor, ranks: int) -> Tensor:
        """Views a whole parameter, padded to equal parts, as its parts one behind the other."""
        rows = self.part_shape[self.dim]
        return whole.unflatten(self.dim, (ranks, rows)).movedim(self.dim, 0)


class Packed:
    """What a graph keeps of a whole parameter: where it lies in the memory of its group."""

    __slots__ = ("group", "offset", "shape", "state", "stride")

    def __init__(self, group: ParamGroup, tensor: Tensor) -> None:
        self.group = group
        self.state = group.state
        self.shape, self.stride = tensor.shape, tensor.stride()
        self.offset = tensor.storage_offset()

    def unpack(self) -> Tensor:
        """Returns it, gathered anew if need be."""
        whole = self.group.gathered()
        if self.group.state != self.state:
            names = ", ".join(param.name for param in self.group.params[:3])
            raise RuntimeError(
                f"backward: sharded parameters ({names}, ...) were changed between forward and "
                "backward, which needs what they were. Call optimizer.step() after backward."
            )
        return whole.as_strided(self.shape, self.stride, self.offset)


class ParamGroup:
    """Parameters of one dtype.

    Args:
        params: name, places and parameter of each.
        shards: which dim of each is cut.
        ranks: which it is cut over.
        device: where whole parameters are.
        precision, offload: see fully_shard.
    """

    def __init__(
        self,
        params: Iterable[tuple[str, list[Place], Parameter]],
        shards: Iterable[Shard],
        ranks: ShardMesh,
        device: rl.device,
        precision: MixedPrecisionPolicy,
        offload: OffloadPolicy,
    ) -> None:
        self.ranks, self.device = ranks, device
        self.precision, self.offload = precision, offload
        self.params: list[ShardedParam] = []
        for (name, places, whole), shard in zip(params, shards, strict=True):
            param = ShardedParam(name, places, whole, shard, ranks)
            param.stand(self._cut(param, whole, shard))
            self.params.append(param)
        self.total = sum(param.count for param in self.params)
        self.whole: Tensor | None = None  # the memory of all whole parameters
        self.start = self.end = 0  # its addresses
        self.state: Any = None  # what the parts were when they were gathered
        self.pending_gather: tuple[Any, Tensor] | None = None
        self.token: Tensor | None = None  # ties _Whole to _Parts
        self.is_exposed = 0  # how many want the whole parameters in the modules
        self.syncs = True  # whether gradients are averaged
        self.reduces_copies = True  # over the copies of a mesh of two dims too
        self.divisor: float | None = None  # None is the number of ranks
        self.waiting: dict[ShardedParam, Tensor] = {}  # gradients of backwards that did not sync
        self.partly: Tensor | None = None  # gradients not reduced over copies yet
        self.reductions: list[Reduction] = []
        self.context: Any = None  # of _state.py

    def _cut(self, param: ShardedParam, whole: Parameter, shard: Shard) -> Parameter:
        """The parameter of which this rank has its part, from what all ranks have."""
        mesh, placements = self.ranks.layout(shard, whole)
        part = self._own_part(param, local_of(whole.detach()))
        if not part.is_meta:
            part = part.to(self._part_device, memory_format=rl.contiguous_format, copy=True)
            if self._is_pinned:
                part = part.pin_memory()
        return Parameter(
            wrap(part, DTensorSpec(mesh, placements, whole.shape)), whole.requires_grad
        )

    def _own_part(self, param: ShardedParam, whole: Tensor) -> Tensor:
        begin = min(self.ranks.rank * param.part_shape[param.dim], param.shape[param.dim])
        return whole.narrow(param.dim, begin, param.length)

    @property
    def _part_device(self) -> rl.device:
        return rl.device("cpu") if isinstance(self.offload, CPUOffloadPolicy) else self.device

    @property
    def _is_pinned(self) -> bool:
        is_offloaded = isinstance(self.offload, CPUOffloadPolicy) and self.offload.pin_memory
        return is_offloaded and self.device.type == "cuda"

    # Whole parameters

    def begin_gather(self, async_op: bool = True) -> None:
        """Begins to bring the parts of all ranks together, if that was not done."""
        if self.whole is not None or self.pending_gather is not None:
            return
        parts = [param.current._local_tensor.detach() for param in self.params]
        for param, part in zip(self.params, parts, strict=True):
            if part.is_meta:
                raise RuntimeError(
                    f"FSDP parameters should be materialized from meta device before training, but "
                    f"{param.name} is on meta device. Call to_empty(device=...), then initialize "
                    "or load the parameters."
                )
        self.state = self._state()
        dtype = self.precision.param_dtype or parts[0].dtype
        sent = rl.empty(self.total, dtype=dtype, device=self.device)
        own = sent.split([param.count for param in self.params])
        _C._foreach_copy_(
            [x[: part.numel()] for x, part in zip(own, parts, strict=True)],
            [part.reshape(-1) for part in parts],
        )
        work, received = None, sent
        if self.ranks.size > 1:
            received = rl.empty(self.ranks.size * self.total, dtype=dtype, device=self.device)
            work = dist.all_gather_into_tensor(received, sent, self.ranks.group, async_op)
        self.pending_gather = work, received

    def _state(self) -> Any:
        """What changes when the values of parts do."""
        return [(id(param.current), param.current._version) for param in self.params]

    def gathered(self) -> Tensor:
        """Returns the memory of all whole parameters, one behind the other, each padded."""
        if self.whole is None:
            with rl.no_grad():
                self.begin_gather(async_op=False)
                assert self.pending_gather is not None
                work, received = self.pending_gather
                if work is not None:
                    work.wait()
                self.pending_gather = None
                self.whole = self._laid_out(received)
            self.start = self.whole.data_ptr()
            self.end = self.start + self.whole.nbytes
            self.context.gathered[self] = None
        return self.whole

    def _laid_out(self, received: Tensor) -> Tensor:
        """Sorts what came rank by rank into parameter by parameter."""
        size = self.ranks.size
        if size == 1 or (len(self.params) == 1 and self.params[0].dim == 0):
            return received
        whole = rl.empty_like(received)
        by_rank = received.view(size, self.total)
        sources, targets = [], []
        at = 0
        for param, memory in zip(self.params, self._memories(whole), strict=True):
            sources.append(by_rank[:, at : at + param.count].unflatten(1, param.part_shape))
            targets.append(param.parts_of(memory, size))
            at += param.count
        _C._foreach_copy_(targets, sources)
        return whole

    def _memories(self, whole: Tensor) -> list[Tensor]:
        """The padded whole parameters in their memory."""
        size = self.ranks.size
        found = []
        for param, memory in zip(
            self.params, whole.split([size * p.count for p in self.params]), strict=True
        ):
            shape = list(param.part_shape)
            shape[param.dim] *= size
            found.append(memory.view(shape))
        return found

    def packed(self, tensor: Tensor) -> Packed | Tensor:
        """Returns what a graph keeps of a tensor in this memory."""
        assert self.whole is not None
        return Packed(self, tensor) if tensor.dtype == self.whole.dtype else tensor

    def forget(self) -> None:
        """Gives the memory of whole parameters back, as far as nobody else holds it."""
        if self.whole is not None:
            self.whole, self.start, self.end = None, 0, 0
            del self.context.gathered[self]
        if self.pending_gather is not None and self.pending_gather[0] is not None:
            self.pending_gather[0].wait()
        self.pending_gather = None

    def forget_if_changed(self) -> None:
        """Forgets whole parameters that are not what the parts are any more."""
        is_there = self.whole is not None or self.pending_gather is not None
        if is_there and self.state != self._state():
            self.forget()

    def expose(self) -> None:
        """Puts the whole parameters into the modules; those to be trained have a history."""
        if self.is_exposed:
            self.is_exposed += 1
            return
        whole = self.gathered()
        self.is_exposed = 1
        values = [
            memory.narrow(param.dim, 0, param.shape[param.dim])
            for param, memory in zip(self.params, self._memories(whole), strict=True)
        ]
        trained = self.trained
        if trained and rl.is_grad_enabled():
            by_param = dict(zip(self.params, values, strict=True))
            inputs = [by_param[param] for param in trained]
            outputs = _Whole.apply(self, self.tie(), trained, *inputs)
            by_param.update(zip(trained, outputs, strict=True))
            values = list(by_param.values())
        for param, value in zip(self.params, values, strict=True):
            param.sharded = param.current
            spec = param.whole_spec
            param.stand(value if spec is None else wrap(value, spec))

    def conceal(self) -> None:
        """Puts the sharded parameters back when nobody wants the whole ones any more."""
        if self.is_exposed == 1:
            for param in self.params:
                param.stand(param.sharded)
                param.sharded = None
        self.is_exposed = max(self.is_exposed - 1, 0)

    def summon(self, gets: bool, on_cpu: bool, with_grads: bool) -> None:
        """Puts whole parameters into the modules that can be read and written; see dismiss."""
        for param in self.params:
            part = param.current
            whole = part.detach().full_tensor()
            grad = part.grad.full_tensor() if with_grads and part.grad is not None else None
            if gets:
                made = Parameter(whole.cpu() if on_cpu else whole, part.requires_grad)
                made.grad = grad
                param.sharded = part
                param.stand(made)

    def dismiss(self, writes_back: bool) -> None:
        """Puts the sharded parameters back, with what was written to the whole ones."""
        for param in self.params:
            if param.sharded is None:
                continue
            module, name = param.places[0]
            if writes_back:
                own = self._own_part(param, module._parameters[name].detach())
                param.sharded._local_tensor.detach().copy_(own)
            param.stand(param.sharded)
            param.sharded = None

    # Gradients

    @property
    def trained(self) -> list[ShardedParam]:
        """The parameters that require grad now."""
        return [param for param in self.params if param.current.requires_grad]

    def tie(self) -> Tensor | None:
        """Returns what ties whole parameters to their parts in the graph; None without any."""
        trained = self.trained
        if self.token is None and trained:
            parts = (param.current._local_tensor for param in trained)
            self.token = _Parts.apply(self, trained, *parts)
        return self.token

    def take(self, params: list[ShardedParam], grads: Sequence[Tensor | None]) -> None:
        """Begins to average gradients of whole parameters, or keeps them for the next time."""
        for param, grad in zip(params, grads, strict=True):
            if grad is not None:
                kept = self.waiting.get(param)
                if not self.syncs and self.precision.reduce_dtype is not None:
                    grad = grad.to(self.precision.reduce_dtype)
                self.waiting[param] = grad if kept is None else kept + grad
        if self.syncs and self.waiting:
            found, self.waiting = self.waiting, {}
            last = self.context.last_reduction
            if last is not None:
                last.wait()  # so that whole gradients of one group at most wait for the network
            self.context.last_reduction = Reduction(self, found)
            self.reductions.append(self.context.last_reduction)

    def finish(self, params: list[ShardedParam]) -> list[Tensor | None]:
        """Waits for all reductions and returns the gradients of the parts."""
        totals: dict[ShardedParam, Tensor] = {}
        reductions, self.reductions = self.reductions, []
        for reduction in reductions:
            for param, grad in reduction.results():
                totals[param] = totals[param] + grad if param in totals else grad
        return [totals.get(param) for param in params]


class Reduction:
    """A reduce_scatter of the gradients of some parameters of a group, under way.

    Args:
        group: whose parameters they are.
        grads: of whole parameters.
    """

    def __init__(self, group: ParamGroup, grads: dict[ShardedParam, Tensor]) -> None:
        self.group = group
        self.params = [param for param in group.params if param in grads]
        self.counts = [param.count for param in self.params]
        size, total = group.ranks.size, sum(self.counts)
        first = grads[self.params[0]]
        dtype = group.precision.reduce_dtype or first.dtype
        flat = rl.empty(size * total, dtype=dtype, device=first.device)
        by_rank = flat.view(size, total)
        targets, sources = [], []
        at = 0
        for param in self.params:
            targets.append(by_rank[:, at : at + param.count].unflatten(1, param.part_shape))
            sources.append(param.parts_of(_padded(grads[param], param, size), size))
            at += param.count
        _C._foreach_copy_(targets, sources)
        self.work, self.result = None, flat
        if size > 1:
            self.result = rl.empty(total, dtype=dtype, device=first.device)
            op = dist.ReduceOp.AVG if group.divisor is None else dist.ReduceOp.SUM
            self.work = dist.reduce_scatter_tensor(self.result, flat, op, group.ranks.group, True)

    def wait(self) -> None:
        """Waits for the reduce_scatter, and lets the whole gradients go."""
        if self.work is not None:
            self.work.wait()
            self.work = None

    def results(self) -> Iterable[tuple[ShardedParam, Tensor]]:
        """Waits, and returns the gradients of the parts."""
        group, result = self.group, self.result
        self.wait()
        if group.ranks.copies is not None:
            if group.partly is not None:
                result += group.partly
                group.partly = None
            if not group.reduces_copies:
                group.partly = result
                return
            op = dist.ReduceOp.AVG if group.divisor is None else dist.ReduceOp.SUM
            dist.all_reduce(result, op, group.ranks.copies)
        if group.divisor is not None:
            result /= group.divisor
        for param, flat in zip(self.params, result.split(self.counts), strict=True):
            part = param.current
            grad = flat.view(param.part_shape).narrow(param.dim, 0, param.length)
            # A copy, so that a gradient that is kept does not keep those of the whole group.
            yield param, grad.to(part.dtype, copy=True).to(part._local_tensor.device)


def _padded(grad: Tensor, param: ShardedParam, size: int) -> Tensor:
    missing = param.part_shape[param.dim] * size - grad.shape[param.dim]
    if not missing:
        return grad
    shape = [missing if i == param.dim else n for i, n in enumerate(grad.shape)]
    return rl.cat([grad, grad.new_zeros(shape)], param.dim)


class _Parts(Function):
    """From the parts of a group to a token; waits in backward for what _Whole began."""

    @staticmethod
    def forward(ctx: Any, group: ParamGroup, params: list[ShardedParam], *parts: Tensor) -> Tensor:
        ctx.group, ctx.params = group, params
        return rl.zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *ctx.group.finish(ctx.params)


class _Whole(Function):
    """From the token of a group to its whole parameters; begins to average gradients."""

    @staticmethod
    def forward(
        ctx: Any, group: ParamGroup, token: Tensor, params: list[ShardedParam], *whole: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.group, ctx.params = group, params
        ctx.set_materialize_grads(False)
        return tuple(x.detach() for x in whole)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        ctx.group.take(ctx.params, grads)
        return None, rl.zeros(()), None, *(None,) * len(grads)
