"""torch._foreach_*: an op for each tensor of a list."""

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils._foreach_utils import _group_tensors_by_device_and_dtype


def tensors() -> list[torch.Tensor]:
    return [torch.tensor([1.0, 4.0]), torch.tensor([[9.0]])]


def values(results: object) -> list[object]:
    assert isinstance(results, (list, tuple))
    return [x.tolist() for x in results]


def test_plain_forms_return_new_tensors() -> None:
    own = tensors()
    assert values(torch._foreach_sqrt(own)) == [[1, 2], [[3]]]
    assert values(torch._foreach_add(own, 1)) == [[2, 5], [[10]]]
    assert values(torch._foreach_mul(own, [2, 3.0])) == [[2, 8], [[27]]]
    assert values(torch._foreach_sub(own, own, alpha=2)) == [[-1, -4], [[-9]]]
    assert values(torch._foreach_maximum(own, 2)) == [[2, 4], [[9]]]
    assert values(torch._foreach_max(own)) == [4, 9]
    assert values(torch._foreach_pow(2, own)) == [[2, 16], [[512]]]
    assert values(torch._foreach_powsum(own, 2)) == [17, 81]
    assert values(own) == [[1, 4], [[9]]]


def test_forms_in_place_return_the_list() -> None:
    own = tensors()
    assert torch._foreach_neg_(own) is own
    assert torch._foreach_copy_(own, tensors()) is own
    torch._foreach_lerp_(own, torch._foreach_clone(own), weight=0.5)
    assert values(own) == [[1, 4], [[9]]]
    assert values(torch._foreach_zero_(own)) == [[0, 0], [[0]]]


@pytest.mark.parametrize("scalars", [[1.0, 2.0], torch.tensor([1.0, 2.0])])
def test_an_update_of_adam(scalars: object) -> None:
    own = tensors()
    torch._foreach_addcdiv_(own, tensors(), tensors(), scalars)
    np.testing.assert_array_equal(own[0], [2, 5])
    np.testing.assert_array_equal(own[1], [[11]])
    torch._foreach_addcmul_(own, tensors(), tensors(), value=-1)
    np.testing.assert_array_equal(own[0], [1, -11])


def test_operands_have_names() -> None:
    own = tensors()
    torch._foreach_mul_(own, scalar=2.0)
    np.testing.assert_array_equal(own[0], [2, 8])
    torch._foreach_add_(self=own, scalars=[1.0, 2.0])
    np.testing.assert_array_equal(own[1], [[20]])
    (moved, _) = torch._foreach_lerp(own, tensors1=tensors(), weight=1.0)
    np.testing.assert_array_equal(moved, [1, 4])
    (moved, _) = torch._foreach_sub(own, other=own, alpha=2)
    np.testing.assert_array_equal(moved, [-3, -9])
    (squares, _) = torch._foreach_pow(own, exponent=2)
    np.testing.assert_array_equal(squares, [9, 81])
    parts: dict[str, Any] = {
        "tensor1": tensors(),
        "tensor2": tensors(),
        "scalars": torch.tensor([2.0, 3.0]),
    }
    (grown, _) = torch._foreach_addcmul(own, **parts)
    np.testing.assert_array_equal(grown, [5, 41])
    with pytest.raises(TypeError, match="unexpected keyword argument 'scale'"):
        torch._foreach_mul_(own, scale=2.0)


def test_lists_must_be_of_one_length() -> None:
    with pytest.raises(RuntimeError, match="_foreach_add: .*same number of tensors"):
        torch._foreach_add(tensors(), tensors()[:1])
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_add([], 1)
    for value in (None, 3, torch.ones(2)):
        with pytest.raises(TypeError, match=r"argument .self. .* must be tuple of"):
            torch._foreach_add(value, 1)
    with pytest.raises(AttributeError):
        torch._foreach_nothing  # noqa: B018


def test_tensors_are_grouped_by_device_and_dtype() -> None:
    first: list[torch.Tensor | None] = [torch.ones(1), torch.ones(1).double(), torch.zeros(2)]
    second: list[torch.Tensor | None] = [None, None, torch.ones(2)]
    groups = _group_tensors_by_device_and_dtype([first, second, []], with_indices=True)
    assert list(groups) == [
        (torch.device("cpu"), torch.float32),
        (torch.device("cpu"), torch.float64),
    ]
    (own, other, empty), indices = groups[torch.device("cpu"), torch.float32]
    assert own[0] is first[0] and own[1] is first[2]
    assert other == [None, second[2]] and empty == [] and indices == [0, 2]
