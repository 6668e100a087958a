"""ChannelShuffle where PyTorch has it."""

from rushlight.nn.modules.pixelshuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]
