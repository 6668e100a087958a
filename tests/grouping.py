"""Many small cases in one test, which names those that fail.

pytest and xdist spend two milliseconds on a test beside what it does. So the calls of an op that
take microseconds each are one test, and -k chooses the op.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(
    argument: str,
    values: Iterable[Any] | Callable[..., Iterable[Any]],
    ids: Callable[[Any], str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a test every value in turn, where parametrize would make a test of each.

    Args:
        argument: the parameter that takes them, or several, "x, expected", for tuples.
        values: the values, or a function that makes them of other parameters of the test, by name.
        ids: gives the name of a value in a report; without it, that is its position.

    Returns:
        The decorator. A test fails with the errors of all its cases; it is skipped if they all are.
    """
    taken = argument.split(", ")
    made_of = list(inspect.signature(values).parameters) if callable(values) else []

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**others: Any) -> None:
            made = values(**{n: others[n] for n in made_of}) if callable(values) else values
            cases = list(made)
            assert cases, "there are no cases"
            skips, failures, failed = [], [], []
            for i, value in enumerate(cases):
                mine = dict(zip(taken, value if len(taken) > 1 else [value], strict=True))
                try:
                    test(**others, **mine)
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except (Exception, pytest.fail.Exception) as error:
                    failed.append(ids(value) if ids else f"{argument} {i}")
                    error.add_note(f"This is {failed[-1]}.")
                    failures.append(error)
            if failures:
                count = f"{len(failures)} of {len(cases)} cases"
                raise BaseExceptionGroup(f"{count} failed: {', '.join(failed)}", failures)
            if skips and len(skips) == len(cases):
                raise skips[0]

        signature = inspect.signature(test)
        left = [p for p in signature.parameters.values() if p.name not in taken]
        run.__signature__ = signature.replace(parameters=left)
        return run

    return decorate
