"""The older name of torch.ao.quantization.observer."""

from rushlight.ao.quantization.observer import *  # noqa: F403
