"""Sequential, ModuleList, ModuleDict, ParameterList and ParameterDict."""

from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn


def layers(*sizes):
    return [nn.Linear(size, size) for size in sizes]


def sizes(modules):
    return [module.in_features for module in modules]


# Sequential


def test_sequential_calls_its_modules_in_order() -> None:
    class Add(nn.Module):
        def forward(self, x):
            return x + 1

    class Double(nn.Module):
        def forward(self, x):
            return x * 2

    assert nn.Sequential(Add(), Double())(3) == 8
    assert nn.Sequential(OrderedDict(first=Double(), then=Add()))(3) == 7
    assert nn.Sequential()(3) == 3


def test_sequential_takes_names() -> None:
    net = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert [name for name, _ in net.named_children()] == ["a", "b"]
    assert net[1] is net.b
    assert [name for name, _ in net[1:].named_children()] == ["b"]


def test_sequential_refuses_other_things_than_modules() -> None:
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        nn.Sequential(nn.ReLU(), 3)
    with pytest.raises(TypeError, match=r"list is not a Module .* pass \*layers"):
        nn.Sequential([nn.ReLU()])


def test_sequentials_add_and_multiply() -> None:
    one, two = nn.Sequential(*layers(1)), nn.Sequential(*layers(2))
    assert sizes(one + two) == [1, 2]
    assert sizes((one + two) * 2) == sizes(2 * (one + two)) == [1, 2, 1, 2]
    one *= 3
    assert sizes(one) == [1, 1, 1]
    one += two
    assert sizes(one) == [1, 1, 1, 2]
    with pytest.raises(ValueError, match="at least 1, got 0"):
        _ = one * 0
    with pytest.raises(ValueError, match="only objects of Sequential class, but list"):
        one.__add__([nn.ReLU()])
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = one * 1.5


# What Sequential and ModuleList share

both = pytest.mark.parametrize(
    "make", [lambda modules: nn.Sequential(*modules), nn.ModuleList], ids=["sequential", "list"]
)


@both
def test_lists_index_and_slice(make) -> None:
    modules = make(layers(1, 2, 3))
    assert len(modules) == 3
    assert sizes(modules) == [1, 2, 3]
    assert modules[-1].in_features == 3
    assert sizes(modules[1:]) == [2, 3]
    assert type(modules[1:]) is type(modules)
    assert modules[0] in modules


@both
def test_lists_change_in_place_and_keep_numbering(make) -> None:
    modules = make(layers(1, 2, 3))
    modules[1] = nn.Linear(9, 9)
    assert sizes(modules) == [1, 9, 3]
    del modules[0]
    assert sizes(modules) == [9, 3]
    modules.insert(1, nn.Linear(5, 5))
    modules.insert(-1, nn.Linear(6, 6))
    modules.insert(4, nn.Linear(7, 7))
    assert sizes(modules) == [9, 5, 6, 3, 7]
    assert modules.pop().in_features == 7
    assert modules.pop(0).in_features == 9
    assert sizes(modules.append(nn.Linear(8, 8)).extend(layers(1, 2))) == [5, 6, 3, 8, 1, 2]
    del modules[1:4]
    assert sizes(modules) == [5, 1, 2]
    assert [name for name, _ in modules.named_children()] == ["0", "1", "2"]
    assert [name for name, _ in modules[0:1].named_children()] == ["0"]


@both
@pytest.mark.parametrize("index", [3, -4])
def test_lists_check_indices(make, index) -> None:
    modules = make(layers(1, 2, 3))
    for action in (
        lambda: modules[index],
        lambda: modules.__setitem__(index, nn.ReLU()),
        lambda: modules.__delitem__(index),
        lambda: modules.insert(index + (1 if index > 0 else 0), nn.ReLU()),
    ):
        with pytest.raises(IndexError, match="is out of range"):
            action()
    assert sizes(modules) == [1, 2, 3]


@both
def test_lists_extend_from_iterables_only(make) -> None:
    modules = make(layers(1))
    modules.extend(modules)
    assert sizes(modules) == [1, 1]
    with pytest.raises(TypeError, match="should be called with an iterable, but got int"):
        modules.extend(3)


# ModuleList


@pytest.mark.parametrize("cls", [nn.Sequential, lambda *args: nn.ModuleList(args)])
def test_nothing_is_lost_when_something_else_than_a_module_is_inserted(cls) -> None:
    made = cls(*layers(1, 2))
    for index in (0, 1):
        with pytest.raises(AssertionError, match="insert: module should be of type"):
            made.insert(index, [nn.ReLU()])
    assert [layer.in_features for layer in made] == [1, 2]


def test_module_lists_add() -> None:
    modules = nn.ModuleList(layers(1)) + layers(2)
    modules += layers(3)
    assert sizes(modules) == [1, 2, 3]
    assert len(list(modules.parameters())) == 6


def test_module_list_has_no_forward() -> None:
    with pytest.raises(NotImplementedError):
        nn.ModuleList()(1)


def test_module_list_prints_runs_of_equal_modules_once() -> None:
    assert repr(nn.ModuleList([*layers(2, 2, 2), nn.ReLU()])) == (
        "ModuleList(\n"
        "  (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)\n"
        "  (3): ReLU()\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"


# ModuleDict


def test_module_dict_is_an_ordered_mapping() -> None:
    relu, tanh = nn.ReLU(), nn.Tanh()
    modules = nn.ModuleDict({"b": relu})
    modules["a"] = tanh
    assert list(modules) == list(modules.keys()) == ["b", "a"]
    assert list(modules.values()) == [relu, tanh]
    assert dict(modules.items()) == {"b": relu, "a": tanh}
    assert "a" in modules
    assert "c" not in modules
    assert len(modules) == 2
    assert modules.pop("b") is relu
    del modules["a"]
    assert len(modules) == 0


def test_module_dict_updates_from_mappings_pairs_and_its_like() -> None:
    modules = nn.ModuleDict([("a", nn.ReLU())])
    modules.update(nn.ModuleDict({"b": nn.Tanh()}))
    modules.update({"a": nn.Sigmoid()})
    assert repr(modules) == "ModuleDict(\n  (a): Sigmoid()\n  (b): Tanh()\n)"
    with pytest.raises(TypeError, match="iterable of key/value pairs, but got int"):
        modules.update(3)
    modules.clear()
    assert list(modules) == []


def test_module_dict_refuses_names_that_are_taken_and_unknown_ones() -> None:
    with pytest.raises(KeyError, match="attribute 'keys' already exists"):
        nn.ModuleDict({"keys": nn.ReLU()})
    with pytest.raises(KeyError, match="nothing"):
        _ = nn.ModuleDict()["nothing"]


# ParameterList


def test_parameter_list_registers_tensors_and_keeps_other_values() -> None:
    values = nn.ParameterList([torch.ones(2), nn.Parameter(torch.ones(3)), "text"])
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    assert isinstance(values[0], nn.Parameter)
    assert values[-1] == "text"
    assert len(values) == 3
    assert [len(value) for value in values] == [2, 3, 4]


def test_parameter_list_changes_like_a_list() -> None:
    values = nn.ParameterList([torch.ones(1)])
    values += [torch.ones(2)]
    values.append(torch.ones(3)).extend([torch.ones(4)])
    values[0] = torch.ones(9)
    assert [value.numel() for value in values] == [9, 2, 3, 4]
    part = values[1:3]
    assert isinstance(part, nn.ParameterList)
    assert [value.numel() for value in part] == [2, 3]
    for index in (4, -5):
        with pytest.raises(IndexError, match="out of range"):
            _ = values[index]
    with pytest.raises(TypeError, match="should be called with an iterable, but got Tensor"):
        values.extend(torch.ones(2))
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values(torch.ones(1))


def test_parameter_list_says_what_it_holds() -> None:
    text = repr(nn.ParameterList([torch.zeros(2, 3), "a"]))
    assert text == (
        "ParameterList(\n"
        f"    (0): Parameter containing: [{torch.float32} of size 2x3]\n"
        "    (1): Object of type: str\n"
        ")"
    )


# ParameterDict


def test_parameter_dict_is_an_ordered_mapping() -> None:
    values = nn.ParameterDict([("b", torch.ones(1)), ("a", 5)])
    assert [name for name, _ in values.named_parameters()] == ["b"]
    assert list(values) == list(values.keys()) == ["b", "a"]
    assert list(reversed(values)) == ["a", "b"]
    assert list(values.values()) == [values["b"], 5]
    assert dict(values.items())["a"] == 5
    assert "a" in values
    assert values.get("c", 7) == 7
    assert values.setdefault("c", 8) == values["c"] == 8
    assert values.popitem() == ("c", 8)
    assert values.pop("a") == 5
    assert len(values) == 1
    with pytest.raises(KeyError, match="nothing"):
        _ = values["nothing"]
    with pytest.raises(KeyError):
        values.pop("nothing")
    values.clear()
    assert len(values) == 0
    with pytest.raises(KeyError):
        values.popitem()


def test_parameter_dict_sorts_the_names_of_a_plain_mapping_only() -> None:
    one = torch.ones(1)
    assert list(nn.ParameterDict({"b": one, "a": one}).state_dict()) == ["a", "b"]
    assert list(nn.ParameterDict(OrderedDict(b=one, a=one)).state_dict()) == ["b", "a"]
    assert list(nn.ParameterDict(nn.ParameterDict([("b", one), ("a", one)]))) == ["b", "a"]
    values = nn.ParameterDict([("c", one)])
    values.update({"b": one, "a": one})
    assert list(values) == ["c", "a", "b"]


def test_parameter_dicts_merge() -> None:
    left, right = nn.ParameterDict({"a": torch.ones(1)}), {"b": torch.ones(2)}
    assert list(left | right) == ["a", "b"]
    assert list(right | left) == ["b", "a"]
    assert (left | right)["a"] is left["a"]
    left |= right
    assert list(left) == ["a", "b"]
    assert list(left.copy()) == ["a", "b"]
    assert list(left.fromkeys(["x", "y"], 1)) == ["x", "y"]
    with pytest.raises(TypeError, match="iterable of key/value pairs, but got int"):
        left.update(3)


def test_parameter_dict_says_what_it_holds() -> None:
    assert repr(nn.ParameterDict({"a": torch.zeros(2)})) == (
        "ParameterDict(  (a): Parameter containing: [torch.FloatTensor of size 2])"
    )


def test_parameters_without_memory_are_described_as_others() -> None:
    param = nn.Parameter(torch.empty(1, device="meta"))
    assert repr(nn.ParameterList([param])) == (
        "ParameterList(  (0): Parameter containing: [torch.float32 of size 1])"
    )


def test_subclasses_find_a_module_by_the_name_that_an_index_has() -> None:
    class Named(nn.ModuleList):
        def __getitem__(self, index):
            return self._modules[self._get_abs_string_index(index)]

    layers = Named([nn.ReLU(), nn.Tanh()])
    assert isinstance(layers[-1], nn.Tanh) and layers._get_abs_string_index(0) == "0"
    with pytest.raises(IndexError, match="out of range"):
        layers[2]
