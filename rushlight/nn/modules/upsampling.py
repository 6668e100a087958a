"""Layers that give images another size."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Sequences, images or volumes of another size: nn.functional.interpolate as a layer.

    Args:
        size: the sizes of the output after its channels.
        scale_factor: output size over input size, in the place of size.
        mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area".
        align_corners: whether the centers of the corner pixels fall on each other, and not their
            corners; only for the linear modes and "bicubic".
        recompute_scale_factor: whether positions follow from the sizes where scale_factor does not
            give whole ones.

    Shape:
        (N, C, L), (N, C, H, W) or (N, C, D, H, W) to the same with floor(size * scale_factor).

    Example:
        >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]])).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """

    name: str
    size: int | tuple[int, ...] | None
    scale_factor: float | tuple[float, ...] | None

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("recompute_scale_factor", True)  # older files have it not
        super().__setstate__(state)

    def extra_repr(self) -> str:
        what = "size" if self.scale_factor is None else "scale_factor"
        return f"{what}={getattr(self, what)}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images of another size by repeating pixels.

    Args:
        size: height and width of the output.
        scale_factor: output size over input size, in the place of size.

    Shape:
        (N, C, H, W) to the same with floor(size * scale_factor).

    Example:
        >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.tensor([[[[1.0, 2.0]]]])).tolist()
        [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
    """

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images of another size by weighing the four pixels around, with aligned corners.

    Args:
        size: height and width of the output.
        scale_factor: output size over input size, in the place of size.

    Shape:
        (N, C, H, W) to the same with floor(size * scale_factor).

    Example:
        >>> torch.nn.UpsamplingBilinear2d(size=(1, 3))(torch.tensor([[[[1.0, 2.0]]]])).tolist()
        [[[[1.0, 1.5, 2.0]]]]
    """

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
