"""Convolution, pooling and embedding layers, forward and backward."""

from __future__ import annotations

from typing import Any

from cases.case import Call, case

# A batch of images as they are in the middle of a ResNet, and one of short clips.
IMAGES, CLIPS = (8, 64, 56, 56), (2, 16, 16, 28, 28)


def forward_backward(torch: Any, layer: Any, shape: tuple[int, ...]) -> Call:
    x = torch.randn(*shape, requires_grad=True)
    grad = torch.randn(*layer(x).shape)

    def call() -> None:
        x.grad = None
        layer.zero_grad()
        layer(x).backward(grad)

    return call


@case("conv 1x1, 64 channels, 8x64x56x56, forward + backward", "ops", 1.0)
def conv_pointwise(torch: Any) -> Call:
    return forward_backward(torch, torch.nn.Conv2d(64, 64, 1), IMAGES)


@case("conv 3x3 depthwise, 8x64x56x56, forward + backward", "ops", 1.0)
def conv_depthwise(torch: Any) -> Call:
    return forward_backward(torch, torch.nn.Conv2d(64, 64, 3, padding=1, groups=64), IMAGES)


@case("conv 7x7 depthwise, 8x64x28x28, forward + backward", "ops", 1.0)
def conv_depthwise_wide(torch: Any) -> Call:
    layer = torch.nn.Conv2d(64, 64, 7, padding=3, groups=64)
    return forward_backward(torch, layer, (8, 64, 28, 28))


@case("conv1d 31 depthwise, 4x256x1000, forward + backward", "ops", 1.0)
def conv1d_depthwise(torch: Any) -> Call:
    layer = torch.nn.Conv1d(256, 256, 31, padding=15, groups=256)
    return forward_backward(torch, layer, (4, 256, 1000))


@case("max_pool2d 3x3 stride 2, 8x64x56x56, forward + backward", "ops", 1.0)
def max_pool(torch: Any) -> Call:
    return forward_backward(torch, torch.nn.MaxPool2d(3, 2, 1), IMAGES)


@case("avg_pool2d 2x2, 8x64x56x56, forward + backward", "ops", 1.0)
def avg_pool(torch: Any) -> Call:
    return forward_backward(torch, torch.nn.AvgPool2d(2), IMAGES)


@case("max_pool3d 2x2x2, 2x16x16x28x28, forward + backward", "ops", 1.0)
def max_pool_3d(torch: Any) -> Call:
    return forward_backward(torch, torch.nn.MaxPool3d(2), CLIPS)


@case("avg_pool3d 2x2x2, 2x16x16x28x28, forward + backward", "ops", 1.0)
def avg_pool_3d(torch: Any) -> Call:
    return forward_backward(torch, torch.nn.AvgPool3d(2), CLIPS)


@case("conv_transpose3d 2x2x2 stride 2, 2x16x8x14x14, forward + backward", "ops", 1.0)
def conv_transpose_3d(torch: Any) -> Call:
    return forward_backward(torch, torch.nn.ConvTranspose3d(16, 16, 2, 2), (2, 16, 8, 14, 14))


def lookup(torch: Any, layer: Any, *args: Any) -> Call:
    grad = torch.randn(*layer(*args).shape)

    def call() -> None:
        layer.zero_grad()
        layer(*args).backward(grad)

    return call


@case("Embedding(10000, 256), 32x128 rows, forward + backward", "ops", 0.9)
def embedding(torch: Any) -> Call:
    return lookup(torch, torch.nn.Embedding(10_000, 256), torch.randint(0, 10_000, (32, 128)))


def bags(torch: Any, mode: str, sparse: bool = False) -> Call:
    layer = torch.nn.EmbeddingBag(10_000, 64, mode=mode, sparse=sparse)
    entries, offsets = torch.randint(0, 10_000, (20_480,)), torch.arange(1024) * 20
    return lookup(torch, layer, entries, offsets)


@case("EmbeddingBag(10000, 64) mean, 1024 bags of 20, forward + backward", "ops", 0.9)
def bags_mean(torch: Any) -> Call:
    return bags(torch, "mean")


@case("EmbeddingBag(10000, 64) max, 1024 bags of 20, forward + backward", "ops", 0.9)
def bags_max(torch: Any) -> Call:
    return bags(torch, "max")


@case("EmbeddingBag(10000, 64) sum, sparse, 1024 bags of 20, forward + backward", "ops", 0.9)
def bags_sparse(torch: Any) -> Call:
    return bags(torch, "sum", sparse=True)


@case("EmbeddingBag(100, 8) sum, 4 bags of 3, forward", "ops", 0.5)
def bags_small(torch: Any) -> Call:
    layer, entries = torch.nn.EmbeddingBag(100, 8, mode="sum"), torch.randint(0, 100, (4, 3))

    def call() -> None:
        with torch.no_grad():
            layer(entries)

    return call
