"""torch.utils.checkpoint: memory for time. A region's results are computed again for backward.

Owns the functions that programs call, and the reentrant form. The other form is in
rushlight.utils._recompute, and the choice of what is kept in rushlight.utils._selective_recompute.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextlib import nullcontext as _nullcontext
from typing import Any, NamedTuple, Self

import rushlight as rl
from rushlight import _C, Tensor, nn
from rushlight.amp.autocast_mode import RestoredAutocast
from rushlight.autograd import Function
from rushlight.random import fork_rng, get_rng_state, set_rng_state
from rushlight.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode
from rushlight.utils._recompute import CheckpointError, Frame, running
from rushlight.utils._selective_recompute import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "detach_variable",
    "get_device_states",
    "set_device_states",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "DefaultDeviceType",
    "set_checkpoint_debug_enabled",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
    "SAC_IGNORED_OPS",
    "GraphExecGroup",
]

# What set_checkpoint_early_stop and set_checkpoint_debug_enabled ask for; None leaves it to calls.
_early_stop: bool | None = None
_debug: bool | None = None


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Returns two contexts that do nothing, the default context_fn of checkpoint."""
    return _nullcontext(), _nullcontext()


def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[
        [], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
    ] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    respect_saved_tensors_hooks: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Returns function(*args, **kwargs), of which backward computes again what it needs.

    Without a function it returns a decorator, which makes each call of a function such a call.

    Nothing that the ops inside would save for their gradients is kept, only the arguments. Backward
    runs the function once more, up to the last tensor that it needs.

    Args:
        function: what is run, twice in all; it must compute the same each time.
        args: its arguments.
        use_reentrant: False, which should be passed, records the ops inside like all others. True
            runs the function unrecorded, and calls backward inside backward: an argument must
            require a gradient, and backward must be called without inputs. None means True, and
            warns.
        preserve_rng_state: whether the second run draws the same random numbers as the first.
        context_fn: returns two contexts, for the first run and for those in backward.
        determinism_check: "default" compares shapes, dtypes and devices of what both runs save;
            "none" does not.
        debug: notes all ops, which CheckpointError then lists.
        early_stop: ends the second run as soon as all tensors are there.
        respect_saved_tensors_hooks: whether results that a policy keeps
            (create_selective_checkpoint_contexts) go through the saved_tensors_hooks around the
            call. None means False, and warns where there are such hooks.
        kwargs: keyword arguments of the function.

    Returns:
        What the function returns.

    Raises:
        ValueError: options that exclude each other, or an unknown determinism_check.
        CheckpointError: in backward, if the second run saved other tensors than the first.

    Example:
        >>> from rushlight.utils.checkpoint import checkpoint
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = checkpoint(lambda x: x.exp().sin().exp(), x, use_reentrant=False)
        >>> y.sum().backward()
        >>> @checkpoint(use_reentrant=False)
        ... def layer(x):
        ...     return x.exp().sin().exp()
        >>> layer(x).sum().backward()
    """
    if use_reentrant is None:
        _warn_about_default("checkpoint")
        use_reentrant = True
    options = _Options(
        use_reentrant,
        preserve_rng_state,
        context_fn,
        determinism_check,
        debug,
        early_stop,
        respect_saved_tensors_hooks,
    )
    if function is not None:
        return _run(function, args, kwargs, options)
    if args:
        raise TypeError("checkpoint: function is None, but there are arguments for it.")
    _refuse_unknown(kwargs)
    return functools.partial(_decorated, options)


class _Options(NamedTuple):
    """What a checkpoint is told besides the function and its arguments."""

    use_reentrant: bool
    preserve_rng_state: bool
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]
    determinism_check: str
    debug: bool
    early_stop: bool
    respect_saved_tensors_hooks: bool | None


def _decorated(options: _Options, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function, updated=())  # a module keeps its members to itself
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return _run(function, args, kwargs, options)

    return checkpointed


def _run(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: _Options
) -> Any:
    """Returns what the function returns, checkpointed."""
    if options.use_reentrant:
        return _run_reentrant(function, args, kwargs, options)
    if options.determinism_check not in ("default", "none"):
        raise ValueError(
            "checkpoint: determinism_check should be one of ['default', 'none'], "
            f"but got {options.determinism_check}"
        )
    # Forward mode needs nothing of the tape; where both are nested, all is kept.
    if not rl.is_grad_enabled() or _C._levels()[1]:
        return function(*args, **kwargs)
    frame = Frame(
        function,
        args,
        kwargs,
        contexts=options.context_fn,
        hooks=_hooks_of_kept_results(options),
        preserve_rng_state=options.preserve_rng_state,
        compares=options.determinism_check == "default",
        early_stop=options.early_stop if _early_stop is None else _early_stop,
        debug=options.debug if _debug is None else _debug,
    )
    with frame.first_run():
        return function(*args, **kwargs)


def _run_reentrant(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: _Options
) -> Any:
    _refuse_unknown(kwargs)
    has_contexts = options.context_fn is not noop_context_fn
    if has_contexts or options.debug or options.respect_saved_tensors_hooks is not None:
        raise ValueError(
            "checkpoint: Passing `context_fn`, `debug`, or `respect_saved_tensors_hooks` is only "
            "supported when use_reentrant=False."
        )
    if rl.is_grad_enabled():
        check_backward_validity(args)
    return CheckpointFunction.apply(function, options.preserve_rng_state, *args)


def _hooks_of_kept_results(options: _Options) -> Any:
    """Returns the hooks that results which a policy keeps go through, or None."""
    hooks, respect = _C._top_saving_hooks(), options.respect_saved_tensors_hooks
    if hooks is not None and respect is None and options.context_fn is not noop_context_fn:
        warnings.warn(
            "checkpoint: results that the policy keeps do not go through the saved_tensors_hooks "
            "around the call, as those of other ops do. Pass respect_saved_tensors_hooks=True to "
            "send them through the hooks, or False to keep them as they are.",
            FutureWarning,
            stacklevel=4,
        )
    return hooks if respect else None


def checkpoint_sequential(
    functions: nn.Sequential | Sequence[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Returns what a chain of functions makes of an input, checkpointing it in segments.

    The last segment is not checkpointed: backward begins there.

    Args:
        functions: modules or functions of one argument, each of which gets the last one's result.
        segments: how many pieces of about equal length there are.
        input: what the first function gets.
        use_reentrant: as for checkpoint.
        kwargs: preserve_rng_state, as for checkpoint.

    Raises:
        ValueError: segments is less than 1 or more than the number of functions.

    Example:
        >>> from rushlight.utils.checkpoint import checkpoint_sequential
        >>> net = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(6)))
        >>> y = checkpoint_sequential(net, 3, torch.ones(1, 4), use_reentrant=False)
        >>> y.sum().backward()
    """
    if use_reentrant is None:
        _warn_about_default("checkpoint_sequential")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    _refuse_unknown(kwargs)
    chain = list(functions)
    if not 1 <= segments <= len(chain):
        raise ValueError(
            f"checkpoint_sequential: segments is {segments} for {len(chain)} functions. Each "
            "segment needs a function. Pass a number from 1 to the number of functions."
        )

    def run(first: int, end: int) -> Callable[[Any], Any]:
        def segment(value: Any) -> Any:
            for function in chain[first:end]:
                value = function(value)
            return value

        return segment

    length = len(chain) // segments
    last = length * (segments - 1)
    for first in range(0, last, length):
        input = checkpoint(
            run(first, first + length),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return run(last, len(chain))(input)


def _warn_about_default(name: str) -> None:
    where = "torch.utils.checkpoint"
    warnings.warn(
        f"{where if name == 'checkpoint' else f'{where}.{name}'}: the use_reentrant parameter "
        "should be passed explicitly. use_reentrant=False is recommended; without it the call "
        "means use_reentrant=True, as it did when there was no other form.",
        stacklevel=3,
    )


def _refuse_unknown(kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Decides for all checkpoints in a with block whether they end their second run early.

    Args:
        enable: what counts in place of the early_stop of each call.
    """
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Decides for all checkpoints in a with block whether they note their ops.

    Args:
        enabled: what counts in place of the debug of each call; None leaves it to the calls.
    """
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


class GraphExecGroup:
    """Lets several backward calls in a with block share one second run of each checkpoint.

    No two of the calls may need the same saved tensor. Reentrant checkpoints take no notice.
    """

    def __enter__(self) -> Self:
        if running.group is not None:
            raise RuntimeError(
                "GraphExecGroup contexts cannot be nested. Put all backward calls into one block."
            )
        running.group = set()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for frame in running.group or ():
            frame.recomputed.clear()
        running.group = None


class CheckpointFunction(Function):
    """The reentrant form of checkpoint: an op whose backward runs a whole backward inside."""

    @staticmethod
    def forward(
        ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any
    ) -> Any:
        """Runs the function without recording what it does."""
        ctx.run_function = run_function
        ctx.rng_state = get_rng_state() if preserve_rng_state else None
        ctx.autocast = RestoredAutocast()
        places = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.tensor_places = places
        ctx.rest = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.save_for_backward(*(args[place] for place in places))
        with rl.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Runs the function again, recorded, and goes back through it."""
        if not _C._backward_is_whole():
            raise RuntimeError(
                "checkpoint: When use_reentrant=True, torch.utils.checkpoint is incompatible with "
                ".grad() or passing an `inputs` parameter to .backward(). Pass use_reentrant=False "
                "to checkpoint, or call .backward() without inputs."
            )
        args = list(ctx.rest)
        for place, tensor in zip(ctx.tensor_places, ctx.saved_tensors, strict=True):
            args[place] = tensor
        inputs = detach_variable(tuple(args))
        with fork_rng(enabled=ctx.rng_state is not None), rl.enable_grad(), ctx.autocast:
            if ctx.rng_state is not None:
                set_rng_state(ctx.rng_state)
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        rl.autograd.backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if none of the inputs of a reentrant checkpoint requires a gradient.

    Args:
        inputs: tensors, and what is none.
    """
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3
        )


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the inputs with tensors cut off their history, requiring gradients as before.

    Args:
        inputs: tensors, and what is none.

    Raises:
        RuntimeError: inputs is not a tuple.

    Example:
        >>> x = torch.ones(1, requires_grad=True) * 2
        >>> torch.utils.checkpoint.detach_variable((x, 3))
        (tensor([2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Returns the GPUs on which tensors lie, and the state of the random numbers for each.

    Args:
        args: tensors; other things are ignored.
    """
    tensors = (arg for arg in args if isinstance(arg, Tensor) and arg.device.type != "cpu")
    devices = sorted({tensor.device.index or 0 for tensor in tensors})
    return devices, [get_rng_state() for _ in devices]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Sets the state of the random numbers, which is one for all devices.

    Args:
        devices: numbers of GPUs.
        states: a state for each, from get_device_states.
        device_type: accepted for PyTorch's sake.
    """
    for _, state in zip(devices, states, strict=True):
        set_rng_state(state)


class DefaultDeviceType:
    """The type of device that checkpoints assume where no tensor tells."""

    _type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets it; the random numbers of checkpoints are the same on all devices."""
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        """Returns it: what was set, else "cuda" if there is a GPU."""
        return DefaultDeviceType._type or ("cuda" if rl.cuda.is_available() else "cpu")
