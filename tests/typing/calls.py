"""What type checkers make of calls: `make lint` checks this file, nothing runs it.

A call of a module has the signature of forward, and modules stay assignable to Callable.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Callable
from typing import Any, assert_type

import rushlight as torch
from rushlight import Tensor, nn


class Net(nn.Module):
    other: nn.Module

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])
        self.last = nn.Sequential(nn.ReLU(), nn.Linear(2, 1))

    def forward(self, x: Tensor, *, deep: bool = False) -> tuple[Tensor, int]:
        for layer in self.layers:
            x = layer(x)
        return self.last(self.other(x, 3)), 1


class Deeper(Net):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


class Replaced(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.forward = function


def check_calls(x: Tensor, module: nn.Module) -> None:
    assert_type(Net()(x, deep=True), tuple[Tensor, int])
    assert_type(nn.Linear(2, 2)(x), Tensor)
    assert_type(nn.MultiheadAttention(2, 1)(x, x, x), tuple[Tensor, Tensor | None])
    assert_type(module(x, 1, key=2), Any)
    assert_type(Deeper()(x), Any)
    assert_type(Replaced(torch.relu)(x), Any)
    assert_type(nn.DataParallel(Net())(x), Any)
    assert_type(nn.DataParallel(Net()).module, Net)
    Net()(x, depth=True)  # pyright: ignore[reportCallIssue]
    nn.Linear(2, 2)("x")  # pyright: ignore[reportArgumentType]


def check_assignments() -> None:
    functions: list[Callable[[Tensor], Tensor]] = [nn.ReLU(), nn.Linear(2, 2), torch.relu]
    loss: Callable[[Tensor, Tensor], Tensor] = nn.MSELoss()
    anything: Callable[..., Any] = Net()
    wrong: Callable[[str], str] = nn.ReLU()  # pyright: ignore[reportAssignmentType]
    assert_type(list(map(nn.ReLU(), [torch.ones(2)])), list[Tensor])
    print(functions, loss, anything, wrong)


def check_named_results(x: Tensor) -> None:
    assert_type(x.max(), Tensor)
    assert_type(x.max(dim=1).values, Tensor)
    assert_type(torch.linalg.svd(x).S, Tensor)
    values, indices = x.topk(2)
    assert_type(values, Tensor)
    assert_type(indices, Tensor)


def check_names_imported_later(x: Tensor) -> None:
    assert_type(torch.einsum("ij->i", x), Tensor)
    assert_type(torch.fft.rfft(x), Tensor)
    assert_type(torch.special.i0(x), Tensor)
    torch.einsums("ij->i", x)  # pyright: ignore[reportAttributeAccessIssue]
