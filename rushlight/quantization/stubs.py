"""The older name of torch.ao.quantization.stubs."""

from rushlight.ao.quantization.stubs import *  # noqa: F403
