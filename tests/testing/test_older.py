"""assert_allclose, which assert_close replaced."""

from __future__ import annotations

import pytest

import rushlight as torch


@pytest.mark.filterwarnings("ignore:.*assert_allclose:FutureWarning")
def test_tolerances_are_looser_and_dtypes_do_not_count() -> None:
    x = torch.ones(3)
    torch.testing.assert_allclose(x * (1 + 9e-5), x)
    torch.testing.assert_allclose(x, x.double())
    torch.testing.assert_allclose(1.0, torch.tensor(1.0))
    torch.testing.assert_allclose(torch.tensor(float("nan")), torch.tensor(float("nan")))
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        torch.testing.assert_allclose(x * (1 + 2e-4), x)
    with pytest.raises(AssertionError, match="mine"):
        torch.testing.assert_allclose(x + 1, x, rtol=0.1, atol=0.1, msg="mine")


def test_it_says_that_it_is_old() -> None:
    with pytest.warns(FutureWarning, match="assert_close"):
        torch.testing.assert_allclose(torch.ones(1), torch.ones(1))
