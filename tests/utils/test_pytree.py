"""Trees of containers: their leaves, and functions of these."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

import rushlight as torch
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


def test_the_dictionaries_of_modules_are_containers() -> None:
    linear = torch.nn.Linear(2, 3)
    shapes = pytree.tree_map(lambda param: tuple(param.shape), linear._parameters)
    assert type(shapes) is dict and shapes == {"weight": (3, 2), "bias": (3,)}
    paths = pytree.tree_flatten_with_path(vars(linear))[0]
    assert "['_parameters']['weight']" in [pytree.keystr(path) for path, _ in paths]


def test_other_trees_may_go_on_below_the_leaves_of_the_first() -> None:
    assert pytree.tree_map(lambda *x: x, [1, None], [(2, 3), {}]) == [(1, (2, 3)), (None, {})]
    spec = pytree.tree_structure({"a": 1, "b": (2, Pair(3, 4))})
    same = OrderedDict(b=(5, Pair(6, [7])), a=8)
    assert spec.flatten_up_to(same) == [8, 5, 6, [7]]
    assert pytree.tree_structure(deque([1])).flatten_up_to(deque([2], maxlen=3)) == [2]
    for other in (1, {"a": 1}, {"a": 1, "b": (2, (3, 4))}, {"a": 1, "b": 2}, {"a": 1, "c": 2}):
        with pytest.raises(ValueError, match="the trees differ"):
            spec.flatten_up_to(other)


def test_nodes_and_specs_have_the_fields_that_libraries_read() -> None:
    def leaves_and_spec(tree: Any) -> tuple[list[Any], pytree.TreeSpec]:
        kind = pytree._get_node_type(tree)
        if kind not in pytree.SUPPORTED_NODES:
            return [tree], pytree.LeafSpec()
        items, context = pytree.SUPPORTED_NODES[kind].flatten_fn(tree)
        below = [leaves_and_spec(item) for item in items]
        return [x for leaves, _ in below for x in leaves], pytree.TreeSpec(
            kind, context, [spec for _, spec in below]
        )

    leaves, spec = leaves_and_spec(TREE)
    assert (leaves, spec) == pytree.tree_flatten(TREE)
    assert spec.unflatten(leaves) == TREE
    assert (spec.type, spec.context, spec.num_children) == (dict, ["x", "y", "z"], 3)
    assert spec.children() == spec.children_specs and spec.child(1).type is namedtuple
    assert spec.num_nodes == 12 and not spec.is_leaf() and pytree.LeafSpec().is_leaf()
    assert pytree.tree_is_leaf("a") and not pytree.tree_is_leaf(TREE)
    assert repr(pytree.tree_structure({"x": [1, (2, 3)], "y": Pair(4, 5)})) == (
        "TreeSpec(dict, ['x', 'y'], [TreeSpec(list, None, [*,\n"
        "    TreeSpec(tuple, None, [*,\n"
        "      *])]),\n"
        f"  TreeSpec(namedtuple, {Pair}, [*,\n"
        "    *])])"
    )


def test_results_of_ops_are_containers() -> None:
    result = torch.ones(2, 3).max(0)
    doubled = pytree.tree_map(lambda x: 2 * x, result)
    assert type(doubled) is type(result) and doubled.values.tolist() == [2, 2, 2]
    assert pytree.is_structseq_instance(result) and not pytree.is_namedtuple_instance(result)


def test_leaves_have_paths() -> None:
    paths = {pytree.keystr(path): leaf for path, leaf in pytree.tree_leaves_with_path(TREE)}
    assert paths == {
        "['x'][0]": 1,
        "['x'][1][0]": 2,
        "['x'][1][1]": "s",
        "['y'].a": 3.0,
        "['y'].b": None,
        "['z']['w'][0]": 4,
    }
    found, spec = pytree.tree_flatten_with_path(TREE)
    assert spec == pytree.tree_structure(TREE)
    assert all(pytree.key_get(TREE, path) == leaf for path, leaf in found)
    added = pytree.tree_map_with_path(lambda path, a, b: (len(path), a + b), {"n": [1]}, {"n": [2]})
    assert added == {"n": [(2, 3)]}
    with pytest.raises(ValueError, match="the trees differ"):
        pytree.tree_map_with_path(lambda *_: 0, [1], [1, 2])


def test_containers_of_libraries_say_their_keys() -> None:
    class Box:
        def __init__(self, value: Any) -> None:
            self.value = value

    pytree.register_pytree_node(
        Box,
        lambda box: ([box.value], None),
        lambda values, _: Box(*values),
        serialized_type_name="Box",
        flatten_with_keys_fn=lambda box: ([(pytree.GetAttrKey("value"), box.value)], None),
    )
    try:
        assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path([Box(3)])] == [
            "[0].value"
        ]
        assert pytree.tree_map(str, Box(3)).value == "3"
    finally:
        del pytree.SUPPORTED_NODES[Box]


@pytest.mark.parametrize(
    "text",
    [
        "3", "[1]", '[1, {"type": "builtins.list"}]', "[1, [",
        '[1, {"type": "builtins.list", "context": "null", "children_spec": 3}]',
        '[1, {"type": "builtins.dict", "context": 3, "children_spec": []}]',
        '[1, {"type": ["x"], "context": null, "children_spec": []}]',
        "[1, " + '{"type": "builtins.list", "context": "null", "children_spec": [' * 20000,
    ],
)  # fmt: skip
def test_texts_that_are_no_specs_are_refused(text: str) -> None:
    with pytest.raises((ValueError, NotImplementedError)):
        pytree.treespec_loads(text)


def test_a_text_makes_only_containers_of_known_classes() -> None:
    content = {
        "default_factory_module": "os",
        "default_factory_name": "system",
        "dict_context": [],
    }
    spec = {"type": "collections.defaultdict", "context": content, "children_spec": []}
    with pytest.raises(NotImplementedError, match=r"os\.system"):
        pytree.treespec_loads(json.dumps([1, spec]))


def test_what_json_cannot_tell_is_not_written() -> None:
    spec = pytree.tree_structure({(1, 2): 3, 2j: 4})
    with pytest.raises(TypeError, match="Unable to serialize context"):
        pytree.treespec_dumps(spec)
    with pytest.raises(ValueError, match="Unknown protocol 7"):
        pytree.treespec_dumps(spec, 7)


def test_libraries_call_the_parts_by_pytorchs_names() -> None:
    assert pytree.arg_tree_leaves(1, [2], a=(3, None)) == [1, 2, 3, None]
    assert pytree._is_leaf(1) and not pytree._is_leaf([])
    items, cls = pytree._namedtuple_flatten(Pair(1, 2))
    assert pytree._namedtuple_unflatten(items, cls) == Pair(1, 2)
    items, keys = pytree._odict_flatten(OrderedDict(a=1))
    assert pytree._odict_unflatten(items, keys) == OrderedDict(a=1)


@dataclasses.dataclass
class Record:
    x: Any
    note: str | None = None
    made: int = dataclasses.field(default=0, init=False)


def test_data_classes_join_with_their_fields() -> None:
    pytree.register_dataclass(Record)
    leaves, spec = pytree.tree_flatten_with_path(Record([1, 2]))
    assert [(pytree.keystr(path), leaf) for path, leaf in leaves] == [(".x[0]", 1), (".x[1]", 2)]
    assert pytree.tree_unflatten([3, 4], spec) == Record([3, 4])
    assert pytree.tree_leaves(Record(1, "a")) == [1, "a"]
    with pytest.raises(ValueError, match="is already registered"):
        pytree.register_dataclass(Record)
    with pytest.raises(ValueError, match="is no data class"):
        pytree.register_dataclass(int)
    pytree._deregister_pytree_node(Record)
    with pytest.raises(ValueError, match="are not the fields"):
        pytree.register_dataclass(Record, field_names=["x"])
    pytree.register_dataclass(Record, field_names=["x"], drop_field_names=["note"])
    assert pytree.tree_map(str, Record(1, "a")) == Record("1")
    pytree._deregister_pytree_node(Record)
    assert pytree.tree_leaves(Record(1)) == [Record(1)]


def test_constants_belong_to_the_spec() -> None:
    class Name(str):
        pass

    pytree.register_constant(Name)
    leaves, spec = pytree.tree_flatten([1, Name("a")])
    assert leaves == [1] and pytree.tree_unflatten([2], spec) == [2, "a"]
    assert spec != pytree.tree_structure([1, Name("b")])
    with pytest.raises(TypeError, match="needs __eq__ and __hash__"):
        pytree.register_constant(type("Other", (), {}))


def test_specs_are_made_of_specs() -> None:
    leaf = pytree.treespec_leaf()
    spec = pytree.treespec_dict({"a": pytree.treespec_tuple([leaf, leaf])}, b=leaf)
    assert spec == pytree.tree_structure({"a": (1, 2), "b": 3})
    assert pytree.treespec_pprint(spec) == "{'a': (*, *), 'b': *}"
    with pytest.raises(ValueError, match="expected specs of trees, but got 3"):
        pytree.treespec_tuple([3])


def test_kinds_of_tuples_are_told() -> None:
    result = torch.ones(2).max(0)
    assert pytree.is_namedtuple(Pair) and pytree.is_namedtuple(Pair(1, 2))
    assert not pytree.is_namedtuple_class(Pair(1, 2)) and not pytree.is_namedtuple(result)
    assert pytree.is_structseq(result) and pytree.is_structseq(type(result))
    assert pytree.is_structseq_class(type(result)) and not pytree.is_structseq((1,))


def test_a_class_that_looks_like_a_structseq_is_a_tuple() -> None:
    class Pair(tuple[int, ...]):
        n_fields = n_sequence_fields = 2
        n_unnamed_fields = 0

    assert not pytree.is_structseq(Pair((1, 2))) and pytree.is_structseq(time.gmtime())


def test_the_old_name_registers_again_and_warns() -> None:
    class Box:
        def __init__(self, item: Any) -> None:
            self.item = item

    make = (lambda box: ([box.item], None)), (lambda items, _: Box(*items))
    with pytest.warns(FutureWarning, match="register_pytree_node"):
        pytree._register_pytree_node(Box, *make)
    with pytest.warns(FutureWarning), pytest.warns(UserWarning, match="already registered"):
        pytree._register_pytree_node(Box, *make)
    assert pytree.tree_leaves(Box(3)) == [3]
    pytree._deregister_pytree_node(Box)
    with pytest.raises(ValueError, match="Give both or none"):
        pytree.register_pytree_node(Box, *make, to_dumpable_context=str)
    with pytest.raises(TypeError, match="expected a spec"):
        pytree.treespec_dumps("a text")  # type: ignore[arg-type]


def test_the_context_of_a_defaultdict_is_a_list() -> None:
    assert pytree.tree_structure(defaultdict(list, a=1)).context == [list, ["a"]]
