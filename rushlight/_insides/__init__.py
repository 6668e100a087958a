"""What of PyTorch's native module libraries reach into, where it means something here.

rushlight.as_torch makes these names of torch._C. Each is a thin call of what is public here.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import PyTorchFileReader, PyTorchFileWriter, _later, layout, qscheme
from rushlight._C import _current_walk as _current_graph_task_id
from rushlight._C import _will_engine_execute_node
from rushlight._insides import _cpu, _functorch, _nn
from rushlight._storage import memory_of
from rushlight._tag import Tag
from rushlight.jit import ScriptModule, TensorType
from rushlight.jit import is_tracing as _is_tracing
from rushlight.linalg import LinAlgError as _LinAlgError

__all__ = [
    "Graph",
    "Node",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "ScriptMethod",
    "ScriptModule",
    "Tag",
    "TensorType",
    "Value",
    "_LinAlgError",
    "_cpu",
    "_are_functorch_transforms_active",
    "_current_graph_task_id",
    "_functorch",
    "_get_default_device",
    "_get_privateuse1_backend_name",
    "_get_tracing_state",
    "_has_cuda",
    "_has_mps",
    "_has_xpu",
    "_is_alias_of",
    "_is_tracing",
    "_jit_set_profiling_executor",
    "_jit_set_profiling_mode",
    "_log_api_usage_once",
    "_mps_is_available",
    "_nn",
    "_will_engine_execute_node",
    "layout",
    "qscheme",
]

__getattr__ = _later.imports(__name__, ("_distributed_c10d", "_profiler"))

# What a PyTorch was built for.
_has_cuda = True
_has_mps = _has_xpu = False

# Libraries name these in signatures.


class Graph:
    """A graph of TorchScript, which no object is."""


class Node:
    """A node of such a graph, which no object is."""


class ScriptMethod:
    """A compiled method, which no object is."""


class Value:
    """A value in such a graph, which no object is."""


def _are_functorch_transforms_active() -> bool:
    """Whether vmap, or a derivative of torch.func, is running."""
    return rl._C._levels()[2]


def _get_default_device() -> str:
    """The kind of device that tensors are made on."""
    return rl.get_default_device().type


def _get_privateuse1_backend_name() -> str:
    """The name of a kind of device that others add, which has no other."""
    return "privateuseone"


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _is_alias_of(data: rl.Tensor, other: rl.Tensor) -> bool:
    """Whether two tensors share their storage."""
    return memory_of(data) == memory_of(other)


def _jit_set_profiling_executor(enable: bool) -> bool:
    """What the setting was before; nothing is compiled by profiles."""
    return False


_jit_set_profiling_mode = _jit_set_profiling_executor


def _log_api_usage_once(event: str) -> None:
    """Nothing is reported to anyone."""


def _mps_is_available() -> bool:
    """False; tests of libraries put functions of their own in its place."""
    return False
