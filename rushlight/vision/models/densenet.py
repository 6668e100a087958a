"""DenseNet: Huang et al. 2017, Densely Connected Convolutional Networks.

Each layer of a block sees the results of all layers before it, side by side as channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published

__all__ = [
    "DenseNet",
    "DenseNet121_Weights",
    "DenseNet161_Weights",
    "DenseNet169_Weights",
    "DenseNet201_Weights",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
]


class _DenseLayer(nn.Module):
    """Norm, relu, 1x1 convolution to few channels, norm, relu, 3x3 convolution to growth_rate."""

    def __init__(
        self,
        num_input_features: int,
        growth_rate: int,
        bn_size: int,
        drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        width = bn_size * growth_rate
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, width, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, growth_rate, kernel_size=3, padding=1, bias=False)
        self.drop_rate = float(drop_rate)
        self.memory_efficient = memory_efficient

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for name in self.state_dict():  # published with names from before 2018: norm.1.weight
            old = prefix + name.replace("1.", ".1.", 1).replace("2.", ".2.", 1)
            if old in state_dict:
                state_dict[prefix + name] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def _squeeze(self, *features: Tensor) -> Tensor:
        return self.conv1(self.relu1(self.norm1(rl.cat(features, 1))))

    def forward(self, input: Tensor | list[Tensor]) -> Tensor:
        features = [input] if isinstance(input, Tensor) else input
        if self.memory_efficient and any(x.requires_grad for x in features):
            from rushlight.utils.checkpoint import checkpoint  # costs an import of 20 ms

            squeezed: Any = checkpoint(self._squeeze, *features, use_reentrant=False)
        else:
            squeezed = self._squeeze(*features)
        result = self.conv2(self.relu2(self.norm2(squeezed)))
        if self.drop_rate > 0:
            result = F.dropout(result, p=self.drop_rate, training=self.training)
        return result


class _DenseBlock(nn.ModuleDict):
    """Layers of which each adds growth_rate channels to what the next ones see."""

    _version = 2

    def __init__(
        self,
        num_layers: int,
        num_input_features: int,
        bn_size: int,
        growth_rate: int,
        drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        for i in range(num_layers):
            seen = num_input_features + i * growth_rate
            self[f"denselayer{i + 1}"] = _DenseLayer(
                seen, growth_rate, bn_size, drop_rate, memory_efficient
            )

    def forward(self, init_features: Tensor) -> Tensor:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return rl.cat(features, 1)


class _Transition(nn.Sequential):
    """What stands between two blocks: fewer channels, half the size."""

    def __init__(self, num_input_features: int, num_output_features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """A convolution and a pool, blocks with transitions between them, a mean and a linear layer.

    Args:
        growth_rate: channels that a layer adds (k in the paper).
        block_config: number of layers in each block.
        num_init_features: channels after the first convolution.
        bn_size: a layer's 1x1 convolution has bn_size * growth_rate channels.
        drop_rate: probability to zero an element after each layer.
        num_classes: size of the result.
        memory_efficient: whether to compute the 1x1 convolutions again in backward.
    """

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: Sequence[int] = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        features = nn.Sequential()
        features.conv0 = nn.Conv2d(3, num_init_features, 7, stride=2, padding=3, bias=False)
        features.norm0 = nn.BatchNorm2d(num_init_features)
        features.relu0 = nn.ReLU(inplace=True)
        features.pool0 = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        width = num_init_features
        for i, num_layers in enumerate(block_config, 1):
            if i > 1:
                features.add_module(f"transition{i - 1}", _Transition(width, width // 2))
                width //= 2
            block = _DenseBlock(
                num_layers, width, bn_size, growth_rate, drop_rate, memory_efficient
            )
            features.add_module(f"denseblock{i}", block)
            width += num_layers * growth_rate
        features.norm5 = nn.BatchNorm2d(width)
        self.features = features
        self.classifier = nn.Linear(width, num_classes)

        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight)
            elif isinstance(layer, nn.Linear) and layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.features(x), inplace=True)
        x = F.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(rl.flatten(x, 1))


class DenseNet121_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("densenet121-a639ec97.pth")
    DEFAULT = IMAGENET1K_V1


class DenseNet161_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("densenet161-8d451a50.pth")
    DEFAULT = IMAGENET1K_V1


class DenseNet169_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("densenet169-b2777c0a.pth")
    DEFAULT = IMAGENET1K_V1


class DenseNet201_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("densenet201-c1103571.pth")
    DEFAULT = IMAGENET1K_V1


@builder(DenseNet121_Weights)
def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet-121."""
    return DenseNet(32, (6, 12, 24, 16), 64, **kwargs)


@builder(DenseNet161_Weights)
def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet-161."""
    return DenseNet(48, (6, 12, 36, 24), 96, **kwargs)


@builder(DenseNet169_Weights)
def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet-169."""
    return DenseNet(32, (6, 12, 32, 32), 64, **kwargs)


@builder(DenseNet201_Weights)
def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet-201."""
    return DenseNet(32, (6, 12, 48, 32), 64, **kwargs)
