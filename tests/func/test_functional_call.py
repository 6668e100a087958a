"""Modules called with tensors of someone else's (rushlight/func/modules.py)."""

import pytest

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.func import functional_call


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.bias = self.layer.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + self.bias


def test_one_name_of_a_tied_tensor_is_enough_in_strict_calls() -> None:
    new = {"layer.weight": torch.tensor([[2.0]]), "layer.bias": torch.tensor([5.0])}
    assert functional_call(Tied(), new, torch.ones(1), strict=True).item() == 12
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): bias"):
        functional_call(Tied(), new, torch.ones(1), strict=True, tie_weights=False)


def test_what_the_call_sets_comes_back_in_the_dict() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = nn.Buffer(torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            self.count = self.count + 1
            return x * self.count

    module, before = Counts(), torch.tensor([2.0])
    state = {"count": before}
    assert functional_call(module, state, torch.ones(1)).item() == 3
    assert (module.count.item(), before.item(), state["count"].item()) == (0, 2, 3)


def test_a_new_parameter_is_a_parameter_while_the_call_runs() -> None:
    class Names(nn.Module):
        def forward(self) -> list[str]:
            return [name for name, _ in self.named_parameters()]

    module = Names()
    new = {"one": nn.Parameter(torch.ones(1)), "other": torch.ones(1)}
    assert functional_call(module, new) == ["one"]
    assert not hasattr(module, "one")
    assert not hasattr(module, "other")


def test_modules_inside_themselves_can_be_called_but_not_listed() -> None:
    module = Tied()
    module.layer.above = module
    new = {"layer.above.layer.weight": torch.tensor([[2.0]])}
    expected = 2 + 2 * module.get_parameter("bias").item()
    result = functional_call(module, new, torch.ones(1), tie_weights=False)
    assert result.item() == pytest.approx(expected)
    with pytest.raises(RecursionError, match="inside itself"):
        list(module.named_modules(remove_duplicate=False))
