"""ONNXProgram: a converted model, its file, and running it with onnxruntime."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from rushlight import Tensor, from_numpy
from rushlight.export import ExportedProgram
from rushlight.utils._pytree import tensor_leaves

__all__ = ["ONNXProgram"]

_LARGEST = 2**31 - 2**20  # protobuf's limit of a file, less some room for the graph
_SMALLEST = 1024  # bytes of a tensor that goes to another file


class ONNXProgram:
    """A model in ONNX.

    Args:
        model: the protobuf message.
        exported_program: what it was converted from.

    Attributes:
        model_proto: the message, of the class onnx.ModelProto.
        exported_program: what it was converted from.
    """

    def __init__(self, model: Any, exported_program: ExportedProgram) -> None:
        self.model_proto = model
        self.exported_program = exported_program
        self._session: list[Any] = []  # that of onnxruntime, when calls have made it

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Writes the model to a file.

        Args:
            destination: its path.
            include_initializers: whether to write the parameters.
            keep_initializers_as_inputs: whether a caller may replace parameters.
            external_data: whether parameters go to a second file, whose name ends in .data; None
                does so only when one file could not hold them.

        Raises:
            FileNotFoundError: if there is no such folder.
        """
        import onnx

        path = os.fspath(destination)
        folder, name = os.path.split(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"onnx.export: there is no folder {folder}. Make it first.")
        model = onnx.ModelProto()
        model.CopyFrom(self.model_proto)
        change_initializers(model, include_initializers, keep_initializers_as_inputs)
        if external_data is None:
            external_data = sum(len(t.raw_data) for t in model.graph.initializer) > _LARGEST
        if external_data:
            with contextlib.suppress(FileNotFoundError):
                os.remove(f"{path}.data")  # onnx would add to it
            for tensor in model.graph.initializer:
                if len(tensor.raw_data) >= _SMALLEST:
                    onnx.external_data_helper.set_external_data(tensor, f"{name}.data")
        onnx.save_model(model, path)

    def initialize_inference_session(self) -> None:
        """Makes the session of onnxruntime that calls use.

        Raises:
            ModuleNotFoundError: if onnxruntime is not installed.
        """
        onnxruntime: Any = import_module("onnxruntime")
        session = onnxruntime.InferenceSession(
            self.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        self._session = [session]

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Runs the model with onnxruntime and returns its outputs.

        Args:
            args: the arguments of the exported module.
            kwargs: its keyword arguments.
        """
        if not self._session:
            self.initialize_inference_session()
        session = self._session[0]
        given = tensor_leaves((args, kwargs))
        names = [value.name for value in self.model_proto.graph.input]
        wanted = {value.name for value in session.get_inputs()}
        feeds = {
            name: x.detach().cpu().numpy()
            for name, x in zip(names, given, strict=False)
            if name in wanted
        }
        return [from_numpy(array) for array in session.run(None, feeds)]

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        names = [[value.name for value in values] for values in (graph.input, graph.output)]
        return f"ONNXProgram(inputs={names[0]}, outputs={names[1]}, nodes={len(graph.node)})"


def change_initializers(model: Any, is_kept: bool, are_inputs: bool) -> None:
    """Drops the parameters of a message, or lists them among the inputs."""
    import onnx

    graph = model.graph
    if are_inputs or not is_kept:
        for tensor in graph.initializer:
            graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    if not is_kept:
        del graph.initializer[:]
