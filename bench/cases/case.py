"""What a benchmark case is, and the list of all of them, which the other files here fill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Call = Callable[[], Any]
Make = Callable[[Any], Call]

MILLIONS_4 = 2048 * 2048


@dataclass(frozen=True)
class Case:
    name: str
    suite: str  # "ops", "models", "networks", "data", "distributed" or "gpu"
    goal: float
    make: Make


CASES: list[Case] = []


def case(name: str, suite: str, goal: float) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        CASES.append(Case(name, suite, goal, make))
        return make

    return register
