"""PyTorch's compiler of graphs: its settings, which change nothing here, and its packages."""

from rushlight._inductor import config as config
from rushlight._inductor.package import (
    AOTICompiledModel,
    aoti_compile_and_package,
    aoti_load_package,
)

__all__ = ["AOTICompiledModel", "aoti_compile_and_package", "aoti_load_package"]
