"""Convolutional networks on the GPU, by cuDNN and in each framework's own way."""

from __future__ import annotations

from typing import Any

from cases.case import Call, Make, case
from cases.networks import resnet18, training


def without_cudnn(make: Make) -> Make:
    def made(torch: Any) -> Call:
        def off() -> Any:
            return torch.backends.cudnn.flags(enabled=False)

        with off():
            call = make(torch)

        def call_without() -> Any:
            with off():
                return call()

        return call_without

    return made


def convolution(torch: Any, dtype: str, memory_format: str) -> Call:
    """Forward and gradients of a layer of ResNet-50's third stage."""
    form = {"memory_format": getattr(torch, memory_format)}
    x = torch.randn(64, 256, 28, 28, device="cuda").to(getattr(torch, dtype)).to(**form)
    w = torch.randn(256, 256, 3, 3, device="cuda").to(getattr(torch, dtype)).to(**form)
    g = torch.randn(64, 256, 28, 28, device="cuda").to(getattr(torch, dtype)).to(**form)
    x.requires_grad_()
    w.requires_grad_()

    def call() -> Any:
        y = torch.nn.functional.conv2d(x, w, padding=1)
        return torch.autograd.grad(y, (x, w), g)

    return call


def resnet50(torch: Any) -> Any:
    """ResNet-50 (He et al. 2016), with the stride in the 3x3 convolution as torchvision has it."""
    nn = torch.nn

    def convolved(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[Any]:
        conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        return [conv, nn.BatchNorm2d(outputs)]

    class Block(nn.Module):
        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                *convolved(inputs, width, 1), nn.ReLU(inplace=True),
                *convolved(width, width, 3, stride), nn.ReLU(inplace=True),
                *convolved(width, 4 * width, 1),
            )  # fmt: skip
            self.shortcut = nn.Identity()
            if inputs != 4 * width:
                self.shortcut = nn.Sequential(*convolved(inputs, 4 * width, 1, stride))
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            return self.relu(self.body(x) + self.shortcut(x))

    layers = [*convolved(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, depth in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(depth):
            layers.append(Block(inputs, width, 2 if i == 0 and width > 64 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def step(torch: Any, net: Any, size: tuple[int, ...], short: bool, memory_format: str) -> Call:
    form = {"memory_format": getattr(torch, memory_format)}
    net = net.to("cuda").to(**form)
    images = torch.randn(*size, device="cuda").to(**form)
    labels = torch.randint(0, 10, (size[0],), device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    return training(torch, net, images, labels, optimizer, short)


LAST = "channels_last"
MAKES: dict[str, Make] = {
    "conv 3x3, 64x256x28x28, float32": lambda torch: convolution(
        torch, "float32", "contiguous_format"
    ),
    "conv 3x3, 64x256x28x28, float32, channels_last": lambda torch: convolution(
        torch, "float32", LAST
    ),
    "conv 3x3, 64x256x28x28, bfloat16, channels_last": lambda torch: convolution(
        torch, "bfloat16", LAST
    ),
    "ResNet-18 (CIFAR) step, batch 128": lambda torch: step(
        torch, resnet18(torch), (128, 3, 32, 32), False, "contiguous_format"
    ),
    "ResNet-50 step, batch 64": lambda torch: step(
        torch, resnet50(torch), (64, 3, 224, 224), False, "contiguous_format"
    ),
    "ResNet-50 step, batch 64, bfloat16, channels_last": lambda torch: step(
        torch, resnet50(torch), (64, 3, 224, 224), True, LAST
    ),
}
for name, make in MAKES.items():
    case(f"gpu: {name}", "gpu", 1.1)(make)
    case(f"gpu: {name}, no cuDNN", "gpu", 1.0)(without_cudnn(make))
