"""torch.jit: modules recorded by trace, their files, and the marks of TorchScript.

script and other marks leave what functions and modules do as it is: there is no second language.
trace records what a program does for an example (rushlight.export), which can be saved and loaded.
"""

from __future__ import annotations

import builtins
import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    NoReturn,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)
from typing import Final as Final

from rushlight import nn
from rushlight.futures import Future

if TYPE_CHECKING:
    from rushlight.export._files import FileLike
    from rushlight.fx import GraphModule

T = TypeVar("T")

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "isinstance",
    "is_scripting",
    "is_tracing",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class TracerWarning(Warning):
    """A recording does not do all that the program does."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Hides these warnings where the library itself, not the program, gives cause for them."""
        warnings.filterwarnings(
            "ignore", category=TracerWarning, module="(torch|rushlight).(?!jit)"
        )


class Error(Exception):
    """What TorchScript raises; programs catch it."""


class ScriptFunction:
    """What no function is; programs ask isinstance."""


class ScriptModule(nn.Module):
    """What script, trace and load return; where a program extends it, a module as any other."""


class TensorType:
    """What no tensor is; annotations name it."""


class DeviceObjType:
    """What no device is; annotations name it."""


class Attribute(NamedTuple):
    """A value with the type that TorchScript would give it."""

    value: Any
    type: Any


def script(obj: T, *args: Any, **options: Any) -> T:
    """Returns a function as it is, and for a module a ScriptModule with the same members.

    There is no TorchScript: the ScriptModule runs the module's own program. Its save() writes the
    ops that this runs on inputs of the shapes of its first call, of which the first dimension may
    change, and refuses programs that read elements of their inputs.

    Example:
        >>> @torch.jit.script
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> twice(torch.ones(2))
        tensor([2., 2.])
        >>> scripted = torch.jit.script(torch.nn.Linear(3, 2))
        >>> scripted(torch.ones(5, 3)).shape
        torch.Size([5, 2])
        >>> print(scripted.code.strip().splitlines()[-1].strip())
        return linear
    """
    if builtins.isinstance(obj, nn.Module) and not builtins.isinstance(obj, ScriptModule):
        from rushlight.jit._trace import scripted

        return cast("T", scripted(obj))
    return obj


def script_if_tracing(fn: T) -> T:
    """Returns the function as it is."""
    return fn


def script_method(fn: T) -> T:
    """Returns the method as it is."""
    return fn


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Runs func(*args, **kwargs) at once and returns a future that has its result.

    Example:
        >>> half = torch.jit.fork(torch.mul, torch.ones(2), 0.5)
        >>> torch.jit.wait(half)
        tensor([0.5000, 0.5000])
    """
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """Returns the result of a future."""
    return future.wait()


def trace(
    func: Callable[..., Any],
    example_inputs: Any = None,
    optimize: bool | None = None,
    check_trace: bool = True,
    check_inputs: Sequence[Any] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *,
    example_kwarg_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> GraphModule:
    """Returns a module that does what a module or function did for an example.

    Loops are unrolled and an `if` goes the way that it went. The first dimension of the inputs may
    have other sizes, if the program ran with those as well; other sizes that it used as numbers are
    those of the example. See torch.export.export, which refuses what trace warns of.

    Args:
        func: what is recorded.
        example_inputs: a tensor, or a tuple of arguments.
        optimize: accepted for PyTorch's sake.
        check_trace: whether to compare the results of the recording with those of func.
        check_inputs: more examples to compare them on.
        check_tolerance: how far results may be apart, relatively and absolutely.
        strict: accepted for PyTorch's sake.
        example_kwarg_inputs: keyword arguments.
        options: accepted for PyTorch's sake.

    Warns:
        TracerWarning: if the program reads elements of tensors, or results differ.

    Example:
        >>> traced = torch.jit.trace(lambda x: x.relu().sum(), torch.ones(2))
        >>> print(traced.code.strip())
        def forward(self, x):
            relu = rushlight.relu(x);  x = None
            sum_1 = rushlight.sum(relu);  relu = None
            return sum_1
    """
    from rushlight.jit._trace import check, traced

    made = traced(func, example_inputs, example_kwarg_inputs)
    if check_trace:
        for example in (example_inputs, *(check_inputs or ())):
            check(func, made, example, example_kwarg_inputs, check_tolerance)
    return made


def trace_module(
    mod: nn.Module,
    inputs: dict[str, Any],
    optimize: bool | None = None,
    check_trace: bool = True,
    check_inputs: Sequence[dict[str, Any]] | None = None,
    *args: Any,
    **options: Any,
) -> GraphModule:
    """Returns what trace does for the example of a module's forward.

    Args:
        mod: what is recorded.
        inputs: {"forward": example}.
        optimize: accepted for PyTorch's sake.
        check_trace: whether to compare the results of the recording with those of mod.
        check_inputs: more examples to compare them on, in dicts as inputs is.
        args: as of trace.
        options: as of trace.

    Raises:
        NotImplementedError: if inputs has other methods.
    """
    for example in (inputs, *(check_inputs or ())):
        if set(example) != {"forward"}:
            raise NotImplementedError(
                f"trace_module: inputs has the methods {sorted(example)}, but a recording has only "
                "forward. Trace a method as a function: torch.jit.trace(module.method, example)."
            )
    examples = [example["forward"] for example in check_inputs or ()]
    return trace(mod, inputs["forward"], optimize, check_trace, examples, *args, **options)


def _get_trace_graph(f: Any, *args: Any, **options: Any) -> NoReturn:
    """Raises NotImplementedError: a recording is a graph of torch.fx."""
    raise NotImplementedError(
        "_get_trace_graph: there are no graphs of TorchScript. Use torch.jit.trace(f, args).graph, "
        "or torch.utils.flop_counter.FlopCounterMode to count operations."
    )


def save(m: Any, f: FileLike, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes what trace or script returned to a file, in the format of torch.export.save.

    Args:
        m: the module.
        f: a path or a file object.
        _extra_files: text or bytes to keep in the file, by name.

    Raises:
        RuntimeError: if it is another module.
    """
    from rushlight.jit._trace import SavedModule

    if not builtins.isinstance(m, SavedModule):
        raise RuntimeError(
            f"save: {type(m).__name__} was not recorded. Give save what torch.jit.trace(module, "
            "example_inputs) or torch.jit.script(module) returns."
        )
    m.save(f, _extra_files)


def load(
    f: FileLike,
    map_location: Any = None,
    _extra_files: dict[str, Any] | None = None,
    **options: Any,
) -> GraphModule:
    """Reads what save wrote. No code of the file is run: a recording can only call known ops.

    Args:
        f: a path or a file object.
        map_location: the device of its tensors.
        _extra_files: names of more contents of the file; the values become their bytes.
        options: accepted for PyTorch's sake.

    Raises:
        RuntimeError: if the file holds no recording; PyTorch's own archives hold none.
        ValueError: if map_location is no device.
    """
    from rushlight.jit._trace import loaded

    return loaded(f, map_location, _extra_files)


def freeze(mod: T, *args: Any, **options: Any) -> T:
    """Returns the module as it is."""
    return mod


def optimize_for_inference(mod: T, *args: Any, **options: Any) -> T:
    """Returns the module as it is."""
    return mod


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Changes nothing else than what the next call returns: the strategy that was set before.

    Example:
        >>> torch.jit.set_fusion_strategy([("DYNAMIC", 3)])
        [('STATIC', 2), ('DYNAMIC', 10)]
    """
    before = list(_fusion_strategy)
    _fusion_strategy[:] = strategy
    return before


_fusion_strategy = [("STATIC", 2), ("DYNAMIC", 10)]


def optimized_execution(should_optimize: bool) -> contextlib.nullcontext[None]:
    """Returns a block in which nothing else happens: recordings run as they are."""
    return contextlib.nullcontext()


def strict_fusion() -> contextlib.nullcontext[None]:
    """Returns a block in which nothing else happens, as outside of TorchScript in PyTorch."""
    return contextlib.nullcontext()


def enable_onednn_fusion(enabled: bool) -> None:
    """Changes nothing: recordings call ops one by one."""


def onednn_fusion_enabled() -> bool:
    """Returns False."""
    return False


def export(fn: T) -> T:
    """Returns the function as it is."""
    return fn


def unused(fn: T) -> T:
    """Returns the function as it is."""
    return fn


def ignore(drop: bool | Callable[..., Any] = False, **options: Any) -> Any:
    """Returns the function as it is; called without one, a decorator that does.

    Example:
        >>> @torch.jit.ignore(drop=True)
        ... def shown(x):
        ...     return str(x)
        >>> shown(3)
        '3'
    """
    return drop if callable(drop) else unused


def interface(obj: T) -> T:
    """Returns the class as it is."""
    return obj


def _overload(func: T) -> T:
    """Returns the function as it is; the declaration of another form of it comes to nothing."""
    return func


def _overload_method(fn: T) -> T:
    """Returns the method as it is; the declaration of another form of it comes to nothing."""
    return fn


def annotate(the_type: Any, the_value: T) -> T:
    """Returns the value; the type is for readers."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Returns whether an object is of a type, which may be a container of others or a tuple.

    Example:
        >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance({"a": 1}, dict[str, str])
        (True, False)
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, each) for each in target_type)
    origin, inner = get_origin(target_type), get_args(target_type)
    if origin is None:
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if origin in (Union, UnionType):
        return isinstance(obj, inner)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(inner) and all(map(isinstance, obj, inner))
    return all(isinstance(each, inner[0]) for each in obj)


def is_scripting() -> bool:
    """Returns False: nothing is compiled."""
    return False


def is_tracing() -> bool:
    """Returns whether trace runs the program."""
    return _is_tracing.get()


_is_tracing: ContextVar[bool] = ContextVar("is_tracing", default=False)
