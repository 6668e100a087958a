"""Logs for TensorBoard, written by the tensorboardX package."""

from rushlight.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]
