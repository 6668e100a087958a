"""torch.onnx: modules as ONNX models, which other programs and devices run.

A module is recorded as torch.export does it, and each op becomes nodes of ONNX (_ops/). The package
onnx builds and checks the model: pip install rushlight[onnx].
"""

from __future__ import annotations

import enum
import os

from rushlight import _later
from rushlight.onnx import errors
from rushlight.onnx.errors import OnnxExporterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rushlight.onnx._custom import register_custom_op_symbolic as register_custom_op_symbolic
    from rushlight.onnx._custom import (
        unregister_custom_op_symbolic as unregister_custom_op_symbolic,
    )
    from rushlight.onnx._program import ONNXProgram as ONNXProgram

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TrainingMode",
    "errors",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]


# Options of export that programs name; it records in eval mode and makes ONNX, whatever they say.


class TrainingMode(enum.Enum):
    """In which mode a module is recorded: PyTorch's values of training=."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """What ops become: PyTorch's values of operator_export_type=."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None,
    do_constant_folding: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Returns a module as an ONNX model, and writes it to a file.

    The module is recorded in eval mode. See torch.export.export for what a recording can hold.

    Args:
        model: a module, or what torch.export.export or torch.jit.trace returned.
        args: an example of its arguments; not needed for an exported program.
        f: where the model is written; None writes nothing.
        kwargs: an example of its keyword arguments.
        verbose: whether to print the model.
        input_names: names of the inputs, in the order of the tensors among the arguments.
        output_names: names of the outputs.
        opset_version: the version of ONNX's operators, 18 to 23; None is 18.
        dynamo: accepted for PyTorch's sake.
        external_data: whether the parameters go to a second file, named f.data.
        dynamic_shapes: which sizes may change; see torch.export.export. A text may stand for a Dim.
        export_params: whether the model holds the parameters; without them it takes them as inputs.
        keep_initializers_as_inputs: whether a caller may replace parameters.
        dynamic_axes: which sizes may change, in the older form: for names of inputs and outputs a
            dict from dimensions to names, or a list of dimensions. One name is one size.
        do_constant_folding: whether what depends on no input is computed now.
        options: accepted for PyTorch's sake.

    Raises:
        OnnxExporterError: if opset_version is not known, or the package onnx is missing.
        torch.onnx.errors.UnsupportedOperatorError: if an op has no ONNX form.
        RuntimeError, ValueError: if the module cannot be recorded.

    Example:
        >>> net = torch.nn.Linear(2, 1)  # doctest: +SKIP
        >>> torch.onnx.export(net, torch.ones(1, 2), "net.onnx", input_names=["x"],
        ...     dynamic_axes={"x": {0: "batch"}})  # doctest: +SKIP
        ONNXProgram(inputs=['x'], outputs=['linear_gemm'], nodes=2)
    """
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise OnnxExporterError(
            "onnx.export: the package onnx is missing. Install it: pip install onnx."
        ) from error
    from rushlight.export import ExportedProgram
    from rushlight.onnx import _export
    from rushlight.onnx._program import ONNXProgram, change_initializers

    names = list(input_names or ())
    program = _export.recorded(model, args, kwargs, names, dynamic_axes, dynamic_shapes)
    opset = _export.FIRST_OPSET if opset_version is None else opset_version
    proto = _export.converted(
        program, opset, do_constant_folding, names, list(output_names or ()), dynamic_axes or {}
    )
    if verbose:
        print(onnx.printer.to_text(proto))
    exported = model if isinstance(model, ExportedProgram) else ExportedProgram(program)
    made = ONNXProgram(proto, exported)
    if f is not None:
        made.save(
            f,
            include_initializers=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data,
        )
    change_initializers(proto, export_params, keep_initializers_as_inputs)
    return made


def is_in_onnx_export() -> bool:
    """Returns whether export runs the module."""
    from rushlight.onnx._export import is_exporting

    return is_exporting.get()


__getattr__ = _later.imports(
    __name__,
    ("operators", "symbolic_helper"),
    {
        "_custom": "register_custom_op_symbolic unregister_custom_op_symbolic",
        "_program": "ONNXProgram",
    },
)
