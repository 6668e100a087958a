"""What programs are warned of, and that the line of the program is named, once for each."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

x = torch.ones(2, 3)
loss = torch.ones((), requires_grad=True)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.softmax(x), "Implicit dimension choice for softmax"),
        (lambda: F.log_softmax(x), "Implicit dimension choice for log_softmax"),
        (lambda: F.softmin(x), "Implicit dimension choice"),
        (lambda: nn.Softmax()(x), "Implicit dimension choice"),
        (lambda: torch.func.vmap(F.softmax)(x), "Implicit dimension choice"),
        (lambda: F.gumbel_softmax(x, eps=1e-5), "`eps` parameter is deprecated"),
        (lambda: torch.stft(x[0], 2, 1, return_complex=True), "A window was not provided"),
        (lambda: x.add(2, x), "This overload of add is deprecated"),
        (lambda: torch.addcdiv(x, 2, x, x), "This overload of addcdiv is deprecated"),
        (lambda: F.dropout2d(x), "dropout2d: Received a 2-D input"),
        (lambda: F.dropout2d(x[None]), "dropout2d: Received a 3D input"),
        (lambda: nn.Dropout3d()(x[None]), "dropout3d: Received a 3-D input"),
        (lambda: torch.std(x[0, :1]), r"std\(\): degrees of freedom is <= 0"),
        (lambda: x.var(0, correction=2), r"var\(\): degrees of freedom is <= 0"),
        (lambda: torch.var_mean(x[:1], 0), r"var_mean\(\): degrees of freedom is <= 0"),
        (lambda: torch.std_mean(x[:0]), r"std_mean\(\): degrees of freedom is <= 0"),
        (lambda: x[:, :0].var(1, correction=0), r"var\(\): degrees of freedom is <= 0"),
        (lambda: torch.cov(x[:, :1]), r"cov\(\): degrees of freedom is <= 0"),
        (lambda: torch.tensor(x), "To copy construct from a tensor"),
        (lambda: torch.meshgrid(x[0], x[0]), "torch.meshgrid: in an upcoming release"),
        (lambda: x[torch.tensor([1, 0], dtype=torch.uint8)], "indexing with dtype torch.uint8"),
        (lambda: torch.where(torch.tensor([1], dtype=torch.uint8), x, x), "uint8 condition"),
        (lambda: x[0].T, "The use of `x.T`"),
        (lambda: torch.tensor(3).T, "The use of `x.T`"),
        (lambda: float(loss), "Converting a tensor with requires_grad=True to a scalar"),
        (lambda: math.sqrt(loss), "Converting a tensor with requires_grad=True to a scalar"),
        (lambda: np.float64(loss), "Converting a tensor with requires_grad=True to a scalar"),
    ],
)
def test_doubtful_calls_warn_at_the_line_of_the_program(
    call: Callable[[], object], text: str
) -> None:
    with pytest.warns(UserWarning, match=text) as caught:
        call()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert caught[0].lineno == inspect.getsourcelines(call)[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.softmax(x, 1),
        lambda: F.dropout2d(x[None, None]),
        lambda: F.dropout3d(x[None, None]),
        lambda: x.std(0),
        lambda: x[0].var(correction=2),
        lambda: x[0, :1].var(correction=0),
        lambda: torch.cov(x),
        lambda: torch.cartesian_prod(x[0], x[0]),
        lambda: torch.meshgrid(x[0], x[0], indexing="ij"),
        lambda: torch.as_tensor(x),
        lambda: torch.tensor([x[0, 0], x[0, 1]]),
        lambda: x[torch.tensor([True, False])],
        lambda: x.T,
        lambda: x.mT,
        lambda: (float(loss.detach()), loss.item(), int(loss), bool(loss), f"{loss:.3f}"),
    ],
)
def test_proper_calls_do_not_warn(call: Callable[[], object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call()


def test_a_line_warns_once_by_default_and_each_line_for_itself() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        layer = nn.Softmax()
        for _ in range(3):
            layer(x)
        layer(x)
    assert len(caught) == 2


def test_a_warning_that_is_made_an_error_stops_the_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (lambda: F.softmax(x), lambda: torch.tensor(x), lambda: x[0, :1].std()):
            with pytest.raises(UserWarning):
                call()
