"""The older name of torch.ao.quantization.quantize."""

from rushlight.ao.quantization.quantize import *  # noqa: F403
