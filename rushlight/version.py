"""What this copy of Rushlight is.

CUDA is no part of the build, because its driver is loaded where there is one. So `cuda` is None, as
in PyTorch's builds for the CPU; torch.cuda.is_available() tells whether there is a GPU.
"""

from __future__ import annotations

from rushlight import __version__ as __version__

cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
debug = False
git_version = "Unknown"
