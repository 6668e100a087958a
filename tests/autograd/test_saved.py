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


def test_hooks_hang_on_single_saved_tensors() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    log: list[str] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        log.append("pack")
        return tensor * 10

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        log.append("unpack")
        return tensor / 5

    y.grad_fn._raw_saved_other.register_hooks(pack, unpack)
    assert log == ["pack"]
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [6.0, 9.0] and log == ["pack", "unpack"]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [2.0, 2.0]
    result = x.exp()
    result.grad_fn._raw_saved_result.register_hooks(lambda t: t.clone(), lambda t: t * 2)
    result.sum().backward()
    assert torch.allclose(x.grad, 2 * x.detach().exp())


def test_hooks_unpack_once_for_all_gradients_of_an_op() -> None:
    log: list[str] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        log.append("pack")
        return tensor

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        log.append("unpack")
        return tensor

    x, y = (torch.full((2,), value, requires_grad=True) for value in (6.0, 2.0))
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        quotient = x / y  # y is read for both gradients
    (quotient * quotient.detach()).sum().backward()
    assert log == ["pack", "pack", "unpack", "unpack"]
    assert x.grad.tolist() == [1.5, 1.5] and y.grad.tolist() == [-4.5, -4.5]
    quotient = x / y
    quotient.grad_fn._raw_saved_other.register_hooks(pack, unpack)
    for _ in range(2):  # once for each backward
        log.clear()
        quotient.sum().backward(retain_graph=True)
        assert log == ["unpack"]


def test_where_single_saved_tensors_take_no_hooks() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    saved = (x * x).grad_fn._raw_saved_self
    with pytest.raises(TypeError, match="both hooks must be functions, not int"):
        saved.register_hooks(1, 2)
    with pytest.raises(ZeroDivisionError):
        saved.register_hooks(lambda t: 1 / 0, lambda t: t)
    saved.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="have already been set"):
        saved.register_hooks(lambda t: t, lambda t: t)
    y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(AttributeError, match="_raw_saved_nothing"):
        y.grad_fn._raw_saved_nothing  # noqa: B018
