"""functorch.einops: the older name of torch.func.rearrange."""

from rushlight.func import rearrange

__all__ = ["rearrange"]
