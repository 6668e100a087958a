"""How a checkpointed region forgets what its ops save, and computes it again for backward.

While the region runs, each tensor that an op would save is replaced by its number (Frame.pack). The
first number that backward asks for runs the region again, up to the last tensor that was saved, and
keeps those by the same numbers; each is dropped when it was handed out. What makes this right is
that the region saves the same tensors in the same order both times, which is checked. The arguments
are saved tensors of a node of their own, made outside the region: regions that are nested forget
the arguments of those inside, too, and writes to an argument in place are noticed. Inside vmap the
ops save all samples at once; the region runs again at the levels that were open when it ran first.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeAlias

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._overridable import function_of
from rushlight.amp.autocast_mode import RestoredAutocast
from rushlight.autograd import Function
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.overrides import TorchFunctionMode
from rushlight.random import fork_rng, get_rng_state, set_rng_state

Metadata: TypeAlias = tuple[Any, Any, Any]
Contexts: TypeAlias = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]

_PACKAGE = str(Path(rl.__file__).parent) + "/"


class CheckpointError(RuntimeError):
    """What a checkpointed function saves was not the same when it ran again."""


class _EnoughError(BaseException):
    """Ends a recomputation that has everything; not an Exception, which a region may catch."""


class _Number:
    """Stands in a node for a tensor that was not kept."""

    __slots__ = ("__weakref__", "frame", "index")

    def __init__(self, frame: Frame, index: int) -> None:
        self.frame = frame
        self.index = index


class _Running(threading.local):
    """The regions that this thread runs or recomputes now, the innermost last."""

    def __init__(self) -> None:
        self.passes: list[Frame | Recomputation] = []
        self.group: set[Frame] | None = None


running = _Running()


class _KeepArguments(Function):
    """Saves tensors on the tape, for whoever unpacks them from its node."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return rl.empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise AssertionError("the arguments of a checkpoint were differentiated")


class Frame:
    """One call of a checkpointed function.

    Args:
        function: the region.
        args: its arguments; tensors among them are kept as saved tensors.
        kwargs: its keyword arguments.
        contexts: makes the contexts of the first run and of the others.
        hooks: what packs and unpacks the results that a policy keeps; None keeps them as they are.
        preserve_rng_state: whether the other runs draw the same random numbers.
        compares: whether shapes, dtypes and devices are compared.
        early_stop: whether the others end with the last tensor that was saved.
        debug: notes all ops for the message.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        contexts: Contexts,
        hooks: tuple[Callable[..., Any], Callable[..., Any]] | None,
        preserve_rng_state: bool,
        compares: bool,
        early_stop: bool,
        debug: bool,
    ) -> None:
        self.function = function
        self.kwargs = kwargs
        self.hooks = hooks
        self.compares = compares
        self.early_stop = early_stop
        self.forward_context, self.recompute_context = contexts()
        self.rng_state = get_rng_state() if preserve_rng_state else None
        self.autocast = RestoredAutocast()
        self.log = OpLog() if debug else None
        self.lock = threading.RLock()
        self.numbers: list[weakref.ref[_Number]] = []
        self.metadata: list[Metadata] = []
        self.recomputed: dict[int, Tensor] = {}
        self.complete = False
        self.seen: list[Tensor] | None = None  # what the op that runs saves, when somebody asks
        self.levels, *_ = _C._levels()
        # Those of a vmap have no history of their own that could keep them.
        self.lifted = [(arg, _bottom(arg)._version) for arg in args if _bottom(arg) is not arg]
        is_tensor = [isinstance(arg, rl.Tensor) and _bottom(arg) is arg for arg in args]
        self.rest = [None if tensor else arg for arg, tensor in zip(args, is_tensor, strict=True)]
        self.tensor_places = [place for place, tensor in enumerate(is_tensor) if tensor]
        anchor = rl.empty(0, requires_grad=True)
        kept = _KeepArguments.apply(anchor, *(args[place] for place in self.tensor_places))
        self.keeper: Any = kept.grad_fn

    @contextlib.contextmanager
    def first_run(self) -> Iterator[None]:
        """Runs the region without keeping what its ops save."""
        hooks = saved_tensors_hooks(self.pack, _unpack)
        running.passes.append(self)
        try:
            with hooks, self.log or contextlib.nullcontext(), self.forward_context:
                yield
        finally:
            running.passes.pop()
        self.complete = True

    def pack(self, tensor: Tensor) -> _Number:
        number = _Number(self, len(self.numbers))
        self.numbers.append(weakref.ref(number))
        self.metadata.append(_metadata(tensor))
        if self.seen is not None:
            self.seen.append(tensor)
        return number

    def unpack(self, index: int) -> Tensor:
        """The tensor of a number, from the last recomputation or a new one."""
        with self.lock:
            if index not in self.recomputed:
                self._run_again()
            if running.group is None:
                return self.recomputed.pop(index)
            running.group.add(self)
            return self.recomputed[index]

    def arguments(self) -> list[Any]:
        args = list(self.rest)
        for place, tensor in zip(self.tensor_places, self.keeper.saved_tensors, strict=True):
            args[place] = tensor
        for tensor, version in self.lifted:
            if _bottom(tensor)._version != version:
                raise RuntimeError(
                    "checkpoint: one of the variables needed for gradient computation has been "
                    "modified by an inplace operation: an argument of the checkpointed function, "
                    f"of shape {tuple(tensor.shape)}. Clone it before."
                )
        return args

    def _run_again(self) -> None:
        args = self.arguments()
        again = Recomputation(self)
        hooks = saved_tensors_hooks(again.pack, lambda tensor: tensor)
        running.passes.append(again)
        levels = _C._exchange_levels(self.levels)
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(hooks)
                stack.enter_context(rl.enable_grad())
                stack.enter_context(self.autocast)
                if self.rng_state is not None:
                    stack.enter_context(fork_rng())
                    set_rng_state(self.rng_state)
                if again.log is not None:
                    stack.enter_context(again.log)
                stack.enter_context(self.recompute_context)
                self.function(*args, **self.kwargs)
        except _EnoughError:
            pass
        finally:
            _C._exchange_levels(levels)
            running.passes.pop()
        if self.complete:
            again.compare()


class Recomputation:
    """One more run of a frame's region, which collects what its ops save."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.metadata: list[Metadata] = []
        self.log = OpLog() if frame.log is not None else None

    def pack(self, tensor: Tensor) -> Tensor:
        frame, index = self.frame, len(self.metadata)
        if index >= len(frame.numbers):
            if frame.complete:
                raise self.error(
                    "trying to save more tensors during recomputation than during the original "
                    f"forward pass, which saved {len(frame.numbers)}."
                )
            return tensor  # the region calls backward itself, and is not over yet
        self.metadata.append(_metadata(tensor))
        if frame.numbers[index]() is not None:
            frame.recomputed[index] = tensor.detach()
        if frame.early_stop and len(self.metadata) == len(frame.numbers):
            raise _EnoughError
        return tensor

    def compare(self) -> None:
        """Raises CheckpointError where this run saved other tensors than the first."""
        before, now = self.frame.metadata, self.metadata
        if len(before) != len(now):
            raise self.error(
                "A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(before)}\n"
                f"Number of tensors saved during recomputation: {len(now)}."
            )
        if not self.frame.compares:
            return
        differing = [
            f"tensor at position {i}:\n"
            f"saved metadata: {_in_words(first)}\nrecomputed metadata: {_in_words(second)}"
            for i, (first, second) in enumerate(zip(before, now, strict=True))
            if first != second
        ]
        if differing:
            raise self.error(
                "Recomputed values for the following tensors have different metadata than during "
                "the forward pass.\n" + "\n".join(differing)
            )

    def error(self, what: str) -> CheckpointError:
        self.frame.recomputed.clear()
        name = getattr(self.frame.function, "__qualname__", None) or type(self.frame.function)
        text = (
            f"torch.utils.checkpoint: {what}\nThe checkpointed function, {name}, must compute the "
            "same each time it runs: it must not depend on a counter, a global that changes, the "
            "time, or random numbers from elsewhere than rushlight (preserve_rng_state=True "
            "repeats those)."
        )
        if self.frame.log is None or self.log is None:
            return CheckpointError(text + "\nPass debug=True to see the ops of both runs.")
        return CheckpointError(text + "\n" + self.frame.log.against(self.log))


def _bottom(value: Any) -> Any:
    """The plain tensor behind one that is lifted; another value itself."""
    while isinstance(value, rl.Tensor) and (lift := _C._lift_of(value)) is not None:
        value = lift[2]
    return value


def _unpack(number: _Number) -> Tensor:
    return number.frame.unpack(number.index)


def _metadata(tensor: Tensor) -> Metadata:
    return tensor.shape, tensor.dtype, tensor.device


def _in_words(metadata: Metadata) -> str:
    return str(dict(zip(("shape", "dtype", "device"), metadata, strict=True)))


class OpLog(TorchFunctionMode):
    """Notes which ops run, what they return, and which line called them."""

    _hears_attributes = False

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sites: list[str] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        func = function_of(func)
        self.lines.append(f"{func.__name__}: did not return")
        self.sites.append(_call_site())
        place = len(self.lines) - 1
        result = func(*args, **(kwargs or {}))
        returned = result if isinstance(result, (tuple, list)) else [result]
        words = [
            f"{tuple(item.shape)} {str(item.dtype).removeprefix('torch.')}"
            if isinstance(item, rl.Tensor)
            else type(item).__name__
            for item in returned
        ]
        self.lines[place] = f"{func.__name__} -> {', '.join(words)}"
        return result

    def against(self, later: OpLog) -> str:
        """Both logs as text, with an arrow where they begin to differ."""
        pairs = zip(self.lines, later.lines, strict=False)
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        return "\n".join(
            [
                "Operations executed during the original forward:",
                *self._rows(shared),
                "Operations executed during recomputation (it ends with the last tensor saved):",
                *later._rows(shared),
            ]
        )

    def _rows(self, shared: int) -> list[str]:
        return [
            f"{'->' if i == shared else '  '} {line}  ({site})"
            for i, (line, site) in enumerate(zip(self.lines, self.sites, strict=True))
        ]


def _call_site() -> str:
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else "unknown line"
