"""Makes records for the files of TensorBoard, by the tensorboardX package."""

from __future__ import annotations

import functools
from typing import Any

from tensorboardX import summary as theirs
from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore
from tensorboardX.proto.tensor_pb2 import TensorProto  # pyright: ignore
from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto  # pyright: ignore

from rushlight import Tensor
from rushlight.utils._pytree import tree_map
from rushlight.utils.tensorboard.writer import _as_array

__all__ = [
    "audio",
    "custom_scalars",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "image_boxes",
    "mesh",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
    "tensor_proto",
    "text",
    "video",
]

# The numbers of dtypes in TensorFlow's protocol.
_DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8,
    "int64": 9, "bool": 10, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22,
    "uint64": 23,
}  # fmt: skip


def _on_arrays(function: Any) -> Any:
    """The function of tensorboardX on arrays where it is given tensors."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*tree_map(_as_array, args), **tree_map(_as_array, kwargs))

    return call


audio = _on_arrays(theirs.audio)
custom_scalars = _on_arrays(theirs.custom_scalars)
histogram = _on_arrays(theirs.histogram)
histogram_raw = _on_arrays(theirs.histogram_raw)
hparams = _on_arrays(theirs.hparams)
image = _on_arrays(theirs.image)
image_boxes = _on_arrays(theirs.image_boxes)
mesh = _on_arrays(theirs.mesh)
pr_curve = _on_arrays(theirs.pr_curve)
pr_curve_raw = _on_arrays(theirs.pr_curve_raw)
scalar = _on_arrays(theirs.scalar)
text = _on_arrays(theirs.text)
video = _on_arrays(theirs.video)


def tensor_proto(tag: str, tensor: Tensor) -> Any:
    """Returns the record of a tensor.

    Args:
        tag: its name.
        tensor: the tensor; bfloat16 is written as float32.
    """
    array = _as_array(tensor)
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in array.shape])
    proto = TensorProto(
        dtype=_DTYPES[array.dtype.name], tensor_shape=shape, tensor_content=array.tobytes()
    )
    return Summary(value=[Summary.Value(tag=tag, tensor=proto)])
