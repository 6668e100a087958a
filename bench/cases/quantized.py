"""Networks of 8-bit integers: weights alone, and all of it."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from cases.case import Call, case
from cases.networks import inference


def dynamic(torch: Any, layer: Any) -> Any:
    return torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(layer))


@case("dynamically quantized Linear(1024, 1024), batch 1", "models", 1.0)
def dynamic_linear(torch: Any) -> Call:
    return inference(torch, dynamic(torch, torch.nn.Linear(1024, 1024)), torch.randn(1, 1024))


@case("dynamically quantized LSTM of 256, 2 layers, 32x4", "models", 1.0)
def dynamic_lstm(torch: Any) -> Call:
    return inference(torch, dynamic(torch, torch.nn.LSTM(256, 256, 2)), torch.randn(32, 4, 256))


def resnet18(torch: Any) -> Any:
    home = "torchvision.models" if torch.__name__ == "torch" else "rushlight.vision.models"
    return import_module(home).resnet18()


@case("ResNet-18 inference in 8-bit integers, 1x3x224x224", "networks", 1.0)
def static_resnet(torch: Any) -> Call:
    fx = import_module(f"{torch.__name__}.ao.quantization.quantize_fx")
    x = torch.randn(1, 3, 224, 224)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        mapping = torch.ao.quantization.get_default_qconfig_mapping("x86")
        prepared = fx.prepare_fx(resnet18(torch).eval(), mapping, (x,))
        prepared(x)
        return inference(torch, fx.convert_fx(prepared), x)
