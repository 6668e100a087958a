"""Cases that are one test: all of them run, and those that fail are named."""

from __future__ import annotations

import pytest
from grouping import each


def test_all_cases_run_and_those_that_fail_are_named() -> None:
    ran = []

    @each("number", [1, 2, 3, 4], ids=lambda number: f"number {number}")
    def check(number: int) -> None:
        ran.append(number)
        assert number % 2, "even"

    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed: number 2, number 4") as raised:
        check()
    assert ran == [1, 2, 3, 4]
    assert [error.__notes__ for error in raised.value.exceptions] == [
        ["This is number 2."],
        ["This is number 4."],
    ]


def test_an_error_that_does_not_come_is_a_failure() -> None:
    @each("number", [1, 0])
    def check(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            assert 1 // number

    with pytest.raises(BaseExceptionGroup, match="1 of 2 cases failed: number 0"):
        check()


@each("double, number", lambda base: [(2 * base, base), (6 * base, 3 * base)])
@each("sign", [1, -1])
@pytest.mark.parametrize("base", [1, 5])
def test_values_follow_other_parameters(base: int, double: int, number: int, sign: int) -> None:
    assert sign * double == 2 * sign * number
    assert number in (base, 3 * base)


def test_a_test_is_skipped_when_all_its_cases_are() -> None:
    @each("number", [1, 2])
    def check(number: int, last: int) -> None:
        if number <= last:
            pytest.skip("small")

    check(last=1)
    with pytest.raises(pytest.skip.Exception, match="small"):
        check(last=2)


def test_a_test_without_cases_fails() -> None:
    @each("number", [])
    def check(number: int) -> None:
        raise NotImplementedError

    with pytest.raises(AssertionError, match="no cases"):
        check()
