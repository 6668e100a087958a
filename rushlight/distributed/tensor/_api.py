"""DTensor: one tensor whose parts are on the ranks of a mesh.

The core sees this rank's part and nothing else: gradients, hooks, optimizers and memory are the
part's. The class adds the layout, answers questions about shapes for the whole tensor, and takes
over ops (_dispatch.py). Backward therefore needs no knowledge of it: what moves data between ranks
records how its gradient moves (_redistribute.py).
"""

# pyright: reportIncompatibleVariableOverride=false
# Attributes of the part are properties here.

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, serialization
from rushlight import distributed as dist
from rushlight.distributed.device_mesh import DeviceMesh, current_mesh, unpickled_mesh
from rushlight.distributed.tensor._dtensor_spec import (
    DTensorSpec,
    gradient_placements,
    normalized,
)
from rushlight.distributed.tensor._redistribute import move
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from rushlight.nn.parameter import Parameter
from rushlight.utils.hooks import RemovableHandle

__all__ = ["DTensor", "wrap"]


class DTensor(Tensor):
    """A tensor whose parts, copies or addends are on the ranks of a mesh.

    Made by distribute_tensor, from_local and the factories beside them. Ops give what they would
    give for the whole tensor; all ranks of the mesh must call them alike.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> Shard = torch.distributed.tensor.Shard
        >>> x = torch.distributed.tensor.distribute_tensor(torch.eye(2), mesh, [Shard(0)])
        >>> x.sum(1).placements
        (Shard(dim=0),)
        >>> x.sum().full_tensor()
        tensor(2.)
        >>> torch.distributed.destroy_process_group()
    """

    _spec: DTensorSpec

    _hears_attributes = False

    def __new__(
        cls, local_tensor: Tensor, spec: DTensorSpec, *, requires_grad: bool = False
    ) -> DTensor:
        """Returns a leaf of which this rank has that part, as libraries make them.

        Args:
            local_tensor: the part, whose memory the result shares.
            spec: the layout.
            requires_grad: of the result.
        """
        made = Tensor._make_subclass(cls, local_tensor.detach(), requires_grad)
        return _with_spec(made, spec)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        from rushlight.distributed.tensor._dispatch import dispatch

        return dispatch(func, args, kwargs or {})

    # The layout

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """Returns the tensor of which each rank gives its part; gradients flow back to the part.

        Args:
            local_tensor: this rank's part, whose memory the result shares.
            device_mesh: the ranks.
            placements: how it lies; copies on all ranks by default.
            run_check: copies what is replicated from the first rank.
            shape: of the whole; needed if the parts are not all as large as this one.
            stride: goes with shape; it has no effect, parts lie as they are.
            grad_placements: how the gradient of the part is to lie; like the part by default.

        Raises:
            RuntimeError: if local_tensor is a DTensor, or only one of shape and stride is given.
            ValueError: if the part does not have the shape that is this rank's.
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(
                "the local_tensor argument only accepts torch.Tensor but got "
                f"{type(local_tensor)} value."
            )
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. Please pass both shape and stride at the "
                "same time."
            )
        mesh = mesh_of("from_local", device_mesh)
        if local_tensor.device.type != mesh.device_type and not local_tensor.is_meta:
            local_tensor = local_tensor.to(mesh.device_type)
        places = normalized("from_local", placements, mesh, local_tensor.dim())
        if shape is None:
            sizes = list(local_tensor.shape)
            for m, placement in enumerate(places):
                if isinstance(placement, Shard):
                    sizes[placement.dim] *= mesh.size(m)
            shape = sizes
        spec = DTensorSpec(mesh, places, rl.Size(shape))
        if local_tensor.shape != spec.local_shape():
            raise ValueError(
                f"from_local: a tensor of shape {tuple(shape)} in {places} has parts of shape "
                f"{tuple(spec.local_shape())} on this rank, but got {tuple(local_tensor.shape)}."
            )
        if run_check:
            local_tensor = local_tensor.contiguous()
            for m, placement in enumerate(places):
                if placement.is_replicate():
                    group = mesh.get_group(m)
                    dist.broadcast(local_tensor.detach(), group=group, group_src=0)
        if grad_placements is not None:
            grad_to = normalized("from_local", grad_placements, mesh, local_tensor.dim())
            local_tensor = move(local_tensor, spec, places, grad_to=grad_to)
        return wrap(local_tensor, spec)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Returns this rank's part; gradients flow back.

        Args:
            grad_placements: how the part's gradient will lie, if not like the tensor: Partial() for
                a copy of which each rank makes something else.
        """
        grad_from = None
        if grad_placements is not None:
            grad_from = normalized("to_local", grad_placements, self.device_mesh, self.dim())
        return move(self._local_tensor, self._spec, self.placements, grad_from)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: rl.dtype | None = None,
        backward_dtype: rl.dtype | None = None,
    ) -> DTensor:
        """Returns the same tensor in other placements; gradients flow back.

        Args:
            device_mesh: the tensor's own.
            placements: one for each dim of the mesh.
            async_op: has no effect; the result is there when this returns.
            forward_dtype: what the result is converted to, before it moves.
            backward_dtype: must be the tensor's own dtype.

        Raises:
            RuntimeError: without placements, and for a Partial that the tensor does not have.
        """
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if backward_dtype not in (None, self.dtype):
            raise NotImplementedError(
                f"redistribute: backward_dtype is {backward_dtype}, but gradients move in the "
                f"tensor's dtype, {self.dtype}."
            )
        wanted = normalized("redistribute", placements, self.device_mesh, self.dim())
        for old, new in zip(self.placements, wanted, strict=True):
            if new.is_partial() and old != new:
                raise RuntimeError(
                    f"Can not redistribute from {old} to {new}, redistributing to Partial is for "
                    "internal use only!"
                )
        local = self._local_tensor
        local = local if forward_dtype is None else local.to(forward_dtype)
        moved = move(local, self._spec, wanted)
        return wrap(moved, DTensorSpec(self.device_mesh, wanted, self.shape))

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Returns the whole tensor, on all ranks; gradients flow back.

        Args:
            grad_placements: how the result's gradient will lie; Replicate() by default.
        """
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    @property
    def _local_tensor(self) -> Tensor:
        """This rank's part, on the same memory; gradients flow through it."""
        return self.as_subclass(Tensor)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How the tensor lies along each dim of the mesh."""
        return self._spec.placements

    # What is asked of the whole tensor

    @property
    def shape(self) -> rl.Size:
        """The sizes of the whole tensor."""
        return self._spec.shape

    def size(self, dim: int | None = None) -> Any:
        """Returns the sizes of the whole tensor, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """Returns the number of elements of the whole tensor."""
        return self.shape.numel()

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """Returns the strides that the whole tensor would have, laid out like the part."""
        strides = list(self._local_tensor.stride())
        local = list(self._local_tensor.shape)
        for d in {p.dim for p in self.placements if isinstance(p, Shard)}:
            for i, stride in enumerate(strides):
                if local[d] and i != d and stride >= local[d] * strides[d] > 0:
                    strides[i] = stride // local[d] * self.shape[d]
        return tuple(strides) if dim is None else strides[dim]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def item(self) -> Any:
        """Returns the number of a tensor with one element."""
        return self.full_tensor().item()

    def tolist(self) -> Any:
        """Returns the elements of the whole tensor."""
        return self.full_tensor().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Returns a copy of the whole tensor as an array."""
        return self.full_tensor().numpy(force=force)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.full_tensor().__array__(dtype, copy)

    def __bool__(self) -> bool:
        return bool(self.full_tensor())

    def __int__(self) -> int:
        return int(self.full_tensor())

    def __float__(self) -> float:
        return float(self.full_tensor())

    def __index__(self) -> int:
        return self.full_tensor().__index__()

    def __format__(self, format_spec: str) -> str:
        return format(self.item() if self.dim() == 0 else str(self), format_spec)

    def __repr__(self, **kwargs: Any) -> str:
        local = self._local_tensor.detach().__repr__(**kwargs)
        return (
            f"DTensor(local_tensor={local}, device_mesh={self.device_mesh}, "
            f"placements={self.placements})"
        )

    # Gradients and copies

    @property
    def grad(self) -> DTensor | None:
        """The gradient that backward has added up, in the same layout; None if there is none."""
        grad = _grad.__get__(self)
        return None if grad is None else wrap(grad, self._gradient_spec)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if isinstance(value, DTensor):
            value = value.redistribute(placements=self._gradient_spec.placements)._local_tensor
        elif value is not None:
            raise TypeError("DTensor: assigned grad must be a DTensor. See distribute_tensor.")
        _grad.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        _grad.__set__(self, None)

    @property
    def _gradient_spec(self) -> DTensorSpec:
        return DTensorSpec(self.device_mesh, gradient_placements(self.placements), self.shape)

    @property
    def data(self) -> DTensor:
        """The tensor without its history, on the same memory."""
        return wrap(self._local_tensor.detach(), self._spec)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, DTensor):
            raise TypeError("DTensor: assigned data must be a DTensor. See distribute_tensor.")
        _data.__set__(self, value._local_tensor)
        self._spec = value._spec

    def backward(
        self,
        gradient: Tensor | Sequence[Tensor | None] | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | Tensor | None = None,
    ) -> None:
        """Computes gradients as Tensor.backward does; all ranks of the mesh must call it.

        Args:
            gradient: a DTensor, also as the one item of a list.
            retain_graph, create_graph, inputs: see Tensor.backward.
        """
        if isinstance(gradient, (list, tuple)) and len(gradient) == 1:
            (gradient,) = gradient
        if isinstance(gradient, DTensor):
            gradient = gradient.redistribute(placements=self._gradient_spec.placements)
            gradient = gradient._local_tensor
        super().backward(gradient, retain_graph, create_graph, inputs)

    def register_hook(self, hook: Callable[[DTensor], Tensor | None]) -> RemovableHandle:
        """Calls a function with the gradient, in the layout of grad, as Tensor.register_hook does.

        What it returns is brought into that layout.
        """
        spec = self._gradient_spec

        def on_part(grad: Tensor) -> Tensor | None:
            made = hook(wrap(grad, spec))
            if isinstance(made, DTensor):
                made = made.redistribute(placements=spec.placements)._local_tensor
            return made

        return super().register_hook(on_part)

    def _as_parameter(self, requires_grad: bool) -> Parameter:
        """What nn.Parameter makes of it."""
        local = self._local_tensor.detach()
        return _with_spec(Tensor._make_subclass(DTensorParameter, local, requires_grad), self._spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError(
                    "Only Tensors created explicitly by the user (graph leaves) support the "
                    "deepcopy protocol at the moment. Use .detach().clone()."
                )
            local = self._local_tensor.detach().clone()
            made = Tensor._make_subclass(type(self), local, self.requires_grad)
            memo[id(self)] = _with_spec(made, self._spec)
            if self.grad is not None:
                made.grad = copy.deepcopy(self.grad, memo)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A pickle has this rank's part, and what is known of the whole."""
        placements = [(type(p).__name__, *vars(p).values()) for p in self.placements]
        mesh = self.device_mesh.__reduce__()[1]
        is_parameter = isinstance(self, Parameter)
        known = mesh, placements, tuple(self.shape), self.requires_grad, is_parameter
        return _unpickled, (self._local_tensor.detach(), *known)


class DTensorParameter(DTensor, Parameter):
    """What nn.Parameter(dtensor) is."""


def _unpickled(
    local: Tensor,
    mesh: tuple[Any, ...],
    placements: list[tuple[Any, ...]],
    shape: tuple[int, ...],
    requires_grad: bool,
    is_parameter: bool,
) -> DTensor:
    """The tensor of which this rank pickled its part."""
    kinds = {kind.__name__: kind for kind in (Shard, Replicate, Partial)}
    places = tuple(kinds[name](*facts) for name, *facts in placements)
    spec = DTensorSpec(unpickled_mesh(*mesh), places, rl.Size(shape))
    if is_parameter:
        return _with_spec(Tensor._make_subclass(DTensorParameter, local, requires_grad), spec)
    return _with_spec(local.as_subclass(DTensor).requires_grad_(requires_grad), spec)


serialization._own_globals[f"{__name__}._unpickled"] = _unpickled

# Of this rank's part.
_grad: Any = Tensor.grad
_data: Any = Tensor.data


def _with_spec(tensor: Any, spec: DTensorSpec) -> Any:
    tensor._spec = spec
    return tensor


def wrap(local: Tensor, spec: DTensorSpec) -> DTensor:
    """Returns the tensor of which this rank has that part."""
    return _with_spec(local.as_subclass(DTensor), spec)


def local_of(value: Any) -> Any:
    """Returns this rank's part of a DTensor; anything else as it is."""
    return value._local_tensor if isinstance(value, DTensor) else value


def mesh_of(function: str, mesh: DeviceMesh | None) -> DeviceMesh:
    """Returns a mesh, that of the innermost with block if none is given.

    Raises:
        RuntimeError: if there is none.
    """
    mesh = current_mesh() if mesh is None else mesh
    if mesh is None:
        raise RuntimeError(
            f"{function}: needs a device_mesh. Make one with init_device_mesh, and pass it or "
            "enter it in a with block."
        )
    return mesh
