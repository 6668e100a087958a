"""Feature pyramids: maps of several sizes that all have seen the smallest one.

Source: Lin et al., "Feature Pyramid Networks for Object Detection", 2017.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.ops._older_names import OlderNames
from rushlight.vision.ops.misc import Conv2dNormActivation

__all__ = ["ExtraFPNBlock", "FeaturePyramidNetwork", "LastLevelMaxPool", "LastLevelP6P7"]


class ExtraFPNBlock(nn.Module):
    """Adds maps to a pyramid: what FeaturePyramidNetwork takes for extra_blocks."""

    def forward(
        self, results: list[Tensor], x: list[Tensor], names: list[str]
    ) -> tuple[list[Tensor], list[str]]:
        """Returns results and names with more at their ends; x are the maps of the backbone."""
        raise NotImplementedError


class FeaturePyramidNetwork(OlderNames):
    """Makes maps of one number of channels from those of a backbone, the smallest ones first.

    Each is a 1x1 convolution of the backbone's map, plus the next smaller one enlarged, and then a
    3x3 convolution.

    Args:
        in_channels_list: channels of each map that goes in.
        out_channels: channels of each that comes out.
        extra_blocks: adds more maps.
        norm_layer: makes a norm from the number of channels, after each convolution.

    Returns:
        From forward, an OrderedDict with the names of the one that went in, largest map first.

    Raises:
        ValueError: if a map has no channels.

    Example:
        >>> fpn = FeaturePyramidNetwork([8, 16], 5)
        >>> maps = fpn({"low": torch.rand(1, 8, 16, 16), "high": torch.rand(1, 16, 8, 8)})
        >>> [(name, x.shape) for name, x in maps.items()]
        [('low', torch.Size([1, 5, 16, 16])), ('high', torch.Size([1, 5, 8, 8]))]
    """

    def __init__(
        self,
        in_channels_list: list[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        if 0 in in_channels_list:
            raise ValueError("FeaturePyramidNetwork: in_channels=0 is currently not supported.")
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(
                "FeaturePyramidNetwork: extra_blocks should be of type ExtraFPNBlock, not "
                f"{type(extra_blocks).__name__}."
            )

        def conv(channels: int, kernel_size: int) -> nn.Module:
            return Conv2dNormActivation(
                channels,
                out_channels,
                kernel_size,
                padding=kernel_size // 2,
                norm_layer=norm_layer,
                activation_layer=None,
            )

        self.inner_blocks = nn.ModuleList([conv(channels, 1) for channels in in_channels_list])
        self.layer_blocks = nn.ModuleList([conv(out_channels, 3) for _ in in_channels_list])
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight, a=1)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        self.extra_blocks = extra_blocks

    def _older_names(self) -> Iterable[tuple[str, str]]:
        for blocks in ("inner_blocks", "layer_blocks"):  # there were no blocks around convolutions
            for i in range(len(self.inner_blocks)):
                yield f"{blocks}.{i}", f"{blocks}.{i}.0"

    def forward(self, x: dict[str, Tensor]) -> OrderedDict[str, Tensor]:
        names, maps = list(x), list(x.values())
        above: Tensor | None = None
        results: list[Tensor] = []
        blocks = zip(maps, self.inner_blocks, self.layer_blocks, strict=True)
        for features, inner, layer in reversed(list(blocks)):
            features = inner(features)
            if above is not None:
                features = features + F.interpolate(above, size=features.shape[-2:])
            above = features
            results.insert(0, layer(features))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, maps, names)
        return OrderedDict(zip(names, results, strict=True))


class LastLevelMaxPool(ExtraFPNBlock):
    """Adds every second pixel of the smallest map, as "pool"."""

    def forward(
        self, results: list[Tensor], x: list[Tensor], names: list[str]
    ) -> tuple[list[Tensor], list[str]]:
        return [*results, F.max_pool2d(results[-1], 1, 2, 0)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Adds two convolutions of step 2, "p6" and "p7", of the smallest map.

    Args:
        in_channels: channels of the backbone's smallest map.
        out_channels: channels of the pyramid. If they are equal, the pyramid's map goes in.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        for layer in (self.p6, self.p7):
            nn.init.kaiming_uniform_(layer.weight, a=1)
            nn.init.zeros_(layer.bias)  # pyright: ignore[reportArgumentType]
        self.use_P5 = in_channels == out_channels

    def forward(
        self, results: list[Tensor], x: list[Tensor], names: list[str]
    ) -> tuple[list[Tensor], list[str]]:
        p6 = self.p6(results[-1] if self.use_P5 else x[-1])
        return [*results, p6, self.p7(F.relu(p6))], [*names, "p6", "p7"]
