"""Settings of what reads programs in PyTorch's compiler, see _compiler_settings.

Those that programs read before they set them are here from the beginning.
"""

import sys

from rushlight._compiler_settings import Settings

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = verbose = capture_scalar_outputs = False

sys.modules[__name__].__class__ = Settings
