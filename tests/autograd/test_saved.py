"""What nodes kept for backward, by PyTorch's names."""

import pytest

import rushlight as torch


def test_saved_arguments_and_results() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.0)
    product = x * y
    torch.testing.assert_close(product.grad_fn._saved_other, y)
    assert product.grad_fn._saved_self is None  # y wants no gradient
    result = x.exp()
    assert result.grad_fn._saved_result is not None
    torch.testing.assert_close(result.grad_fn._saved_result, result)
    with pytest.raises(AttributeError, match="no attribute '_saved_nothing'"):
        result.grad_fn._saved_nothing  # noqa: B018


def test_saved_lists_are_tuples() -> None:
    x, y = (torch.ones(2, 2, requires_grad=True) for _ in range(2))
    product = x @ y
    assert [name for name, _ in product.grad_fn._saved()] == ["input", "mat2"]


def test_freed_ones_are_told() -> None:
    result = torch.ones(2, requires_grad=True).exp()
    result.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        result.grad_fn._saved_result  # noqa: B018
