"""The older name of torch.ao.quantization.quantization_mappings."""

from rushlight.ao.quantization.quantization_mappings import *  # noqa: F403
