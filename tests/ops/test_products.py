"""Products of matrices beyond their samples: how often they round."""

import pytest

import rushlight as torch


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_addmm_of_a_bias_rounds_once(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    bias, a, b = (torch.randn(*sizes).to(dtype) for sizes in [(64,), (64, 64), (64, 64)])
    exact = bias.double() + a.double() @ b.double()
    wrong = (torch.addmm(bias, a, b) - exact).abs()
    assert (wrong <= exact.abs() * torch.finfo(dtype).eps / 2 + 1e-4).all()
