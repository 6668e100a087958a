"""torch.export: modules as graphs of ops, which need no Python program and can be kept in files.

A module is run on an example, at several sizes if some may change, and the ops that it calls are
recorded. torch.jit.trace and torch.onnx.export are built on the same recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rushlight import nn
from rushlight.export._dataclasses import register_dataclass
from rushlight.export._files import read, write
from rushlight.export._program import record_program
from rushlight.export._recording import RefusedError
from rushlight.export.dynamic_shapes import (
    AdditionalInputs,
    Dim,
    ShapesCollection,
    dims,
    without_auto,
)
from rushlight.export.exported_program import ExportedProgram
from rushlight.export.graph_signature import ExportGraphSignature
from rushlight.fx.graph_module import GraphModule

if TYPE_CHECKING:
    from rushlight.export._files import FileLike

__all__ = [
    "AdditionalInputs",
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "ShapesCollection",
    "default_decompositions",
    "dims",
    "export",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]


def default_decompositions() -> dict[Any, Any]:
    """Returns what run_decompositions puts in the place of ops by itself, which is nothing.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
        >>> same = program.run_decompositions(torch.export.default_decompositions())
        >>> len(same.graph.nodes) == len(program.graph.nodes)
        True
    """
    return {}


def export(
    mod: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Mapping[str, Any]
    | Sequence[Any]
    | AdditionalInputs
    | ShapesCollection
    | None = None,
    strict: bool = False,
    preserve_module_call_signature: Sequence[str] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Returns a module as the ops that it calls for some arguments.

    Python's control flow has run when the graph is there: loops are unrolled, and an `if` went one
    way. Call mod.eval() before, unless the program is to train.

    Args:
        mod: what is recorded; its parameters are shared, not copied.
        args: an example of its arguments. Tensors become inputs; numbers, text and None are part of
            the program.
        kwargs: an example of its keyword arguments.
        dynamic_shapes: which sizes may change, by the arguments' names or in their order: for each
            tensor a dict from dimensions to Dims; or a ShapesCollection or AdditionalInputs. All
            other sizes are those of the example. The module runs at three sizes; integers in which
            the runs differ must be sizes of tensors, or products or sums of them.
        strict, preserve_module_call_signature, prefer_deferred_runtime_asserts_over_guards:
            accepted for PyTorch's sake.

    Raises:
        ValueError: if mod is no module, or the program depends on a size in a way that cannot be
            recorded.
        TypeError: if mod does not take these arguments.
        RuntimeError: if the program depends on the elements of a tensor: by `if`, item or NumPy;
            or returns other objects than tensors, numbers and text.

    Example:
        >>> batch = torch.export.Dim("batch")
        >>> example = (torch.ones(2, 3),)
        >>> program = torch.export.export(
        ...     torch.nn.Flatten(0), example, dynamic_shapes={"input": {0: batch}})
        >>> program.graph_signature.user_outputs
        ('flatten',)
        >>> program.module()(torch.ones(5, 3)).shape
        torch.Size([15])
    """
    if not isinstance(mod, nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise RuntimeError(
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}"
        )
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError(f"export: kwargs is {type(kwargs)}. Give a dict of arguments by name.")
    if isinstance(dynamic_shapes, (AdditionalInputs, ShapesCollection)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    try:
        program = record_program(mod, args, kwargs, refuse_read, dynamic_shapes)
    except ValueError:
        fixed = without_auto(dynamic_shapes)
        if fixed is None:
            raise
        program = record_program(mod, args, kwargs, refuse_read, fixed)
    return ExportedProgram(program, (args, dict(kwargs or {})))


def unflatten(module: ExportedProgram, flat_args_adapter: Any = None) -> GraphModule:
    """Returns a module with the exported one's parameters at their paths.

    What it does is one graph of its own, as that of program.module(): the modules at these paths
    hold parameters and buffers and are not called.

    Args:
        module: the exported program.
        flat_args_adapter: must be None.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> program = torch.export.export(net, (torch.ones(1, 2),))
        >>> [name for name, _ in torch.export.unflatten(program).named_parameters()]
        ['0.weight', '0.bias']
    """
    if flat_args_adapter is not None:
        raise NotImplementedError(
            "unflatten: flat_args_adapter is not supported. Call the module with arguments like "
            "those of the export."
        )
    return module.module()


def refuse_read(how: str, site: str) -> None:
    """Refuses a program that depends on the elements of a tensor."""
    raise RefusedError(
        f"export: {site} reads elements of a tensor that depends on the inputs, by {how}, and may "
        "decide by them. A recording follows one way only. Use ops such as torch.where instead."
    )


def save(
    ep: ExportedProgram,
    f: FileLike,
    *,
    extra_files: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Writes an exported program to a file: its graph as JSON, its tensors as safetensors.

    Args:
        ep: what is written.
        f: a path, usually ending in .pt2, or a file object.
        extra_files: text or bytes to keep in the file, by name.
        options: accepted for PyTorch's sake.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),))
        >>> torch.export.save(program, file)
        >>> _ = file.seek(0)
        >>> torch.export.load(file).module()(torch.ones(1, 2)).shape
        torch.Size([1, 1])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got {type(ep)}"
        )
    write(ep._program, f, extra_files)


def load(
    f: FileLike, *, extra_files: dict[str, Any] | None = None, **options: Any
) -> ExportedProgram:
    """Reads what save wrote. No code of the file is run: a graph can only call known ops.

    Args:
        f: a path or a file object.
        extra_files: names of more contents of the file; the values become their bytes.
        options: accepted for PyTorch's sake.

    Raises:
        RuntimeError: if the file holds no program; PyTorch's own files hold none that can be run.
    """
    return ExportedProgram(read(f, extra_files))
