"""What programs do with the dictionaries of a module's members, for Rushlight and for PyTorch.

Each program takes the library, and asserts what both do.
"""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from collections import OrderedDict
from typing import Any

PROGRAMS: list[Any] = []


def program(function: Any) -> Any:
    PROGRAMS.append(function)
    return function


def made(torch: Any, base: Any = None) -> Any:
    """A module with a member of each kind, of a class of its own, and an attribute."""

    class Net(base or torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))
            self.register_parameter("bias", None)
            self.register_buffer("mean", torch.zeros(2))
            self.register_buffer("mask", torch.zeros(2), persistent=False)
            self.child = torch.nn.Linear(2, 2)
            self.unit = "m"

    return Net()


def names(module: Any) -> list[str]:
    return [name for name, _ in module.named_parameters(recurse=False)]


@program
def vars_has_the_dictionaries_and_not_what_they_hold(torch: Any) -> None:
    net = made(torch)
    assert not {"weight", "bias", "mean", "mask", "child"} & set(vars(net))
    assert {"training", "unit", "_parameters", "_buffers", "_modules"} <= set(vars(net))
    assert vars(net)["_parameters"] is net._parameters and vars(net)["unit"] == "m"
    assert list(net._parameters) == ["weight", "bias"] and list(net._buffers) == ["mean", "mask"]
    assert vars(net).get("weight") is None and "weight" not in net.__dict__
    for value in net._parameters, net._buffers, net._modules, vars(net):
        assert isinstance(value, dict)
    assert inspect.getattr_static(net, "unit") == "m"
    assert inspect.getattr_static(net, "weight", None) is None
    assert {"weight", "child", "mean", "unit"} <= set(dir(net))


@program
def vars_is_live(torch: Any) -> None:
    net = made(torch)
    attributes = vars(net)
    net.size, net.unit = 3, "s"
    assert attributes["size"] == 3 and dict(attributes)["unit"] == "s" and "size" in attributes
    attributes["size"] = 4
    assert net.size == 4 and {**attributes}["size"] == 4
    attributes |= {"size": 5, "other": 6}
    assert (net.size, net.other) == (5, 6)
    assert (attributes.pop("other"), attributes.pop("other", 7)) == (6, 7)
    assert not hasattr(net, "other") and attributes.setdefault("size", 8) == 5
    del attributes["unit"]
    assert not hasattr(net, "unit") and "unit" not in list(attributes)
    assert attributes == dict(attributes) and len(attributes) == len(attributes.copy())
    assert repr(attributes) == repr(dict(attributes))
    for wrong in "weight", "unit":
        try:
            attributes[wrong]
        except KeyError:
            continue
        raise AssertionError(wrong)


@program
def entries_of_the_dictionaries_are_attributes(torch: Any) -> None:
    net = made(torch)
    first, second = torch.nn.Parameter(torch.zeros(1)), torch.ones(3)
    net._parameters["weight"] = second  # what functional calls do
    assert net.weight is second and names(net) == ["weight"]
    net._parameters["extra"] = first
    assert net.extra is first and names(net) == ["weight", "extra"]
    assert net._parameters.pop("weight") is second and not hasattr(net, "weight")
    net.weight = "plain"
    assert vars(net)["weight"] == "plain" and names(net) == ["extra"]
    net._parameters.update(weight=first)
    assert net.weight == "plain" and net._parameters["weight"] is first
    del vars(net)["weight"]
    assert net.weight is first
    vars(net)["mean"] = "hides"
    assert net.mean == "hides" and net._buffers["mean"].shape == (2,)
    del net._buffers["mean"]
    assert net.mean == "hides" and vars(net).pop("mean") == "hides" and not hasattr(net, "mean")
    assert net._modules.setdefault("child", None) is net.child
    net._modules |= {"other": net.child}
    assert net.other is net.child and net._modules.popitem()[0] == "other"
    assert not hasattr(net, "other")
    net._modules.clear()
    assert not hasattr(net, "child") and not list(net.children())


@program
def another_dictionary_may_take_their_place(torch: Any) -> None:
    net, twin = made(torch), made(torch)
    before, weight = net._parameters, net.weight
    others = {"other": torch.nn.Parameter(torch.zeros(1))}
    net._parameters = others
    assert net._parameters is others and names(net) == ["other"] and not hasattr(net, "weight")
    assert net.other is others["other"]
    others["more"] = weight
    del others["other"]
    assert net.more is weight and not hasattr(net, "other") and names(net) == ["more"]
    before["weight"] = torch.nn.Parameter(torch.zeros(1))  # which is not the module's now
    assert not hasattr(net, "weight")
    net._parameters = before
    assert net.weight is before["weight"] is not weight and names(net) == ["weight"]
    vars(net)["_buffers"] = OrderedDict(mean=weight)
    assert net.mean is weight and not hasattr(net, "mask")
    object.__setattr__(net, "_modules", {})
    assert not list(net.children()) and not hasattr(net, "child")
    assert twin.child.weight.shape == (2, 2) and twin.mean.shape == (2,) and twin.unit == "m"


@program
def two_modules_may_share_a_dictionary(torch: Any) -> None:
    net, twin = made(torch), made(torch)
    twin._parameters = net._parameters
    assert twin.weight is net.weight
    net.weight = torch.nn.Parameter(torch.zeros(3))
    assert twin.weight is net.weight and twin.weight.shape == (3,)
    del twin.weight
    assert not hasattr(net, "weight") and not hasattr(twin, "weight")
    shallow = copy.copy(net)
    shallow.mean, shallow.unit = torch.ones(5), "s"
    assert net.mean is shallow.mean and (net.unit, shallow.unit) == ("m", "s")
    shallow._buffers = shallow._buffers.copy()
    shallow._buffers["mean"] = None
    assert shallow.mean is None and net.mean.shape == (5,)
    shared = shallow._modules
    del shallow
    shared["child"] = torch.nn.ReLU()
    assert isinstance(net.child, torch.nn.ReLU)


@program
def attributes_are_copied_by_dict(torch: Any) -> None:
    net = made(torch)
    twin = type(net).__new__(type(net))
    twin.__dict__.update(net.__dict__)
    assert twin.weight is net.weight and twin._parameters is net._parameters and twin.unit == "m"
    other = type(net).__new__(type(net))
    other.__dict__ = net.__dict__.copy()
    assert other.child is net.child and other.unit == "m" and len(other.state_dict()) == 4
    other.__dict__ = {"unit": "s"}
    assert other.unit == "s" and not hasattr(other, "weight") and net.unit == "m"
    twin.__dict__ = twin.__dict__
    assert twin.weight is net.weight and twin.unit == "m" and twin.mask is net.mask


@program
def classes_before_module_change_its_state(torch: Any) -> None:
    class Mixin:
        def __getstate__(self) -> Any:
            state: Any = super().__getstate__()
            state = state.copy()
            state["_modules"] = state["_modules"].copy()
            state["kept"] = state["_modules"].pop("child")
            return state

        def __setstate__(self, state: Any) -> None:
            self.__dict__.update(state)
            self.child = self.__dict__.pop("kept")

    class Net(Mixin, torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.child = torch.nn.Linear(2, 2)

    net = Net()
    assert "child" not in vars(net) and "child" not in net.__getstate__()
    twin = copy.deepcopy(net)
    assert twin.child is twin._modules["child"] is not net.child and "child" not in vars(twin)


@program
def copies_and_pickles_are_independent(torch: Any) -> None:
    linear = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    linear.tied, linear.scale = linear[0].weight, 2
    for twin in copy.deepcopy(linear), pickle.loads(pickle.dumps(linear)):
        assert twin.tied is twin[0].weight is not linear.tied and twin.scale == 2
        assert list(twin.state_dict()) == list(linear.state_dict())
        assert "tied" not in vars(twin) and "scale" in vars(twin)
        twin[0].weight = None
        assert twin[0].weight is None is not linear[0].weight
        twin.tied = torch.nn.Parameter(torch.zeros(1))
        assert twin.tied.shape == (1,) and linear.tied.shape == (3, 2)
    assert "weight" not in linear[0].__reduce_ex__(2)[2]
    kept = copy.deepcopy(linear._modules)
    assert kept["0"] is not linear[0] and list(kept) == ["0", "1"]


@program
def classes_may_say_what_their_state_is(torch: Any) -> None:
    class Kept(torch.nn.Linear):
        def __getstate__(self) -> Any:
            state = self.__dict__.copy()
            state["note"] = "saved"
            return state

        def __setstate__(self, state: Any) -> None:
            self.__dict__ = state

    twin = copy.deepcopy(Kept(2, 3))
    assert twin.note == "saved" and names(twin) == ["weight", "bias"]
    twin.weight = None
    assert twin.weight is None and names(twin) == ["bias"]


@program
def classes_may_have_ways_of_their_own(torch: Any) -> None:
    asked = []

    class Watched(torch.nn.Module):
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            if "_parameters" in self.__dict__ and name in self.__dict__["_parameters"]:
                return self.__dict__["_parameters"][name] * 2
            return super().__getattr__(name)

    class Stored(torch.nn.Module):
        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, torch.nn.Parameter):
                self.__dict__["_parameters"][name] = value
            else:
                object.__setattr__(self, name, value)

    class Magic(torch.nn.Module):
        def __getattribute__(self, name: str) -> Any:
            return 42 if name == "magic" else super().__getattribute__(name)

    watched = made(torch, Watched)
    asked.clear()
    assert watched.weight.tolist() == [2, 2] and watched.child is watched._modules["child"]
    assert asked == ["weight", "child"] and watched.unit == "m" and "weight" not in vars(watched)
    stored = Stored()
    stored.weight, stored.child = torch.nn.Parameter(torch.ones(1)), torch.nn.ReLU()
    assert names(stored) == ["weight"] and stored.weight.item() == 1
    assert "child" in vars(stored) and not list(stored.children())
    magic = made(torch, Magic)
    assert magic.magic == 42 and magic.weight.tolist() == [1, 1] and "weight" not in vars(magic)
    for module in watched, stored, magic:
        module._parameters = {"weight": torch.nn.Parameter(torch.zeros(1))}
        assert module.weight.item() == 0 and names(copy.deepcopy(module)) == ["weight"]


@program
def the_class_of_a_module_may_change(torch: Any) -> None:
    class Doubling(torch.nn.Module):
        def __getattr__(self, name: str) -> Any:
            found = super().__getattr__(name)
            return found * 2 if name == "weight" else found

    net = made(torch)
    plain = type(net)
    net.__class__ = Doubling
    assert net.weight.tolist() == [2, 2] and "weight" not in vars(net)
    net.__class__ = plain
    assert net.weight.tolist() == [1, 1] and "weight" not in vars(net)
    net.weight = None
    assert net.weight is None


@program
def a_dictionary_may_answer_by_itself(torch: Any) -> None:
    class Fetching(OrderedDict):
        fetched = 0

        def __getitem__(self, name: str) -> Any:
            Fetching.fetched += 1
            return super().__getitem__(name)

    net = torch.nn.Linear(2, 3)
    net._parameters = Fetching(net._parameters)
    Fetching.fetched = 0
    assert net.weight.shape == (3, 2) and net(torch.ones(1, 2)).shape == (1, 3)
    assert Fetching.fetched >= 3
    net.weight = torch.nn.Parameter(torch.zeros(3, 2))
    assert type(net._parameters) is Fetching and net.weight.abs().sum() == 0


@program
def a_property_may_have_the_name_of_a_member(torch: Any) -> None:
    class Named(torch.nn.Module):
        @property
        def weight(self) -> Any:
            return self._parameters["weight"] * 2

        @property
        def state(self) -> Any:
            raise AttributeError("not yet")

        @functools.cached_property
        def count(self) -> int:
            return len(self._parameters)

    net = Named()
    net._parameters["weight"] = torch.nn.Parameter(torch.ones(1))
    net._buffers["state"] = torch.ones(2)
    assert net.weight.item() == 2 and net.state.tolist() == [1, 1]
    assert net.count == 1 == vars(net)["count"] and not {"weight", "state"} & set(vars(net))


@program
def what_a_class_has_hides_members(torch: Any) -> None:
    class Named(torch.nn.Module):
        kind = "a class attribute"

        def layer(self, x: Any) -> Any:
            return x

    net = Named()
    net.layer, net.mro = torch.nn.Linear(2, 3), torch.nn.ReLU()
    net._parameters["kind"] = torch.nn.Parameter(torch.ones(1))
    assert net.layer(1) == 1 and net.kind == "a class attribute"
    assert isinstance(net._modules["layer"], torch.nn.Linear) and net.mro is net._modules["mro"]
    net.kind = torch.nn.Parameter(torch.zeros(1))
    assert net.kind == "a class attribute" and "kind" not in vars(net)
    vars(net)["layer"] = "an attribute"
    assert net.layer == "an attribute"


@program
def members_are_removed_and_replaced(torch: Any) -> None:
    net = made(torch)
    net.mean = torch.nn.Parameter(torch.ones(1))
    assert names(net) == ["weight", "mean"] and list(net._buffers) == ["mask"]
    net.mask = torch.nn.ReLU()
    assert not net._buffers and not net._non_persistent_buffers_set
    assert list(net._modules) == ["child", "mask"]
    net.sign = torch.nn.Buffer(torch.ones(1), persistent=False)
    assert "sign" not in vars(net) and net._non_persistent_buffers_set == {"sign"}
    del net.sign, net.child, net.weight
    assert not net._buffers and not net._non_persistent_buffers_set and names(net) == ["mean"]
    for name in "sign", "child", "weight", "never":
        try:
            delattr(net, name)
        except AttributeError:
            continue
        raise AssertionError(name)


@program
def a_module_begins_anew(torch: Any) -> None:
    net = made(torch)
    torch.nn.Module.__init__(net)
    assert not hasattr(net, "weight") and not net._modules and net.unit == "m"
    net.weight = torch.nn.Parameter(torch.ones(1))
    assert names(net) == ["weight"]
    early = torch.nn.Module.__new__(torch.nn.Module)
    early.note = "early"
    assert not hasattr(early, "_parameters") and vars(early) == {"note": "early"}
    del net._parameters
    assert not hasattr(net, "weight") and not hasattr(net, "_parameters")
