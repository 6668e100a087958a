"""The older name of torch.ao.quantization.quantize_fx."""

from rushlight.ao.quantization.quantize_fx import *  # noqa: F403
