"""Runs several passes over a graph, in an order that they agree on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rushlight import nn
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.infra.pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def pass_result_wrapper(fn: Pass | None) -> Pass | None:
    """Returns a pass for a function that changes a module and returns it, or nothing.

    Example:
        >>> from rushlight.fx.passes.infra.pass_manager import pass_result_wrapper
        >>> run = pass_result_wrapper(lambda module: None)
        >>> run(torch.fx.symbolic_trace(lambda x: x + 1)).modified
        True
    """
    if fn is None:
        return None

    @functools.wraps(fn)
    def run(module: GraphModule) -> PassResult:
        result = fn(module)
        return result if isinstance(result, PassResult) else PassResult(result or module, True)

    return run


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """Returns the constraint that one pass runs before another."""
    return lambda first, second: first != that or second != this


class PassManager:
    """Runs passes one after the other, until they change nothing or often enough.

    Args:
        passes: functions that return a PassResult, or None where they change nothing.
        constraints: functions of two passes: whether the first may run before the second.
        steps: how often all passes run at most.
        run_checks_after_each_pass: whether check runs after each pass as well, not only at first.
        suppress_check_failures: has no effect, as in PyTorch.
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Pass) -> None:
        """Adds a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Adds a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def add_checks(self, check: Callable[..., None]) -> None:
        """Takes a function that raises an error where a module is not as it must be.

        Raises:
            TypeError: if it does not have one parameter, the module.
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("add_checks: check must have one parameter, the module.")
        self.check = check

    def check(self, module: nn.Module) -> None:
        """Finds nothing wrong; see add_checks."""

    def validate_constraints(self) -> None:
        """Raises a RuntimeError if the order of the passes is against a constraint."""
        for i, first in enumerate(self.passes):
            for second in self.passes[i + 1 :]:
                if not self._may_precede(first, second):
                    raise RuntimeError(
                        f"validate_constraints: {_name(first)} must not run before "
                        f"{_name(second)}. solve_constraints finds another order if there is one."
                    )
        self._validated = True

    def solve_constraints(self) -> None:
        """Puts the passes into an order that the constraints allow, the given one where it can be.

        Raises:
            RuntimeError: if there is none.
        """
        left, ordered = list(self.passes), []
        while left:
            free = (p for p in left if all(p is q or self._may_precede(p, q) for q in left))
            chosen = next(free, None)
            if chosen is None:
                names = ", ".join(map(_name, left))
                raise RuntimeError(f"solve_constraints: no order of {names} is allowed.")
            left.remove(chosen)
            ordered.append(chosen)
        self.passes, self._validated = ordered, True

    def _may_precede(self, first: Pass, second: Pass) -> bool:
        return all(constraint(first, second) for constraint in self.constraints)

    def __call__(self, module: nn.Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            now: Any = module
            changed_now = False
            for run in self.passes:
                result = self._run(run, now)
                if result is None:
                    continue
                now, changed_now = result.graph_module, changed_now or result.modified
                if isinstance(now, GraphModule):
                    now.recompile()
                if self.run_checks_after_each_pass:
                    self.check(now)
            module, changed = now, changed or changed_now
            if not changed_now:
                break
        whole: Any = module
        return PassResult(whole, changed)

    def _run(self, run: Pass, module: nn.Module) -> PassResult | None:
        try:
            result = run(module)
        except Exception as error:
            error.add_note(f"This was in the pass {_name(run)}.")
            raise
        if result is not None and not isinstance(result, PassResult):
            raise TypeError(
                f"PassManager: {_name(run)} returned no PassResult. A pass returns one or None; "
                "pass_result_wrapper makes a pass of other functions."
            )
        return result


def _name(run: Pass) -> str:
    return getattr(run, "__name__", type(run).__name__)
