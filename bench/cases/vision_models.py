"""Networks for photographs of 224 x 224, from rushlight.vision and from torchvision: inference of
one image and training steps.
"""

from __future__ import annotations

import importlib
from typing import Any

from cases.case import Call, case
from cases.networks import inference, training


def network(torch: Any, name: str) -> Any:
    home = "torchvision" if torch.__name__ == "torch" else "rushlight.vision"
    return getattr(importlib.import_module(f"{home}.models"), name)(weights=None)


def see_one(torch: Any, name: str) -> Call:
    return inference(torch, network(torch, name), torch.randn(1, 3, 224, 224))


def learn(torch: Any, name: str, batch: int) -> Call:
    net = network(torch, name)
    x, labels = torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    return training(torch, net, x, labels, optimizer)


@case("ResNet-50 inference, batch 1", "networks", 1.0)
def resnet50(torch: Any) -> Call:
    return see_one(torch, "resnet50")


@case("ConvNeXt-Tiny inference, batch 1", "networks", 1.0)
def convnext_tiny(torch: Any) -> Call:
    return see_one(torch, "convnext_tiny")


@case("MobileNetV3-Large training step, batch 4", "networks", 1.0)
def mobilenet_step(torch: Any) -> Call:
    return learn(torch, "mobilenet_v3_large", 4)


@case("Swin-T training step, batch 1", "networks", 1.0)
def swin_step(torch: Any) -> Call:
    return learn(torch, "swin_t", 1)
