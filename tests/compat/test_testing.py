"""assert_close accepts what PyTorch's accepts, and else says the same."""

import itertools
import re

import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

NAN, INF = float("nan"), float("inf")
OPTIONS = [
    {},
    {"rtol": 0, "atol": 0},
    {"rtol": 0.5, "atol": 0.1},
    {"equal_nan": True},
    {"check_dtype": False},
    {"check_stride": True},
    {"allow_subclasses": False},
]


def pairs(library):
    t = library.tensor
    return [
        (t([1.0, 2, 3]), t([1.0, 2, 4])),
        (t([[1.0, 2], [3, INF]]), t([[1.0, 2], [4, INF]])),
        (t([1.0, INF]), t([1.0, -INF])),
        (t([NAN, 1.0]), t([NAN, 1.0])),
        (t([NAN, 1.0]), t([1.0, 1.0])),
        (t(1.0), t(2.0)),
        (t(3), t(4)),
        (t([True]), t([False])),
        (t([200], dtype=library.uint8), t([3], dtype=library.uint8)),
        (t([1 + 1j]), t([2 + 1j])),
        (t([1.0]).half(), t([2.0]).half()),
        (t([1.0]), t([1.0]).double()),
        (t([1.0]), library.nn.Parameter(t([1.0]))),
        (library.zeros(2, 3), library.zeros(3, 2).t()),
        (library.zeros(2), library.zeros(3)),
        (library.empty(0), library.empty(0)),
        ([t([1.0])], (t([1.00001]),)),
        ({"a": [1, t([1.0])]}, {"a": [1, t([2.0])]}),
        ({"a": 1}, {"b": 1}),
        ([1], [1, 2]),
        (1.0, 2.0),
        (1, 2),
        (0, 3),
        (3, 0),
        (1, 1.0),
        (1j, 1.5j),
        (NAN, NAN),
        (True, False),
        (None, 3),
        ("a", "a"),
        (1.0, t(1.0)),
        (t([1.0]), [1.0]),
        ([], []),
    ]


def outcome(library, actual, expected, options):
    try:
        library.testing.assert_close(actual, expected, **options)
    except (AssertionError, TypeError) as error:
        # The last digits of a quotient depend on the precision it was computed in.
        text = re.sub(r"(\d\.\d{5})\d+", r"\1", str(error).removeprefix("assert_close: "))
        return type(error), text
    return None


CASES = list(itertools.product(range(len(pairs(torch))), OPTIONS))


@pytest.mark.parametrize(("case", "options"), CASES)
def test_outcome_and_message_equal_pytorchs(case, options) -> None:
    ours = outcome(torch, *pairs(torch)[case], options)
    theirs = outcome(pytorch, *pairs(pytorch)[case], options)
    if ours and ours[0] is TypeError:  # the names of types differ
        assert theirs is not None
        assert theirs[0] is TypeError
    else:
        assert ours == theirs
