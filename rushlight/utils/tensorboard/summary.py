"""Makes records for the files of TensorBoard, by the tensorboardX package."""

from __future__ import annotations

from tensorboardX.summary import hparams as hparams

import rushlight.utils.tensorboard  # noqa: F401, says what to install where it is missing

__all__ = ["hparams"]
