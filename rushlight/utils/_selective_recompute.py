"""Regions of which some results are kept: a policy chooses by op what is not computed again.

Ops are seen as the functions that a program calls (rushlight.overrides.TorchFunctionMode). When an
op whose result was kept comes up again, it does not run: its result is handed out, and what it
would have saved for backward is put together from that result and its arguments, in the same order;
anything else that it saved was kept with the result. What is kept can go through the hooks of saved
tensors that surround the checkpoint.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import function_of
from rushlight._storage import memory_of
from rushlight.overrides import TorchFunctionMode
from rushlight.random import get_rng_state, set_rng_state
from rushlight.utils._pytree import tensor_leaves, tree_map_only
from rushlight.utils._recompute import Frame, running


class CheckpointPolicy(enum.Enum):
    """What becomes of the result of an op in a selectively checkpointed region.

    MUST and PREFER do the same here; the CPU_OFFLOAD ones keep the result in the CPU's memory.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVE = {CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE}
_OFFLOAD = {CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD}

# Ops that look at a tensor only: policies are not asked about them.
SAC_IGNORED_OPS: set[Callable[..., Any]] = {
    getattr(Tensor, name)
    for name in ("detach", "size", "stride", "numel", "dim", "is_contiguous", "storage_offset")
}
_IGNORED_NAMES = {getattr(op, "__name__", "") for op in SAC_IGNORED_OPS}


class SelectiveCheckpointContext:
    """What a policy learns about an op, besides its arguments.

    Attributes:
        is_recompute: whether the op runs for backward; False, as policies are asked once.
        op_output: what the op returned.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., CheckpointPolicy | bool] | Sequence[Callable[..., Any]],
    allow_cache_entry_mutation: bool = False,
) -> tuple[TorchFunctionMode, TorchFunctionMode]:
    """Returns the two contexts of a checkpoint that keeps the results of some ops.

    Ops are functions as the program calls them: `x @ w` is torch.matmul, methods are the functions
    of the same name. Ops that return a window on an argument, and ops in place, always run again.

    Args:
        policy_fn_or_list: the ops whose results are kept, or a function that gets a
            SelectiveCheckpointContext, the op, and its arguments, and returns a CheckpointPolicy.
        allow_cache_entry_mutation: lets results that were kept be written in place, which makes
            gradients wrong where the old values were meant.

    Raises:
        TypeError: neither a function nor a list.
        ValueError: the list contains what is no function.

    Example:
        >>> from functools import partial
        >>> from rushlight.utils.checkpoint import (
        ...     checkpoint, create_selective_checkpoint_contexts)
        >>> keep_products = partial(create_selective_checkpoint_contexts, [torch.matmul])
        >>> w = torch.ones(2, 2, requires_grad=True)
        >>> y = checkpoint(lambda w: (w @ w).exp().sin(), w, use_reentrant=False,
        ...                context_fn=keep_products)
        >>> y.sum().backward()
    """
    if isinstance(policy_fn_or_list, (list, tuple, set, frozenset)):
        for op in policy_fn_or_list:
            if not callable(op):
                raise ValueError(
                    "create_selective_checkpoint_contexts: the list of ops contains "
                    f"{op!r} of type {type(op).__name__}. Items must be functions like torch.mm."
                )
        # An operator of torch.ops.aten computes with a function of that name.
        names = {getattr(op, "_opname", getattr(op, "__name__", None)) for op in policy_fn_or_list}

        policy: Callable[..., Any] = lambda ctx, op, *args, **kwargs: op.__name__ in names  # noqa: E731
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    ops: list[_Op] = []
    return _Keep(policy, ops), _Replay(ops, allow_cache_entry_mutation)


@dataclass
class _Window:
    """A saved tensor that looks into the memory of an argument or of the result."""

    of_result: bool
    place: int
    layout: tuple[Any, Any, int]  # size, strides, offset


@dataclass
class _Packed:
    """A tensor that was kept, as a hook of saved tensors packed it."""

    value: Any
    unpack: Callable[[Any], Tensor]


@dataclass
class _Op:
    """An op of the first run; one that is computed again has no kept result."""

    name: str
    result: Any = None
    versions: tuple[int, ...] = ()
    requires_grad: tuple[bool, ...] = ()
    devices: tuple[Any, ...] = ()
    saved: tuple[_Window | Tensor | _Packed, ...] = ()
    rng_state: Tensor | None = None  # after an op that drew random numbers
    is_kept: bool = False


class _Keep(TorchFunctionMode):
    """Asks the policy about each op of the first run, and keeps what it wants kept."""

    _hears_attributes = False

    def __init__(self, policy: Callable[..., Any], ops: list[_Op]) -> None:
        self.policy = policy
        self.ops = ops

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        func = function_of(func)
        kwargs = kwargs or {}
        frame = running.passes[-1] if running.passes else None
        if func.__name__ in _IGNORED_NAMES or not isinstance(frame, Frame):
            return func(*args, **kwargs)
        state = get_rng_state()
        outer, frame.seen = frame.seen, []
        try:
            result = func(*args, **kwargs)
        finally:
            saved, frame.seen = frame.seen, outer
        if outer is not None:
            outer.extend(saved)
        ctx = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        wanted = self.policy(ctx, func, *args, **kwargs)
        if isinstance(wanted, bool):
            wanted = CheckpointPolicy.MUST_SAVE if wanted else CheckpointPolicy.PREFER_RECOMPUTE
        op = _Op(func.__name__)
        inputs, outputs = tensor_leaves((args, kwargs)), tensor_leaves(result)
        if wanted in _SAVE | _OFFLOAD and not _overlap(inputs, outputs):
            _keep(op, result, inputs, outputs, saved, wanted in _OFFLOAD)
            if frame.hooks is not None:
                _pack(op, *frame.hooks)
            after = get_rng_state()
            op.rng_state = None if rl.equal(state, after) else after
        self.ops.append(op)
        return result


class _Replay(TorchFunctionMode):
    """Hands out what was kept, in the order of the first run."""

    _hears_attributes = False

    def __init__(self, ops: list[_Op], allow_mutation: bool) -> None:
        self.ops = ops
        self.allow_mutation = allow_mutation
        self.next = 0

    def __enter__(self) -> _Replay:
        self.next = 0
        return super().__enter__()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        func = function_of(func)
        kwargs = kwargs or {}
        if func.__name__ in _IGNORED_NAMES:
            return func(*args, **kwargs)
        op = self.ops[self.next] if self.next < len(self.ops) else None
        self.next += 1
        if op is None or not op.is_kept or op.name != func.__name__:
            return func(*args, **kwargs)
        if not self.allow_mutation and op.versions != _versions(op.result):
            raise RuntimeError(
                f"Tensor cached during selective activation checkpoint has been mutated: the "
                f"result of {op.name} was written in place. Write to a clone, leave {op.name} out "
                "of what is saved, or pass allow_cache_entry_mutation=True."
            )
        marks = iter(zip(op.requires_grad, op.devices, strict=True))

        def fresh(kept: Tensor | _Packed) -> Tensor:
            requires_grad, device = next(marks)
            own = _unpacked(kept).to(device).detach().requires_grad_(requires_grad)
            return own.clone() if self.allow_mutation else own  # a leaf cannot be written to

        result = tree_map_only((Tensor, _Packed), fresh, op.result)
        inputs, outputs = tensor_leaves((args, kwargs)), tensor_leaves(result)
        for item in op.saved:
            looks = isinstance(item, _Window)
            saved = _look_into(item, inputs, outputs) if looks else _unpacked(item)
            running.passes[-1].pack(saved)
        if op.rng_state is not None:
            set_rng_state(op.rng_state)
        return result


def _keep(
    op: _Op,
    result: Any,
    inputs: list[Tensor],
    outputs: list[Tensor],
    saved: list[Tensor],
    offload: bool,
) -> None:
    op.is_kept = True
    op.result = tree_map_only(Tensor, lambda t: t.detach().cpu() if offload else t.detach(), result)
    op.versions = _versions(op.result)
    op.requires_grad = tuple(tensor.requires_grad for tensor in outputs)
    op.devices = tuple(tensor.device for tensor in outputs)
    op.saved = tuple(_window(tensor, inputs, outputs) for tensor in saved)


def _pack(op: _Op, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
    """Sends what an op keeps through hooks of saved tensors."""
    to_packed = lambda tensor: _Packed(pack(tensor), unpack)  # noqa: E731
    op.result = tree_map_only(Tensor, to_packed, op.result)
    op.versions = ()  # nothing else can write to what was packed
    op.saved = tuple(to_packed(item) if isinstance(item, Tensor) else item for item in op.saved)


def _unpacked(kept: Tensor | _Packed) -> Tensor:
    return kept.unpack(kept.value) if isinstance(kept, _Packed) else kept


def _window(tensor: Tensor, inputs: list[Tensor], outputs: list[Tensor]) -> _Window | Tensor:
    """Where a saved tensor will be found again, or the tensor itself if it is neither."""
    for of_result, group in ((True, outputs), (False, inputs)):
        for place, other in enumerate(group):
            if tensor.dtype == other.dtype and memory_of(tensor) == memory_of(other):
                offset = tensor.storage_offset() - other.storage_offset()
                return _Window(of_result, place, (tensor.size(), tensor.stride(), offset))
    return tensor.detach()


def _look_into(window: _Window, inputs: list[Tensor], outputs: list[Tensor]) -> Tensor:
    tensor = (outputs if window.of_result else inputs)[window.place].detach()
    size, stride, offset = window.layout
    if (tensor.size(), tensor.stride(), 0) == window.layout:
        return tensor
    return tensor.as_strided(size, stride, tensor.storage_offset() + offset)


def _overlap(inputs: list[Tensor], outputs: list[Tensor]) -> bool:
    memories = {memory_of(tensor) for tensor in inputs if tensor.numel()}
    return any(memory_of(tensor) in memories for tensor in outputs if tensor.numel())


def _versions(value: Any) -> tuple[int, ...]:
    return tuple(tensor._version for tensor in tensor_leaves(value))
