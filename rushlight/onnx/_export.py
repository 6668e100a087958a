"""From a module and an example to an ONNX model: what torch.onnx.export does."""

from __future__ import annotations

import contextvars

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.export import ExportedProgram, refuse_read
from rushlight.export._program import Program, bind, leaf_names, record_again, record_program
from rushlight.export.dynamic_shapes import Dim
from rushlight.onnx._builder import Value, element_type, tensor_proto
from rushlight.onnx._convert import Converter
from rushlight.onnx.errors import OnnxExporterError
from rushlight.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

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
    if dynamic_axes and dynamic_shapes is None:
        dynamic_shapes = _shapes(bind(model, args, kwargs or {}), input_names, dynamic_axes)
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


def _shapes(
    arguments: dict[str, Any], input_names: Sequence[str], dynamic_axes: Mapping[str, Any]
) -> dict[str, Any]:
    """dynamic_shapes for what dynamic_axes says of the inputs: the same name is the same size."""
    leaves, spec = tree_flatten(list(arguments.values()))
    given = iter(input_names)
    dims: dict[str, Dim] = {}
    said: list[Any] = []
    for leaf, own in zip(leaves, leaf_names(arguments), strict=True):
        name = next(given, own) if isinstance(leaf, Tensor) else own
        axes = dynamic_axes.get(name, {}) if isinstance(leaf, Tensor) else {}
        if not isinstance(axes, dict):
            axes = {axis: f"{name}_dim_{axis}" for axis in axes}
        for name in axes.values():
            dims.setdefault(name, Dim(_identifier(name)))
        said.append({axis: dims[name] for axis, name in axes.items()} or None)
    return dict(zip(arguments, tree_unflatten(said, spec), strict=True))


def _identifier(name: str) -> str:
    plain = "".join(c if c.isalnum() else "_" for c in name)
    return plain if plain.isidentifier() else f"_{plain}"


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

    if not FIRST_OPSET <= opset <= LAST_OPSET:
        raise OnnxExporterError(
            f"onnx.export: opset_version is {opset}. Versions {FIRST_OPSET} to {LAST_OPSET} can be "
            "written."
        )
    converter = Converter(program, opset, folds)
    converter.run(input_names)
    builder = converter.builder
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
        opset_imports=[onnx.helper.make_opsetid("", opset)],
        producer_name="rushlight",
        producer_version=rl.__version__,
        ir_version=_IR_VERSION,
    )
    if model.ByteSize() < 2**31:
        onnx.checker.check_model(model)
    return model


def _named_outputs(converter: Converter, names: Sequence[str]) -> list[Value]:
    """The outputs under their names, each the output of a node."""
    builder, made = converter.builder, []
    given = iter(names)
    for value in converter.outputs:
        name = builder.name(next(given, value.name))
        made.append(Value(name, value.dtype, value.shape))
        import onnx

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
