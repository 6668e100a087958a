"""Settings of what reads programs in PyTorch's compiler, see _compiler_settings."""

import sys

from rushlight._compiler_settings import Settings

sys.modules[__name__].__class__ = Settings
