"""Passes over graphs in an order that they agree on, until they change nothing."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import fx
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)


class Exchange(PassBase):
    """Puts one function in the place of another."""

    def __init__(self, old: Any, new: Any) -> None:
        self.old, self.new = old, new

    def requires(self, graph_module: fx.GraphModule) -> None:
        assert self.old is not self.new

    def call(self, graph_module: fx.GraphModule) -> PassResult:
        found = graph_module.graph.find_nodes(op="call_function", target=self.old)
        for node in found:
            node.target = self.new
        return PassResult(graph_module, bool(found))


def traced() -> fx.GraphModule:
    return fx.symbolic_trace(lambda x: torch.abs(x) + 1)


def test_passes_run_in_order_until_they_change_nothing() -> None:
    abs_to_neg, neg_to_exp = Exchange(torch.abs, torch.neg), Exchange(torch.neg, torch.exp)
    once = PassManager([neg_to_exp, abs_to_neg])(traced())
    assert once.modified and once.graph_module(torch.tensor(2.0)).item() == -1
    often = PassManager([neg_to_exp, abs_to_neg], steps=5)(traced())
    assert often.modified and often.graph_module(torch.tensor(0.0)).item() == 2
    assert not PassManager([neg_to_exp])(traced()).modified
    with pytest.raises(AssertionError):
        Exchange(torch.abs, torch.abs)(traced())


def test_constraints_order_the_passes() -> None:
    abs_to_neg, neg_to_exp = Exchange(torch.abs, torch.neg), Exchange(torch.neg, torch.exp)
    manager = PassManager([neg_to_exp, abs_to_neg])
    manager.add_constraint(this_before_that_pass_constraint(abs_to_neg, neg_to_exp))
    with pytest.raises(RuntimeError, match="Exchange must not run before Exchange"):
        manager.validate_constraints()
    result = manager(traced())
    assert manager.passes == [abs_to_neg, neg_to_exp]
    manager.validate_constraints()
    assert result.graph_module(torch.tensor(0.0)).item() == 2
    manager.add_constraint(this_before_that_pass_constraint(neg_to_exp, abs_to_neg))
    with pytest.raises(RuntimeError, match="no order of Exchange, Exchange is allowed"):
        manager.solve_constraints()


def test_functions_become_passes() -> None:
    def drop_plus(module: fx.GraphModule) -> None:
        node = module.graph.find_nodes(op="call_function")[-1]
        node.replace_all_uses_with(node.args[0])
        module.graph.erase_node(node)

    assert pass_result_wrapper(None) is None
    manager = PassManager()
    manager.add_pass(pass_result_wrapper(drop_plus))
    assert manager(traced()).graph_module(torch.tensor(-2.0)).item() == 2
    with pytest.raises(TypeError, match="<lambda> returned no PassResult"):
        PassManager([lambda module: module])(traced())


def test_checks_run_first_and_after_each_pass() -> None:
    seen: list[int] = []
    manager = PassManager([lambda _: None, Exchange(torch.abs, torch.neg)])
    manager.run_checks_after_each_pass = True
    manager.add_checks(lambda module: seen.append(1))
    manager(traced())
    assert len(seen) == 2
    with pytest.raises(TypeError, match="one parameter"):
        manager.add_checks(lambda: None)


def test_errors_say_which_pass_it_was() -> None:
    def broken(module: fx.GraphModule) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        PassManager([broken])(traced())
    assert caught.value.__notes__ == ["This was in the pass broken."]
