"""assert_close: what it accepts, what it refuses, and what it says."""

import collections

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_close

NAN, INF = float("nan"), float("inf")


def message_of(actual, expected, **options):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (torch.tensor([1.0, INF]), torch.tensor([1.0 + 1e-6, INF])),
        (torch.tensor([1.0]), torch.nn.Parameter(torch.tensor([1.0]))),
        (torch.tensor([1 + 1j]), torch.tensor([1 + 1.0000001j])),
        (torch.empty(0), torch.empty(0)),
        (np.array([1.0]), np.array([1.0 + 1e-9])),
        (1.0, 1.0 + 1e-9),
        (np.float32(1), 1.0),
        (True, np.bool_(True)),
        (None, None),
        ([1, (2.0,)], (1, [2.0])),
        ({"a": 1, "b": [2]}, collections.OrderedDict(b=[2], a=1)),
        ([], []),
    ],
)
def test_close_values_pass(actual, expected) -> None:
    assert_close(actual, expected)
    assert_close(expected, actual)


@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [
        (torch.float16, 1e-3),
        (torch.bfloat16, 1.6e-2),
        (torch.float32, 1.3e-6),
        (torch.float64, 1e-7),
    ],
)
def test_the_tolerance_follows_from_the_dtype(dtype, rtol) -> None:
    expected = torch.tensor([1024.0], dtype=dtype)
    step = 1024 * torch.finfo(dtype).eps
    inside = expected + max(step * int(0.9 * rtol * 1024 / step), 0)
    assert_close(inside, expected)
    outside = expected + step * (int(1.1 * rtol * 1024 / step) + 1)
    assert f"(up to {rtol} allowed)" in message_of(outside, expected)


def test_integers_must_be_equal() -> None:
    assert_close(torch.tensor([2**62]), torch.tensor([2**62]))
    text = message_of(torch.tensor([2**62]), torch.tensor([2**62 + 1]))
    assert text.startswith("Tensor-likes are not equal!")
    text = message_of(torch.tensor([200], dtype=torch.uint8), torch.tensor([3], dtype=torch.uint8))
    assert "Greatest absolute difference: 197 at index (0,)" in text


def test_the_message_counts_and_places_the_differences() -> None:
    actual = torch.tensor([[1.0, 2.0], [3.0, 8.0]])
    expected = torch.tensor([[1.0, 4.0], [3.0, 9.0]])
    assert message_of(actual, expected) == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 2.0 at index (0, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.5 at index (0, 1) (up to 1.3e-06 allowed)"
    )


def test_single_values_are_shown() -> None:
    assert message_of(torch.tensor(3), torch.tensor(4)) == (
        "Scalars are not equal!\n\nExpected 4 but got 3.\n"
        "Absolute difference: 1\nRelative difference: 0.25"
    )
    assert message_of(1.5, 1.0, rtol=0.1, atol=0.1) == (
        "Scalars are not close!\n\nExpected 1.0 but got 1.5.\n"
        "Absolute difference: 0.5 (up to 0.1 allowed)\n"
        "Relative difference: 0.5 (up to 0.1 allowed)"
    )


def test_the_place_in_a_structure_is_told() -> None:
    text = message_of({"a": [1, torch.zeros(1)]}, {"a": [1, torch.ones(1)]})
    assert text.endswith("The failure occurred for item ['a'][1]")


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (torch.zeros(2), torch.zeros(3), "attribute 'shape' do not match: torch.Size([2])"),
        (torch.zeros(1), torch.zeros(1).double(), "'dtype' do not match: torch.float32 != torch"),
        (1, 1.0, "The (d)types do not match: <class 'int'> != <class 'float'>."),
        (None, 1, "None mismatch: None is not 1"),
        (True, False, "Booleans mismatch: True is not False"),
        ([1], [1, 2], "The length of the sequences mismatch: 1 != 2"),
        ({"a": 1}, {"b": 1}, "Missing keys in the actual mapping: ['b']"),
        ({"a": 1}, {"b": 1}, "Additional keys in the actual mapping: ['a']"),
    ],
)
def test_what_is_of_another_kind_is_told(actual, expected, text) -> None:
    assert text in message_of(actual, expected)


def test_dtypes_may_differ_when_they_are_not_checked() -> None:
    assert_close(torch.ones(1).half(), torch.tensor([1.0005]).double(), check_dtype=False)
    assert_close(1, 1.0, check_dtype=False)


def test_strides_are_compared_when_asked() -> None:
    x = torch.zeros(2, 3)
    assert_close(x, torch.zeros(3, 2).t())
    assert "'stride()' do not match: (3, 1) != (1, 2)" in message_of(
        x, torch.zeros(3, 2).t(), check_stride=True
    )


def test_nan_equals_nan_only_when_asked() -> None:
    for value in (NAN, torch.tensor([1.0, NAN]), torch.tensor([complex(NAN, 1)])):
        assert "nan" in message_of(value, value)
        assert_close(value, value, equal_nan=True)
    assert_close(torch.tensor([INF]), torch.tensor([INF]))
    assert "inf" in message_of(torch.tensor([INF]), torch.tensor([-INF]), rtol=1, atol=1)
    assert "nan" in message_of(torch.tensor([NAN]), torch.tensor([1.0]), equal_nan=True)


def test_tolerances_go_together() -> None:
    x = torch.tensor([1.0])
    assert_close(x, torch.tensor([1.5]), rtol=0.5, atol=0)
    assert "not equal" in message_of(x, x + 1e-6, rtol=0, atol=0)
    with pytest.raises(ValueError, match="but got no atol"):
        assert_close(x, x, rtol=0.5)
    with pytest.raises(ValueError, match="but got no rtol"):
        assert_close(x, x, atol=0.5)


@pytest.mark.parametrize("kind", [torch.tensor, np.float32, np.array])
def test_tolerances_may_be_tensors_and_arrays_of_one_element(kind) -> None:
    assert_close(torch.ones(2), torch.full((2,), 1.25), rtol=kind(0.0), atol=kind(0.25))
    assert "(up to 0.125 allowed)" in message_of(1.0, 1.25, rtol=kind(0.0), atol=kind(0.125))


def test_the_message_can_be_replaced_or_extended() -> None:
    assert message_of(1, 2, msg="wrong") == "wrong"
    assert message_of(1, 2, msg=lambda text: f"step 3: {text}").startswith("step 3: Scalars are")


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("a", "a"),
        (1.0, torch.tensor(1.0)),
        (np.ones(1), torch.ones(1)),
        (torch.ones(1), [1.0]),
        (object(), object()),
        (True, 1),
    ],
)
def test_values_that_do_not_compare_are_refused(actual, expected) -> None:
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(actual, expected)


def test_subclasses_are_refused_when_asked() -> None:
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(torch.ones(1), torch.nn.Parameter(torch.ones(1)), allow_subclasses=False)


def test_sparse_tensors_have_the_same_entries() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    twice = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [0.5, 0.5, 2.0], size=(2, 2))
    assert_close(x.to_sparse(), x.to_sparse())
    assert_close(x.to_sparse(), x, check_layout=False)
    for actual, expected, name in (
        (x.to_sparse(), x.to_sparse(1), "sparse_dim"),
        (x.to_sparse(), twice, "_nnz"),
        (x.to_sparse_csr(), (x + 1).to_sparse_csr(), "_nnz"),
    ):
        with pytest.raises(AssertionError, match=name):
            assert_close(actual, expected)


def test_quantized_tensors_are_compared_as_the_numbers_they_stand_for() -> None:
    x = torch.tensor([[1.0], [2.0]])
    q = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    assert_close(q, torch.quantize_per_tensor(x, 0.2, 0, torch.qint8))
    scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([0, 0])
    with pytest.raises(AssertionError, match="qscheme"):
        assert_close(q, torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8))
    with pytest.raises(AssertionError, match="is_quantized"):
        assert_close(q, x, check_dtype=False)
    with pytest.raises(AssertionError, match="not close"):
        assert_close(q, torch.quantize_per_tensor(x + 1, 0.1, 0, torch.qint8))


def test_tensors_on_meta_have_no_elements_to_compare() -> None:
    x = torch.empty(2, device="meta")
    assert_close(x, torch.ones(2, device="meta"))
    with pytest.raises(AssertionError, match="shape"):
        assert_close(x, torch.ones(3, device="meta"))
