"""Every way to a Hessian gives the same one: modes in each order, inside vmap and out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rushlight as torch
from rushlight import Tensor
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, vmap

POINT = torch.tensor([0.6, 1.1, 0.3], dtype=torch.float64)
WEIGHTS = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


def matrix(x: Tensor) -> Tensor:
    return torch.outer(x, x) + torch.diag(x + 1)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "prod": lambda x: x.prod(),
    "prod of dim": lambda x: x.prod(0),
    "select": lambda x: x[0] * x[1] * x[2],
    "square of sum": lambda x: x.sum() ** 2,
    "norm": lambda x: x.norm(),
    "logsumexp": lambda x: x.logsumexp(0),
    "std": lambda x: x.std(),
    "softmax": lambda x: x.softmax(0) @ WEIGHTS,
    "log_softmax": lambda x: x.log_softmax(0).exp() @ WEIGHTS,
    "cumprod": lambda x: x.cumprod(0).sum(),
    "cumsum": lambda x: (x.cumsum(0) ** 2).sum(),
    "logcumsumexp": lambda x: x.logcumsumexp(0).sum(),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (3,)).exp() @ WEIGHTS,
    "max": lambda x: x.max() ** 2,
    "elements": lambda x: (x.exp() * x.tanh() + x.sqrt()).sum(),
    "det": lambda x: torch.linalg.det(matrix(x)),
    "inv": lambda x: torch.linalg.inv(matrix(x)).sum(),
    "cholesky": lambda x: torch.linalg.cholesky(matrix(x)).sum(),
    "svdvals": lambda x: (torch.linalg.svdvals(matrix(x)) ** 2).sum(),
}
UNITS = torch.eye(3, dtype=torch.float64)
SAME = torch.stack([POINT, POINT])
WAYS: dict[str, Callable[[Callable[[Tensor], Tensor]], Tensor]] = {
    "forward over reverse": lambda f: jacfwd(jacrev(f))(POINT),
    "reverse over reverse": lambda f: jacrev(jacrev(f))(POINT),
    "reverse over forward": lambda f: jacrev(jacfwd(f))(POINT),
    "forward over forward": lambda f: jacfwd(jacfwd(f))(POINT),
    "products": lambda f: vmap(lambda v: jvp(grad(f), (POINT,), (v,))[1])(UNITS),
    "vmap of hessian": lambda f: vmap(hessian(f))(SAME)[1],
    "vmap of reverse": lambda f: vmap(jacrev(jacrev(f)))(SAME)[1],
    "vmap of forward": lambda f: vmap(jacfwd(jacfwd(f)))(SAME)[1],
}


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_ways_agree(name: str, way: str) -> None:
    expected = torch.autograd.functional.hessian(FUNCTIONS[name], POINT)
    torch.testing.assert_close(WAYS[way](FUNCTIONS[name]), expected, rtol=1e-6, atol=1e-8)
