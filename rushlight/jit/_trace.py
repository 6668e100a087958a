"""What torch.jit.trace and script return, and how recordings (rushlight.export) are made of it."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import rushlight as rl
from rushlight import Tensor, jit, nn
from rushlight.export import refuse_read
from rushlight.export._files import FileLike, read, write
from rushlight.export._program import Program, bind, record_program
from rushlight.export.dynamic_shapes import Dim
from rushlight.fx import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.testing import assert_close
from rushlight.utils._pytree import tensor_leaves, tree_map

__all__ = ["SavedModule", "TracedModule", "check", "loaded", "scripted", "traced"]


class SavedModule(jit.ScriptModule):
    """A module that can be written to a file, and is read without its program."""

    @property
    def original_name(self) -> str:
        """The name of the class of the module that was traced or scripted."""
        return type(self).__name__

    def save(self, f: FileLike, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes the module to a file, with its present parameters.

        Args:
            f: a path or a file object.
            _extra_files: text or bytes to keep in the file, by name.
        """
        raise NotImplementedError

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """Returns what save would write."""
        written = io.BytesIO()
        self.save(written, _extra_files)
        return written.getvalue()


class TracedModule(GraphModule, SavedModule):
    """A module or function as it ran on an example; graph and code show what it does."""

    def save(self, f: FileLike, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes the module to a file, with its present parameters."""
        tensors = dict(self.named_parameters(remove_duplicate=False))
        tensors |= dict(self.named_buffers(remove_duplicate=False))
        temporary = tensors.keys() - self.state_dict().keys()
        constants = temporary & self.meta["constants"]
        program = Program(
            type(self).__name__, self.graph, tensors, temporary, constants, self.training
        )
        write(program, f, _extra_files)


class ScriptedModule(SavedModule):
    """A module with the members of another, which is written as it runs on its first inputs."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module and remembers what inputs it takes."""
        results = super().__call__(*args, **kwargs)
        if "_script_example" not in self.__dict__:
            self.__dict__["_script_example"] = tree_map(_as_zeros, (args, kwargs))
        return results

    @property
    def graph(self) -> Graph:
        """The ops of a call, as those of a recording."""
        return self._recorded().graph

    @property
    def code(self) -> str:
        """The ops of a call, as text."""
        return self._recorded().code

    def save(self, f: FileLike, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes the module to a file, with its present parameters.

        Raises:
            RuntimeError: if it was not called before, or reads elements of tensors that depend on
                its inputs.
        """
        self._recorded().save(f, _extra_files)

    def _recorded(self) -> TracedModule:
        if "_script_example" not in self.__dict__:
            raise RuntimeError(
                f"script: {self.original_name} was not called yet. There is no TorchScript: what "
                "is saved are the ops of a call. Call it once, with inputs such as it will get."
            )
        args, kwargs = self.__dict__["_script_example"]
        return _module(_recording(self, args, kwargs, refuse_read))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Classes that are made here have no name to be found by."""
        return scripted, (_as(type(self).__bases__[1], self),)


def _as_zeros(value: Any) -> Any:
    """A tensor of the same kind and shape that holds one element in memory."""
    return value.new_zeros(()).expand(value.shape) if isinstance(value, Tensor) else value


def _as(kind: type[nn.Module], module: nn.Module) -> Any:
    """A module of another class with the same members, and the same values of attributes."""
    made = nn.Module.__new__(kind)
    made.__dict__ = module.__dict__
    return made


def scripted(module: nn.Module) -> ScriptedModule:
    """A ScriptedModule that runs the program of a module."""
    kind = type(module)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return _as(type(kind.__name__, (ScriptedModule, kind), names), module)


def _module(program: Program) -> TracedModule:
    made = program.module(TracedModule)
    assert isinstance(made, TracedModule)
    made.meta["constants"] = program.constants
    return made


def loaded(f: FileLike, device: Any, extra: dict[str, Any] | None) -> TracedModule:
    """The module in a file."""
    if not (device is None or isinstance(device, (str, rl.device))):
        raise ValueError(
            "map_location should be either None, string or torch.device, but got type: "
            f"{type(device)}"
        )
    return _module(read(f, extra, device))


def traced(
    func: Callable[..., Any], example: Any, kwargs: Mapping[str, Any] | None
) -> TracedModule:
    """Records a program: with other sizes of the first dimension as well, if it can run so."""
    args = _arguments(example)
    sites: set[str] = set()

    def warn(how: str, site: str) -> None:
        if site not in sites:
            sites.add(site)
            name, _, line = site.rpartition(":")
            warnings.warn_explicit(
                "trace: this line reads elements of a tensor that depends on the inputs, by "
                f"{how}. The recording keeps what it did with them for the example.",
                jit.TracerWarning,
                name,
                int(line or 0),
            )

    token = jit._is_tracing.set(True)
    try:
        return _module(_recording(func, args, kwargs, warn))
    finally:
        jit._is_tracing.reset(token)


def _recording(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    on_read: Callable[[str, str], None],
) -> Program:
    try:
        shapes = tree_map(_first_dim, list(bind(func, args, kwargs or {}).values()))
        return record_program(func, args, kwargs, on_read, shapes, is_checked=False)
    except ValueError:
        return record_program(func, args, kwargs, on_read, is_checked=False)


def _first_dim(value: Any) -> Any:
    return {0: Dim.AUTO} if isinstance(value, Tensor) and value.dim() else None


def _arguments(example: Any) -> tuple[Any, ...]:
    if example is None:
        return ()
    return tuple(example) if isinstance(example, (tuple, list)) else (example,)


def check(
    func: Callable[..., Any],
    made: TracedModule,
    example: Any,
    kwargs: Mapping[str, Any] | None,
    tolerance: float,
) -> None:
    """Warns when the recording gives other results than the program."""
    results = []
    for program in (func, made):
        args, named = tree_map(_copied, (_arguments(example), dict(kwargs or {})))
        results.append(tensor_leaves(program(*args, **named)))
    try:
        assert_close(results[1], results[0], rtol=tolerance, atol=tolerance, equal_nan=True)
    except AssertionError as error:
        warnings.warn(
            f"trace: the recording does not give the results of the program: {error} Random ops do "
            "so, such as dropout: call eval() first.",
            jit.TracerWarning,
            stacklevel=3,
        )


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value
