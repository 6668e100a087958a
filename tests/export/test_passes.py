"""Changes of exported programs."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import nn
from rushlight.export.passes import move_to_device_pass


class Everywhere(nn.Module):
    """Makes tensors in all ways, by name of a device and without."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.tied = self.layer.weight
        self.layer.bias.requires_grad_(False)
        self.register_buffer("seen", torch.ones(3))
        self.register_buffer("lost", torch.ones(3), persistent=False)
        self.constant = torch.arange(3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = [
            torch.zeros(3),
            torch.ones(3, device="cpu"),
            torch.zeros(x.shape[0] * 2, 3)[: x.shape[0]],
            x.to("cpu"),
            x.to(device=torch.device("cpu"), dtype=torch.float64),
            torch.randn(3),
            torch.arange(3),
            torch.zeros_like(x, device="cpu"),
            torch.zeros_like(x),
            x.new_zeros(3),
            torch.tensor([1.0, 2, 3]),
        ]
        return sum(made, self.layer(x)) + self.seen + self.lost + self.constant


def exported() -> Any:
    example = (torch.ones(2, 3),)
    shapes = {"x": {0: torch.export.Dim("n")}}
    return torch.export.export(Everywhere(), example, dynamic_shapes=shapes)


def test_a_program_moves_with_all_that_it_makes() -> None:
    program = exported()
    moved = move_to_device_pass(program, "meta")
    assert moved is program
    module = moved.module()
    assert module(torch.ones(4, 3, device="meta")).is_meta
    tensors = [*moved.state_dict.values(), *moved.constants.values(), *moved.parameters()]
    assert all(tensor.is_meta for tensor in tensors) and moved.example_inputs[0][0].is_meta
    assert moved.state_dict["tied"] is moved.state_dict["layer.weight"]
    assert isinstance(module.layer.bias, nn.Parameter) and not module.layer.bias.requires_grad
    tensors = {**moved.state_dict, **moved.constants}
    paths = [spec.target for spec in moved.graph_signature.input_specs if spec.target]
    (result,) = moved.graph_module(*map(tensors.get, paths), torch.ones(2, 3, device="meta"))
    assert result.is_meta


def test_devices_are_moved_one_for_another() -> None:
    program = move_to_device_pass(exported(), {"cuda:0": "meta"})
    assert program.module()(torch.ones(2, 3)).device.type == "cpu"
    program = move_to_device_pass(program, {"cpu": "meta", "cuda:0": "cpu"})
    assert program.module()(torch.ones(2, 3, device="meta")).is_meta
