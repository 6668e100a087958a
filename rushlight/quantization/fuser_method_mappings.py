"""The older name of torch.ao.quantization.fuser_method_mappings."""

from rushlight.ao.quantization.fuser_method_mappings import *  # noqa: F403
