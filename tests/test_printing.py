"""The text of tensors, in PyTorch's layout."""

import pytest

import rushlight as torch
from rushlight import _tensor_str


class Kept(torch.Tensor):
    """Whose parameters are of the class."""


@pytest.fixture(autouse=True)
def default_options():
    yield
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (1, "tensor(1)"),
        (1.5, "tensor(1.5000)"),
        (2.0, "tensor(2.)"),
        (True, "tensor(True)"),
        ([], "tensor([])"),
        ([1, -20, 300], "tensor([  1, -20, 300])"),
        ([True, False], "tensor([ True, False])"),
        ([1.0, 2.0, -0.0], "tensor([1., 2., -0.])"),
        ([1.0, 2.5], "tensor([1.0000, 2.5000])"),
        ([0.0, 0.0], "tensor([0., 0.])"),
        ([1.0, float("nan"), float("inf")], "tensor([1., nan, inf])"),
        ([1.5, float("-inf")], "tensor([1.5000,   -inf])"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1e9], "tensor([1.0000e+09])"),
        ([1.0, 1001.5], "tensor([1.0000e+00, 1.0015e+03])"),
        ([1 + 2j, -3.5 - 1j], "tensor([ 1.0000+2.j, -3.5000-1.j])"),
        ([[1, 2], [3, 4]], "tensor([[1, 2],\n        [3, 4]])"),
        (
            [[[1], [2]], [[3], [4]]],
            "tensor([[[1],\n         [2]],\n\n        [[3],\n         [4]]])",
        ),
    ],
)
def test_numbers_share_a_notation_and_a_width(values, text) -> None:
    assert repr(torch.tensor(values)) == text


def test_long_rows_are_broken_to_fit_the_line() -> None:
    lines = repr(torch.arange(40)).splitlines()
    assert (
        lines[0]
        == "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,"
    )
    assert lines[1].startswith("        18, 19")
    assert all(len(line) <= 80 for line in lines)


def test_the_middle_of_large_tensors_is_left_out() -> None:
    assert repr(torch.arange(2000)) == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"
    assert repr(torch.zeros(2, 1000)) == (
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.]])"
    )
    assert repr(torch.zeros(1001, 1)) == (
        "tensor([[0.],\n        [0.],\n        [0.],\n        ...,\n"
        "        [0.],\n        [0.],\n        [0.]])"
    )


def test_only_numbers_that_are_shown_decide_the_notation() -> None:
    x = torch.zeros(2000)
    x[1000] = 1e-9
    x[0] = 2.0
    assert repr(x) == "tensor([2., 0., 0.,  ..., 0., 0., 0.])"


def test_what_is_not_usual_is_noted() -> None:
    assert repr(torch.ones(1, dtype=torch.float64)) == "tensor([1.], dtype=torch.float64)"
    assert repr(torch.ones(1, dtype=torch.bfloat16)) == "tensor([1.], dtype=torch.bfloat16)"
    assert repr(torch.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(torch.ones(1, dtype=torch.complex64)) == "tensor([1.+0.j])"
    assert repr(torch.ones(1, dtype=torch.complex128)) == "tensor([1.+0.j], dtype=torch.complex128)"


def test_empty_tensors_tell_shape_and_dtype() -> None:
    assert repr(torch.empty(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(torch.empty(0, dtype=torch.int64)) == "tensor([], dtype=torch.int64)"


def test_results_name_the_op_that_made_them() -> None:
    x = torch.ones(1, requires_grad=True)
    assert repr(x + 1).startswith("tensor([2.], grad_fn=<Add")


def test_a_note_that_does_not_fit_goes_on_a_new_line() -> None:
    text = repr(torch.arange(14, dtype=torch.float64) + 10)
    assert text.splitlines()[-1] == "       dtype=torch.float64)"


def test_parameters_and_subclasses_say_so() -> None:
    assert repr(torch.nn.Parameter(torch.ones(1))) == (
        "Parameter containing:\ntensor([1.], requires_grad=True)"
    )
    kept = torch.nn.Parameter(torch.ones(1).as_subclass(Kept))
    assert repr(kept) == "Parameter(Kept([1.], requires_grad=True))"


def test_options_change_the_layout() -> None:
    x = torch.tensor([1.23456, 2.0])
    torch.set_printoptions(precision=2)
    assert repr(x) == "tensor([1.23, 2.00])"
    torch.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([1.23e+00, 2.00e+00])"
    torch.set_printoptions(profile="short")
    assert repr(x) == "tensor([1.23, 2.00])"
    torch.set_printoptions(threshold=3, edgeitems=1)
    assert repr(torch.arange(5)) == "tensor([0,  ..., 4])"
    torch.set_printoptions(profile="full")
    assert "..." not in repr(torch.zeros(2000))
    torch.set_printoptions(profile="default", linewidth=20)
    assert max(map(len, repr(torch.arange(30)).splitlines())) <= 20


def test_str_and_format() -> None:
    assert str(torch.ones(2)) == "tensor([1., 1.])"
    assert f"{torch.tensor(1.5):.2f}" == "1.50"


def test_options_hold_for_a_while() -> None:
    x = torch.tensor([1.12345, 2.0])
    before = _tensor_str.get_printoptions()
    with _tensor_str.printoptions(precision=1, sci_mode=False):
        assert repr(x) == "tensor([1.1, 2.0])" and _tensor_str.PRINT_OPTS.precision == 1
    assert _tensor_str.get_printoptions() == before and repr(x) == "tensor([1.1235, 2.0000])"
    assert _tensor_str._tensor_str(x, 0) == "[1.1235, 2.0000]"
    assert _tensor_str._tensor_str(torch.ones(0), 0) == "[]"
