"""Settings of what writes kernels in PyTorch's compiler, see _compiler_settings."""

import sys

from rushlight._compiler_settings import Settings

triton, cpp, cuda, aot_inductor, trace = map(
    Settings, ("triton", "cpp", "cuda", "aot_inductor", "trace")
)

sys.modules[__name__].__class__ = Settings
