"""From a module and an example to an ONNX model: what torch.onnx.export does."""

from __future__ import annotations

import contextvars
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.export import ExportedProgram, refuse_read
from rushlight.export._program import Program, bind, leaf_names, record_again, record_program
from rushlight.export.dynamic_shapes import Dim
from rushlight.onnx._builder import Value, element_type, tensor_proto
from rushlight.onnx._convert import Converter
from rushlight.onnx.errors import OnnxExporterError
from rushlight.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

__all__ = ["FIRST_OPSET", "LAST_OPSET", "converted", "is_exporting", "recorded"]

FIRST_OPSET, LAST_OPSET = 18, 23
_IR_VERSION = 10  # which runtimes since 2024 read

is_exporting: contextvars.ContextVar[bool] = contextvars.ContextVar("is_exporting", default=False)


def recorded(
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    input_names: Sequence[str],
    dynamic_axes: Mapping[str, Any] | None,
    dynamic_shapes: Any,
) -> Program:
    """The program of a module in eval mode, of an exported program, or of what was traced."""
    if isinstance(model, ExportedProgram):
        return record_again(model._program, refuse_read)
    if not callable(model):
        raise TypeError(f"onnx.export: model is {type(model).__name__}. Give it a module.")
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    if args and isinstance(args[-1], dict) and kwargs is None and _takes_kwargs(model, args):
        args, kwargs = args[:-1], args[-1]
    dims = _DimsByName()
    if dynamic_axes and dynamic_shapes is None:
        arguments = bind(model, args, kwargs or {})
        dynamic_shapes = _shapes(arguments, input_names, dynamic_axes, dims)
    else:
        dynamic_shapes = tree_map_only(str, dims.__getitem__, dynamic_shapes)
    modes = {m: m.training for m in model.modules()} if isinstance(model, nn.Module) else {}
    token = is_exporting.set(True)
    try:
        if isinstance(model, nn.Module):
            model.eval()
        return record_program(model, args, kwargs, refuse_read, dynamic_shapes)
    finally:
        is_exporting.reset(token)
        for module, mode in modes.items():
            module.training = mode


def _takes_kwargs(model: Any, args: tuple[Any, ...]) -> bool:
    """Whether a dict at the end of the arguments holds keyword arguments, as in older programs."""
    try:
        bind(model, args, {})
    except TypeError:
        return True
    return False


class _DimsByName(dict[str, Dim]):
    """Dims by any text: the same text is the same size."""

    def __missing__(self, name: str) -> Dim:
        plain = re.sub(r"\W", "_", name)
        self[name] = made = Dim(plain if plain.isidentifier() else f"_{plain}")
        return made


def _shapes(
    arguments: dict[str, Any],
    input_names: Sequence[str],
    dynamic_axes: Mapping[str, Any],
    dims: _DimsByName,
) -> list[Any]:
    """dynamic_shapes for what dynamic_axes says of the inputs."""
    leaves, spec = tree_flatten(list(arguments.values()))
    given = iter(input_names)
    said: list[Any] = []
    for leaf, own in zip(leaves, leaf_names(arguments), strict=True):
        name = next(given, own) if isinstance(leaf, Tensor) else own
        axes = dynamic_axes.get(name, {}) if isinstance(leaf, Tensor) else {}
        if not isinstance(axes, (dict, list, tuple)):
            raise ValueError(
                f"onnx.export: dynamic_axes says {axes!r} of {name}. Give a dict from dimensions "
                "to names, or a list of dimensions."
            )
        if not isinstance(axes, dict):
            axes = {axis: f"{name}_dim_{axis}" for axis in axes}
        said.append({axis: dims[name] for axis, name in axes.items()} or None)
    return tree_unflatten(said, spec)


def converted(
    program: Program,
    opset: int,
    folds: bool,
    input_names: Sequence[str],
    output_names: Sequence[str],
    dynamic_axes: Mapping[str, Any],
) -> Any:
    """The program as an onnx.ModelProto, checked."""
    import onnx

    if not isinstance(opset, int) or not FIRST_OPSET <= opset <= LAST_OPSET:
        raise OnnxExporterError(
            f"onnx.export: opset_version is {opset!r}. Versions {FIRST_OPSET} to {LAST_OPSET} can "
            "be written."
        )
    program.check_has_elements("onnx.export")
    converter = Converter(program, opset, folds, input_names, output_names)
    converter.run()
    builder = converter.builder
    _check_names(converter, input_names, output_names, dynamic_axes)
    outputs = _named_outputs(converter, output_names)
    nodes, used = _needed(builder.nodes, {value.name for value in outputs})
    graph = onnx.helper.make_graph(
        nodes,
        program.name,
        [_info(value, dynamic_axes) for value in converter.inputs],
        [_info(value, dynamic_axes) for value in outputs],
        [tensor_proto(n, t) for n, t in builder.initializers.items() if n in used],
    )
    model = onnx.helper.make_model(
        graph,
        opset_imports=[
            onnx.helper.make_opsetid(domain, 1 if domain else opset)
            for domain in sorted(builder.domains | {""})
        ],
        producer_name="rushlight",
        producer_version=rl.__version__,
        ir_version=_IR_VERSION,
    )
    if model.ByteSize() < 2**31:
        onnx.checker.check_model(model)
    return model


def _check_names(
    converter: Converter,
    input_names: Sequence[str],
    output_names: Sequence[str],
    dynamic_axes: Mapping[str, Any],
) -> None:
    for kind, names, values in (
        ("input", input_names, converter.inputs),
        ("output", output_names, converter.outputs),
    ):
        if len(names) > len(values):
            raise OnnxExporterError(
                f"onnx.export: {kind}_names are {list(names)}, but the model has {len(values)} "
                f"{kind}s. Give a list of at most so many."
            )
    names = [*input_names, *output_names]
    if len(set(names)) < len(names):
        raise OnnxExporterError(f"onnx.export: of the names {names} some are the same. Rename one.")
    unknown = dynamic_axes.keys() - {*names, *(value.name for value in converter.inputs)}
    if unknown:
        warnings.warn(
            f"onnx.export: dynamic_axes names {sorted(unknown)}, which are neither among the "
            f"inputs {[value.name for value in converter.inputs]} nor in output_names.",
            stacklevel=4,
        )


def _named_outputs(converter: Converter, names: Sequence[str]) -> list[Value]:
    """The outputs under their names, each the output of a node."""
    import onnx

    builder, made = converter.builder, []
    given = iter(names)
    for value in converter.outputs:
        name = next(given, None) or builder.name(value.name)
        made.append(Value(name, value.dtype, value.shape))
        builder.nodes.append(
            onnx.helper.make_node("Identity", [value.name], [name], f"output_{name}")
        )
    return made


def _needed(nodes: list[Any], wanted: set[str]) -> tuple[list[Any], set[str]]:
    """The nodes that the outputs need, and the names of what those use."""
    kept = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            kept.append(node)
            wanted.update(node.input)
    return kept[::-1], wanted


def _info(value: Value, dynamic_axes: Mapping[str, Any]) -> Any:
    import onnx

    axes = dynamic_axes.get(value.name, {})
    shape = value.shape
    if isinstance(axes, dict) and shape is not None:
        shape = [axes.get(i, axes.get(i - len(shape), size)) for i, size in enumerate(shape)]
    return onnx.helper.make_tensor_value_info(value.name, element_type(value.dtype), shape)
