"""What torch.jit.trace returns, and how it is made of a recording (rushlight.export)."""

from __future__ import annotations

import io
import warnings

import rushlight as rl
from rushlight import Tensor, jit
from rushlight.export._files import read, write
from rushlight.export._program import Program, bind, record_program
from rushlight.export.dynamic_shapes import Dim
from rushlight.fx.graph_module import GraphModule
from rushlight.testing import assert_close
from rushlight.utils._pytree import tensor_leaves, tree_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rushlight.export._files import FileLike

__all__ = ["TracedModule", "check", "loaded", "traced"]


class TracedModule(GraphModule, jit.ScriptModule):
    """A module or function as it ran on an example; graph and code show what it does."""

    @property
    def original_name(self) -> str:
        """The name of the class of the module that was traced."""
        return type(self).__name__

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """Returns what save would write."""
        written = io.BytesIO()
        self.save(written, _extra_files)
        return written.getvalue()

    def save(self, f: FileLike, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes the module to a file, with its present parameters.

        Args:
            f: a path or a file object.
            _extra_files: text or bytes to keep in the file, by name.
        """
        tensors = dict(self.named_parameters(remove_duplicate=False))
        tensors |= dict(self.named_buffers(remove_duplicate=False))
        temporary = tensors.keys() - self.state_dict().keys()
        constants = temporary & self.meta["constants"]
        program = Program(
            type(self).__name__, self.graph, tensors, temporary, constants, self.training
        )
        write(program, f, _extra_files)


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
        try:
            shapes = tree_map(_first_dim, list(bind(func, args, kwargs or {}).values()))
            program = record_program(func, args, kwargs, warn, shapes, is_checked=False)
        except ValueError:
            program = record_program(func, args, kwargs, warn, is_checked=False)
    finally:
        jit._is_tracing.reset(token)
    return _module(program)


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
