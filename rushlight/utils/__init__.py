"""Tools around training: data loading, recomputation, pictures of the tape, hooks and DLPack."""

from __future__ import annotations

from rushlight import _later
from rushlight.utils import hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.utils import (
        benchmark,
        checkpoint,
        collect_env,
        cpp_extension,
        data,
        deterministic,
        dlpack,
        flop_counter,
        graph,
        model_zoo,
        module_tracker,
        safetensors,
        serialization,
        tensorboard,
        throughput_benchmark,
        weak,
    )
    from rushlight.utils._swap import swap_tensors
    from rushlight.utils.throughput_benchmark import ThroughputBenchmark

__all__ = [
    "ThroughputBenchmark",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "graph",
    "hooks",
    "model_zoo",
    "module_tracker",
    "safetensors",
    "serialization",
    "swap_tensors",
    "tensorboard",
    "throughput_benchmark",
    "weak",
]

_LATER = (
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "graph",
    "model_zoo",
    "module_tracker",
    "safetensors",
    "serialization",
    "tensorboard",
    "throughput_benchmark",
    "weak",
)


# As nn imports this package.
__getattr__ = _later.imports(
    __name__, _LATER, {"_swap": "swap_tensors", "throughput_benchmark": "ThroughputBenchmark"}
)
