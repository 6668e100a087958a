"""The functions that make MaskedTensors, where PyTorch has them."""

from rushlight.masked.maskedtensor.core import as_masked_tensor, masked_tensor

__all__ = ["as_masked_tensor", "masked_tensor"]
