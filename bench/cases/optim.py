"""Steps of all optimizers: many parameters, where calls count, and one large, where memory does.

PyTorch runs its fastest form: fused where there is one, else over all parameters at once.
"""

from __future__ import annotations

from typing import Any

from cases.case import Call, case

FASTEST: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "fused": True},
    "Adam": {"fused": True},
    "AdamW": {"fused": True},
    "Adagrad": {"fused": True},
    "RMSprop": {"foreach": True},
    "Adadelta": {"foreach": True},
    "Adamax": {"foreach": True},
    "NAdam": {"foreach": True},
    "RAdam": {"foreach": True},
    "ASGD": {"foreach": True},
    "Rprop": {"foreach": True},
    "Adafactor": {"foreach": True},
    "Muon": {},
}
MLP_WIDTH, MLP_LAYERS = 64, 20


def step_of(torch: Any, name: str, shapes: list[tuple[int, ...]]) -> Call:
    params = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    for param in params:
        param.grad = torch.randn(param.shape) * 1e-3
    return getattr(torch.optim, name)(params, lr=1e-5, **FASTEST[name]).step


def add_cases(name: str) -> None:
    matrix, bias = (MLP_WIDTH, MLP_WIDTH), (MLP_WIDTH,)
    layer = [matrix] if name == "Muon" else [matrix, bias]
    large = (512, 512) if name == "Muon" else (10_000_000,)
    large = (2500, 4000) if name == "Adafactor" else large

    @case(f"{name} step, {MLP_LAYERS} layers of {MLP_WIDTH}", "models", 1.0)
    def mlp(torch: Any) -> Call:
        return step_of(torch, name, layer * MLP_LAYERS)

    @case(f"{name} step, one parameter of {large}", "models", 1.0)
    def one(torch: Any) -> Call:
        return step_of(torch, name, [large])


for optimizer in FASTEST:
    add_cases(optimizer)
