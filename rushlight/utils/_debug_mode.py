"""DebugMode: a log of the ops that run, with hashes of tensors to find where two runs part."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import rushlight as rl
from rushlight import Tensor
from rushlight.overrides import TorchFunctionMode, resolve_name
from rushlight.utils import _pytree
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils.module_tracker import ModuleCalls

__all__ = ["DebugMode"]

_PACKAGE = str(Path(rl.__file__).parent) + os.sep
_KINDS = {"float": "f", "bfloat": "bf", "complex": "c", "int": "i", "uint": "u", "bool": "b"}

Hook = Callable[..., Any]

# For each dispatch_hooks what keeps, what logs and what looks before the op runs.
_hooks: list[tuple[Hook | None, Hook | None, Hook | None]] = []


class Call:
    """A line of the log: a call of an op or function, or a module that begins.

    Attributes:
        op: what was called; the name of a module.
        args, kwargs: what it was called with, if the mode keeps it.
        call_depth: how far the line is indented.
        log: what hooks say of the call, which stands behind it.
        record: what hooks keep of it.
        stack_trace: the line of the program, if the mode notes it.
    """

    def __init__(self, op: Any, call_depth: int, text: str) -> None:
        self.op = op
        self.call_depth = call_depth
        self.args: tuple[Any, ...] | None = None
        self.kwargs: dict[str, Any] | None = None
        self.log: dict[str, Any] | None = None
        self.record: dict[str, Any] | None = None
        self.stack_trace: str | None = None
        self._text = text

    def __repr__(self) -> str:
        return self._text + (f"  # {self.log}" if self.log else "")


class DebugMode(TorchDispatchMode):
    """Logs the ops that run in a with block, those of backward and of optimizers too.

    Args:
        record_torchfunction: whether functions of torch are logged, with the ops they call below.
        record_faketensor, record_realtensor: accepted for PyTorch's sake.
        record_tensor_attributes: names of attributes that are shown of each tensor.
        record_nn_module: whether modules are logged, with the ops they call below.
        store_original_args: whether calls keep their arguments, in `args` and `kwargs`.
        record_stack_trace: whether the line of the program is noted.
        record_output: whether results are shown.
        record_ids: whether tensors are numbered, so that one can be followed.
        options: accepted for PyTorch's sake.

    Attributes:
        operators, logs: the calls.

    Example:
        >>> from rushlight.utils._debug_mode import DebugMode
        >>> with DebugMode() as debug, DebugMode.log_tensor_hashes():
        ...     y = torch.relu(torch.full((2, 3), 2.0))
        >>> print(debug.debug_string())
            aten::full([2, 3], 2.0)  ->  t: f32[2, 3]  # {'hash': 12.0}
            aten::relu(t: f32[2, 3])  ->  t: f32[2, 3]  # {'hash': 12.0}
    """

    def __init__(
        self,
        *,
        record_torchfunction: bool = False,
        record_faketensor: bool = False,
        record_realtensor: bool = True,
        record_tensor_attributes: Sequence[str] | None = None,
        record_nn_module: bool = False,
        store_original_args: bool = False,
        record_stack_trace: bool = False,
        record_output: bool = True,
        record_ids: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        self.operators: list[Call] = []
        self.store_original_args = store_original_args
        self.record_stack_trace = record_stack_trace
        self.record_output = record_output
        self._describe = _Describer(record_ids, record_tensor_attributes or ())
        self._depth = 1
        self._parts: list[Any] = []
        if record_torchfunction:
            self._parts.append(_Functions(self))
        if record_nn_module:
            self._parts.append(ModuleCalls(self._begin_module, self._end_module))

    @property
    def logs(self) -> list[Call]:
        return self.operators

    def reset(self) -> None:
        """Empties the log."""
        self.operators.clear()

    def __enter__(self) -> Self:
        self.reset()
        for part in self._parts:
            part.__enter__()
        return super().__enter__()

    def __exit__(self, *exc_info: Any) -> None:
        super().__exit__(*exc_info)
        for part in reversed(self._parts):
            part.__exit__(*exc_info)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        call = self._begin(func, func.name().removesuffix(".default"), args, kwargs)
        for _, _, pre_log in _hooks:
            if pre_log:
                pre_log(func, types, args, kwargs, call)
        result = func(*args, **kwargs)
        self._end(call, result)
        for record, log, _ in _hooks:
            if record:
                call.record = {**(call.record or {}), **record(func, types, args, kwargs, result)}
            if log:
                call.log = {**(call.log or {}), **log(func, types, args, kwargs, result)}
        return result

    def _begin(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        given = [self._describe(x) for x in args]
        given += [f"{key}={self._describe(x)}" for key, x in kwargs.items()]
        call = Call(func, self._depth, f"{name}({', '.join(given)})")
        if self.store_original_args:
            call.args, call.kwargs = args, kwargs
        if self.record_stack_trace:
            call.stack_trace = _line_of_program()
        self.operators.append(call)
        return call

    def _begin_module(self, name: str, args: Any) -> None:
        self.operators.append(Call(name, self._depth, f"[nn.Mod] {name}"))
        self._depth += 1

    def _end_module(self, name: str, result: Any) -> None:
        self._depth -= 1

    def _end(self, call: Call, result: Any) -> None:
        if self.record_output:
            call._text += f"  ->  {self._describe(result)}"

    def debug_string(self, show_stack_trace: bool | None = None) -> str:
        """Returns the log as text, a line a call.

        Args:
            show_stack_trace: whether lines of the program stand above the calls that they made;
                what record_stack_trace said if None.
        """
        if show_stack_trace is None:
            show_stack_trace = self.record_stack_trace
        lines: list[str] = []
        before = None
        for call in self.operators:
            indent = "  " * (call.call_depth + 1)
            if show_stack_trace and call.stack_trace and call.stack_trace != before:
                lines += [""] * bool(lines) + [f"{indent}# {call.stack_trace}"]
                before = call.stack_trace
            lines.append(f"{indent}{call!r}")
        return "\n".join(lines)

    @staticmethod
    @contextlib.contextmanager
    def dispatch_hooks(
        record_hook: Hook | None = None,
        log_hook: Hook | None = None,
        pre_log_hook: Hook | None = None,
    ) -> Generator[None]:
        """Has functions look at each op that is logged in the with block.

        Args:
            record_hook: takes func, types, args, kwargs and the result, and returns a dict that
                `record` of the call gets.
            log_hook: returns one that `log` gets and that the log shows.
            pre_log_hook: takes the call in the place of the result, before the op runs.
        """
        hooks = (record_hook, log_hook, pre_log_hook)
        _hooks.append(hooks)
        try:
            yield
        finally:
            _hooks.remove(hooks)

    @staticmethod
    def record_outputs() -> contextlib.AbstractContextManager[None]:
        """Keeps copies of results, in record["output"]."""

        def record(func: Any, types: Any, args: Any, kwargs: Any, result: Any) -> dict[str, Any]:
            return {"output": _pytree.tree_map(_copied, result)}

        return DebugMode.dispatch_hooks(record_hook=record)

    @staticmethod
    def log_tensor_hashes(
        hash_fn: Callable[[Tensor], Any] | str | Sequence[str] = "norm", hash_inputs: bool = False
    ) -> contextlib.AbstractContextManager[None]:
        """Logs a number for each tensor that an op returns: log["hash"].

        Args:
            hash_fn: "norm", the sum of the sizes of its elements in float64; "hash_tensor", which
                is torch.hash_tensor; several of these; or a function of a tensor.
            hash_inputs: whether tensors that the op takes are hashed, too, before it runs:
                log["input_hash"].
        """
        function = _hash_function(hash_fn)

        def hashes(values: Any) -> Any:
            return _pytree.tree_map(
                lambda x: function(x) if isinstance(x, Tensor) else None, values
            )

        def before(func: Any, types: Any, args: Any, kwargs: Any, call: Call) -> None:
            found = hashes((args, kwargs))
            if any(x is not None for x in _pytree.tree_leaves(found)):
                call.log = {**(call.log or {}), "input_hash": found}

        def after(func: Any, types: Any, args: Any, kwargs: Any, result: Any) -> dict[str, Any]:
            return {"hash": hashes(result)}

        return DebugMode.dispatch_hooks(
            log_hook=after, pre_log_hook=before if hash_inputs else None
        )

    @staticmethod
    def check_hash_mismatches(
        logs1: Sequence[Call], logs2: Sequence[Call], compare_inputs: bool = False
    ) -> list[dict[str, Any]]:
        """Returns where the hashes of two runs differ.

        Args:
            logs1, logs2: logs of the same calls, with log_tensor_hashes.
            compare_inputs: whether hashes of inputs are compared, too.

        Returns:
            For each hash that differs its `call`, `pytree_path` among the call's results or
            arguments, `hash1`, `hash2`, `rel_diff` and `is_input_hash`.

        Raises:
            ValueError: if the runs made other calls.

        Example:
            >>> from rushlight.utils._debug_mode import DebugMode
            >>> def run(x):
            ...     with DebugMode() as debug, DebugMode.log_tensor_hashes():
            ...         torch.relu(x)
            ...     return debug.logs
            >>> found = DebugMode.check_hash_mismatches(run(torch.ones(1)), run(torch.ones(1) * 2))
            >>> found[0]["call"], found[0]["hash1"], found[0]["hash2"]
            ('aten::relu', 1.0, 2.0)
        """
        if len(logs1) != len(logs2):
            raise ValueError(f"Log lengths don't match: {len(logs1)} vs {len(logs2)}")
        found: list[dict[str, Any]] = []
        for first, second in zip(logs1, logs2, strict=True):
            if (first.op, first.call_depth) != (second.op, second.call_depth):
                raise ValueError(f"Calls don't match: {first!r} vs {second!r}")
            for kind in ("hash", "input_hash") if compare_inputs else ("hash",):
                found += _differences(first, second, kind)
        return found


class _Describer:
    """How values are shown in the log."""

    def __init__(self, shows_ids: bool, attributes: Sequence[str]) -> None:
        self._shows_ids = shows_ids
        self._attributes = attributes
        self._known: list[Tensor] = []  # kept, so that no other gets the identity of one
        self._places: dict[int, int] = {}

    def __call__(self, value: Any) -> str:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)) and any(isinstance(x, Tensor) for x in value):
            return f"[{', '.join(map(self, value))}]"
        return str(list(value)) if isinstance(value, tuple) else str(value)

    def _tensor(self, tensor: Tensor) -> str:
        place = ""
        if self._shows_ids:
            if id(tensor) not in self._places:
                self._places[id(tensor)] = len(self._known)
                self._known.append(tensor)
            place = f"${self._places[id(tensor)]}"
        more = "".join(f"{{{name}={getattr(tensor, name)}}}" for name in self._attributes)
        return f"t{place}: {_short_name(tensor.dtype)}{list(tensor.shape)}{more}"


class _Functions(TorchFunctionMode):
    """Logs the functions of torch that run."""

    def __init__(self, mode: DebugMode) -> None:
        super().__init__()
        self._mode = mode

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        mode = self._mode
        name = resolve_name(func) or getattr(func, "__name__", str(func))
        mode._depth -= 1
        call = mode._begin(func, name, args, kwargs)
        mode._depth += 2
        try:
            result = func(*args, **kwargs)
        finally:
            mode._depth -= 1
        mode._end(call, result)
        return result


def _short_name(dtype: rl.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    kind = name.rstrip("0123456789")
    return _KINDS[kind] + (name.removeprefix(kind) or "8") if kind in _KINDS else name


def _line_of_program() -> str | None:
    """The innermost line that is not the framework's."""
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith((_PACKAGE, "<")):
            place = f"File: {frame.filename}:{frame.lineno} in {frame.name}"
            return f"{place}, code: {frame.line}"
    return None


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _norm(tensor: Tensor) -> float:
    return tensor.to(rl.complex128 if tensor.is_complex() else rl.float64).abs().sum().item()


_HASHES = {"norm": _norm, "hash_tensor": lambda tensor: rl.hash_tensor(tensor).item()}


def _hash_function(hash_fn: Any) -> Callable[[Tensor], Any]:
    if callable(hash_fn):
        return hash_fn
    names = [hash_fn] if isinstance(hash_fn, str) else hash_fn
    unknown = [name for name in names if name not in _HASHES]
    if unknown:
        raise ValueError(f"log_tensor_hashes: hash_fn must be of {list(_HASHES)}, got {unknown}")
    functions = [_HASHES[name] for name in names]
    if isinstance(hash_fn, str):
        return functions[0]
    return lambda tensor: tuple(function(tensor) for function in functions)


def _differences(first: Call, second: Call, kind: str) -> Iterator[dict[str, Any]]:
    hashes = [(call.log or {}).get(kind) for call in (first, second)]
    if (hashes[0] is None) != (hashes[1] is None):
        raise ValueError(f"One of the calls has no {kind}: {first!r} vs {second!r}")
    leaves = [_pytree.tree_flatten_with_path(values)[0] for values in hashes]
    for (path, a), (_, b) in zip(*leaves, strict=True):
        if a != b and not (a != a and b != b):
            yield {
                "call_type": "torch op",
                "call": first._text.partition("(")[0],
                "arg_name": None,
                "pytree_path": _pytree.keystr(path),
                "hash1": a,
                "hash2": b,
                "rel_diff": abs(a - b) / max(abs(a), abs(b)),
                "is_input_hash": kind == "input_hash",
            }
