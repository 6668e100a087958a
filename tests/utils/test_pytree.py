"""Trees of containers: their leaves, and functions of these."""

from __future__ import annotations

from collections import OrderedDict, deque, namedtuple
from typing import Any

import pytest

from rushlight.utils import _pytree as pytree

Pair = namedtuple("Pair", "a b")
TREE: Any = {"x": [1, (2, "s")], "y": Pair(3.0, None), "z": OrderedDict(w=deque([4]))}


def test_leaves_come_back_in_their_places() -> None:
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, "s", 3.0, None, 4] == list(pytree.tree_iter(TREE))
    assert pytree.tree_unflatten(leaves, spec) == TREE
    assert pytree.tree_structure(TREE) == spec and spec.num_leaves == 6


def test_functions_meet_the_leaves_that_are_meant() -> None:
    negated = pytree.tree_map_only(int, lambda n: -n, TREE)
    assert pytree.tree_leaves(negated) == [-1, -2, "s", 3.0, None, -4]
    halves = pytree.tree_map_only(lambda x: x == 3.0, lambda n: n / 2, TREE)
    assert halves["y"] == Pair(1.5, None)
    assert pytree.tree_map_only((int, float), str, [1, 2.0, "a"]) == ["1", "2.0", "a"]
    assert pytree.tree_map_only(int | float, str, [1, 2.0, None]) == ["1", "2.0", None]
    assert pytree.tree_map(len, [[1, 2], [3]], is_leaf=lambda x: x in ([1, 2], [3])) == [2, 1]


def test_functions_may_be_called_for_what_they_do() -> None:
    seen: list[Any] = []
    assert pytree.tree_map_(seen.append, TREE) is TREE
    assert pytree.tree_map_only_(str, seen.append, TREE) is TREE
    assert seen == [1, 2, "s", 3.0, None, 4, "s"]


def test_leaves_are_asked() -> None:
    assert pytree.tree_any(lambda x: x is None, TREE) and not pytree.tree_all(bool, TREE)
    assert pytree.tree_all_only(int, lambda n: n > 0, TREE)
    assert not pytree.tree_any_only(int, lambda n: n > 4, TREE)


def test_classes_join() -> None:
    class Box:
        def __init__(self, content: Any) -> None:
            self.content = content

    pytree.register_pytree_node(
        Box, lambda b: ([b.content], None), lambda c, _: Box(*c), serialized_type_name="Box"
    )
    assert pytree.tree_map(lambda n: n + 1, [Box(1)])[0].content == 2
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Box, lambda b: ([], None), lambda c, _: Box(0))
    with pytest.raises(ValueError, match="the trees differ"):
        pytree.tree_map(max, [1], (1,))
