"""The older name of torch.ao.quantization.utils."""

from rushlight.ao.quantization.utils import *  # noqa: F403
