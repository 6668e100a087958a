"""torch.compile: formulas of a program run several in one pass over memory, or a graph of it goes
to a back end of the user's.

Invariant: a compiled program does what the program does, bit for bit. It runs as it is, line by
line, so there is nothing to guard and nothing to compile again; its ops over single elements wait
until somebody needs a result, and then run together (Note [Fusion] in core/tensor/fusion.h).
"""

from __future__ import annotations

import functools
from contextvars import ContextVar

from rushlight import _C, Tensor, as_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, TypeVar

    T = TypeVar("T")

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "cudagraph_mark_warmup_incomplete",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "load_cache_artifacts",
    "nested_compile_region",
    "nonstrict_trace",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_STANCES = (
    *("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile"),
    *("aot_eager_then_compile",),
)
_stance = "default"


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
    dynamic_shapes: Any = None,
) -> Any:
    """Returns a function or module that does the same faster, where it moves much memory.

    Chains of ops that work element by element, such as ``0.5 * x * (1 + torch.tanh(x))``, run tile
    by tile in one pass over memory, in backward too, and intermediate results that nobody keeps
    are never written. Every bit of the results is the same, nothing is compiled while the program
    runs, and all of Python works. Tensors of fewer than 16,384 elements gain nothing, nor do ops
    that are one loop already.

    Args:
        model: a function or module. A module comes back in another, which has it as _orig_mod,
            with all its attributes. Without it, a decorator is returned.
        fullgraph: with a back end of your own, a program that decides by elements, so that it has
            no graph, raises instead of running as it is.
        backend: "inductor"; "eager" and "aot_eager" run the program as it is; or a function that
            gets a rushlight.fx.GraphModule and a list of example inputs and returns what is called
            with such inputs. It is called once for every set of shapes, strides, dtypes and other
            arguments. The graph has the ops of the program without its control flow. Gradients are
            recorded when the graph runs, as ever. None stands for the default, which is "inductor".
        disable: return the model as it is.
        dynamic, mode, options, name, recompile_limit, isolate_recompiles, shapes_spec,
            dynamic_shapes: accepted for PyTorch's sake.

    Raises:
        TypeError: if model cannot be called.
        RuntimeError: for a mode or back end that does not exist, or mode together with options.

    Example:
        >>> @torch.compile
        ... def gelu(x):
        ...     return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))
        >>> x = torch.linspace(-3, 3, 100000)
        >>> torch.equal(gelu(x), gelu.__wrapped__(x))
        True
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        settings = {"fullgraph": fullgraph, "backend": backend, "disable": disable}
        return functools.partial(compile, **settings)
    if not callable(model):
        raise TypeError(f"compile: a callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    from rushlight._dynamo.eval_frame import OptimizedModule
    from rushlight.nn import Module

    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    if isinstance(model, Module):
        return OptimizedModule(model, backend, fullgraph)
    return compiled_call(model, backend, fullgraph)


def compiled_call(
    function: Callable[..., Any], backend: str | Callable[..., Any] | None, fullgraph: bool
) -> Callable[..., Any]:
    """Returns what calls a function or module by a back end."""
    from rushlight._dynamo.backends.registry import (
        get_default_backend,
        lookup_backend,
        run_as_it_is,
    )

    back_end = lookup_backend(backend or get_default_backend())
    if back_end is None:
        compiled = _fused(function)
    elif back_end is run_as_it_is:
        compiled = function
    else:
        from rushlight._dynamo._graphs import Graphs

        compiled = Graphs(function, back_end, fullgraph)

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return (function if _stance == "force_eager" else compiled)(*args, **kwargs)

    return call


def _fused(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        _C._begin_fusion()
        try:
            return function(*args, **kwargs)
        finally:
            _C._end_fusion()

    return call


class set_stance:
    """Sets how compiled functions run from now on, or inside a with block or a function.

    Args:
        stance: "force_eager" runs them as they are; all others run them compiled.

    Raises:
        RuntimeError: if there is no such stance.

    Example:
        >>> with torch.compiler.set_stance("force_eager"):
        ...     torch.compile(torch.tanh)(torch.zeros(1))
        tensor([0.])
    """

    def __init__(self, stance: str = "default", **settings: Any) -> None:
        global _stance
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'. Use one of {_STANCES}.")
        self._new, self._before = stance, _stance
        _stance = stance

    def __enter__(self) -> None:
        global _stance
        _stance = self._new

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global _stance
        _stance = self._before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that runs under this stance."""
        global _stance
        _stance = self._before

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._new):
                return function(*args, **kwargs)

        return call


def list_backends(exclude_tags: Iterable[str] = ("debug", "experimental")) -> list[str]:
    """Returns the names of the back ends.

    Args:
        exclude_tags: () lists those that run programs as they are, too.

    Example:
        >>> "inductor" in torch.compiler.list_backends(), "eager" in torch.compiler.list_backends()
        (True, False)
    """
    from rushlight._dynamo.backends.registry import list_backends

    return list_backends(exclude_tags)


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Sets the back end of what is compiled from now on without naming one.

    Args:
        backend: its name or function; None for "inductor".

    Raises:
        InvalidBackend: if there is none of this name.

    Example:
        >>> torch.compiler.set_default_backend("eager")
        >>> torch.compiler.get_default_backend()
        'eager'
        >>> torch.compiler.set_default_backend(None)
    """
    from rushlight._dynamo.backends.registry import set_default_backend

    set_default_backend(backend)


def get_default_backend() -> str | Callable[..., Any]:
    """Returns the back end of what is compiled without naming one."""
    from rushlight._dynamo.backends.registry import get_default_backend

    return get_default_backend()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Returns the function as it is; called without one, a decorator that does.

    Example:
        >>> @torch.compiler.disable
        ... def twice(x):
        ...     return 2 * x
        >>> twice(3)
        6
    """
    return allow_in_graph if fn is None else fn


_disable_dynamo = disable  # torch._disable_dynamo: the name that optimizers of libraries use


def allow_in_graph(fn: T) -> T:
    """Returns the function as it is."""
    return fn


assume_constant_result = nested_compile_region = nonstrict_trace = allow_in_graph


def is_compiling() -> bool:
    """Returns whether the program is recorded: otherwise it runs as it is, compiled or not."""
    return is_recording.get()


def is_dynamo_compiling() -> bool:
    """Returns False: programs run as they are."""
    return False


def is_exporting() -> bool:
    """Returns whether the program is recorded, by torch.export, torch.jit.trace or torch.onnx."""
    return is_recording.get()


is_recording: ContextVar[bool] = ContextVar("is_recording", default=False)


def reset() -> None:
    """Changes nothing: a graph lives as long as the function that was compiled."""


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of tensors that runs one of NumPy arrays, without a gradient.

    Example:
        >>> torch.compiler.wrap_numpy(lambda array: array.clip(0, 1))(torch.tensor([2.0, 0.5]))
        tensor([1.0000, 0.5000])
    """
    from numpy import ndarray

    from rushlight.utils._pytree import tree_map

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(
            lambda leaf: leaf.numpy() if isinstance(leaf, Tensor) else leaf, (args, kwargs)
        )
        result = fn(*args, **kwargs)
        return tree_map(lambda leaf: as_tensor(leaf) if isinstance(leaf, ndarray) else leaf, result)

    return call


def substitute_in_graph(original_fn: T, **options: Any) -> Callable[[T], T]:
    """Returns a decorator that leaves a function as it is: programs run line by line."""
    return allow_in_graph


def skip_all_guards_unsafe(guard_entries: Iterable[Any], **options: Any) -> list[bool]:
    """Returns False for each condition of a compiled program; here there are none to keep."""
    return [False for _ in guard_entries]


skip_guard_on_all_nn_modules_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe = (
    skip_guard_on_globals_unsafe
) = keep_tensor_guards_unsafe = keep_portable_guards_unsafe = skip_all_guards_unsafe


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Changes nothing and returns False: processes have no compiled programs to agree on."""
    return False


def save_cache_artifacts() -> None:
    """Returns None: nothing was compiled that would have to be kept."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Returns None: nothing compiled is read."""


def cudagraph_mark_step_begin() -> None:
    """Tells where a step begins, which nothing needs."""


def cudagraph_mark_warmup_incomplete() -> None:
    """Asks for another run before a CUDA graph is recorded, which compile does not do."""
