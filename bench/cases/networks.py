"""Whole networks: training steps and inference of the sizes that people start with."""

from __future__ import annotations

from typing import Any

from cases.case import Call, case
from cases.models import char_gpt


def training(
    torch: Any, net: Any, x: Any, labels: Any, optimizer: Any, short: bool = False
) -> Call:
    """A step of training; `short` runs the forward under autocast to bfloat16."""
    cross_entropy = torch.nn.functional.cross_entropy

    def call() -> None:
        optimizer.zero_grad()
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=short):
            loss = cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()

    return call


def inference(torch: Any, net: Any, x: Any) -> Call:
    net.eval()

    def call() -> Any:
        with torch.no_grad():
            return net(x)

    return call


@case("784-512-512-10 MLP training step, batch 128, Adam", "networks", 0.9)
def mlp_training(torch: Any) -> Call:
    nn = torch.nn
    net = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    x, labels = torch.randn(128, 784), torch.randint(0, 10, (128,))
    return training(torch, net, x, labels, torch.optim.Adam(net.parameters(), lr=1e-3))


def mnist_cnn(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(  # the network of the PyTorch examples
        nn.Conv2d(1, 32, 3),  # (n, 32, 26, 26)
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),  # (n, 64, 24, 24)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (n, 64, 12, 12)
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )


@case("MNIST CNN inference, batch 1", "networks", 0.6)
def mnist_inference(torch: Any) -> Call:
    return inference(torch, mnist_cnn(torch), torch.randn(1, 1, 28, 28))


def resnet18(torch: Any) -> Any:
    """ResNet-18 in its form for CIFAR: a 3x3 stem without pooling (He et al. 2016)."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = nn.Identity()
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
                )

        def forward(self, x: Any) -> Any:
            out = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(out)) + self.shortcut(x))

    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def resnet_training(torch: Any, short: bool = False, format: str = "contiguous_format") -> Call:
    memory_format = getattr(torch, format)
    net = resnet18(torch).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    x, labels = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
    return training(torch, net, x.to(memory_format=memory_format), labels, optimizer, short)


@case("ResNet-18 (CIFAR) training step, batch 16", "networks", 0.95)
def resnet_step(torch: Any) -> Call:
    return resnet_training(torch)


@case("ResNet-18 (CIFAR) training step, batch 16, channels_last", "networks", 0.95)
def resnet_last_step(torch: Any) -> Call:
    return resnet_training(torch, format="channels_last")


@case("ResNet-18 (CIFAR) training step, batch 16, bfloat16 autocast", "networks", 1.0)
def resnet_short_step(torch: Any) -> Call:
    return resnet_training(torch, short=True)


@case("ResNet-18 (CIFAR) inference, batch 1", "networks", 0.85)
def resnet_inference(torch: Any) -> Call:
    return inference(torch, resnet18(torch), torch.randn(1, 3, 32, 32))


@case("ResNet-18 (CIFAR) inference, batch 1, channels_last", "networks", 0.85)
def resnet_last_inference(torch: Any) -> Call:
    net = resnet18(torch).to(memory_format=torch.channels_last)
    x = torch.randn(1, 3, 32, 32).to(memory_format=torch.channels_last)
    return inference(torch, net, x)


def gpt(torch: Any) -> Any:
    return char_gpt(torch, vocabulary=65, width=128, heads=4, layers=4, length=64)


def gpt_training(torch: Any, short: bool) -> Call:
    net = gpt(torch)
    tokens, labels = torch.randint(0, 65, (12, 64)), torch.randint(0, 65, (12 * 64,))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    return training(torch, net, tokens, labels, optimizer, short)


@case("char-GPT training step, 12x64, AdamW", "networks", 0.85)
def gpt_step(torch: Any) -> Call:
    return gpt_training(torch, short=False)


@case("char-GPT training step, 12x64, AdamW, bfloat16 autocast", "networks", 1.0)
def gpt_short_step(torch: Any) -> Call:
    return gpt_training(torch, short=True)


@case("char-GPT inference, batch 1", "networks", 0.6)
def gpt_inference(torch: Any) -> Call:
    return inference(torch, gpt(torch), torch.randint(0, 65, (1, 64)))
