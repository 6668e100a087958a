"""How the attributes of modules are read, set and deleted by classes with ways of their own."""

import pytest

import rushlight as torch
from rushlight import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))


def test_missing_attribute_has_pythons_message() -> None:
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        _ = Net().nothing


def test_wrappers_may_fall_back_to_what_they_wrap() -> None:
    class Wrapper(nn.Module):
        def __init__(self, inner) -> None:
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    net = Net()
    assert Wrapper(net).scale is net.scale
    with pytest.raises(AttributeError, match="nothing"):
        _ = Wrapper(net).nothing


def test_classes_with_a_getattr_of_their_own_ask_that_of_the_module():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.__getattr__("inner"), name)

    class Further(Wrapper):
        pass

    layer = nn.Linear(2, 3)
    assert Wrapper(layer).weight is Further(Wrapper(layer)).weight is layer.weight
    assert layer.__getattr__("weight") is nn.Module.__getattr__(layer, "weight") is layer.weight
    for get in (getattr, nn.Module.__getattr__):
        with pytest.raises(AttributeError, match="'Linear' object has no attribute 'other'"):
            get(layer, "other")


def test_an_attribute_set_past_the_module_is_no_child() -> None:
    class Net(torch.nn.Module):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "plain":
                return super(torch.nn.Module, self).__setattr__(name, value)
            return super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            return super(torch.nn.Module, self).__delattr__(name)

    net = Net()
    net.plain, net.child = torch.nn.ReLU(), torch.nn.ReLU()
    assert [name for name, _ in net.named_children()] == ["child"] and net.plain is not None
    del net.plain
    assert not hasattr(net, "plain")


def test_a_getattr_that_a_class_gets_later_is_asked():
    class Late(nn.Linear):
        pass

    late = Late(1, 1)
    Late.__getattr__ = lambda self, name: name
    assert late.other == "other" and late.weight.shape == (1, 1)
    del Late.__getattr__
    assert not hasattr(late, "other")


def test_members_are_deleted_by_a_class_with_its_own_delattr():
    class Careful(nn.Module):
        def __delattr__(self, name):
            if name in self._parameters:
                del self._parameters[name]

    module = Careful()
    module.weight = nn.Parameter(torch.ones(1))
    del module.weight
    assert not hasattr(module, "weight") and not list(module.parameters())


def test_a_getattr_of_a_class_is_asked_for_members():
    asked = []

    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.number = nn.Linear(1, 1), 3
            self.register_buffer("mean", torch.zeros(1))

        def __getattr__(self, name):
            asked.append(name)
            return super().__getattr__(name)

        @property
        def half(self):
            return self.number / 2

    class Further(Watched):
        pass

    for watched in Watched(), Further():
        asked.clear()
        assert watched.layer.weight.shape == (1, 1) and watched.mean.item() == 0
        assert watched.number == 3 and watched.half == 1.5 and watched.training
        assert asked == ["layer", "mean"]
        assert len(watched.state_dict()) == 3 and not hasattr(watched, "other")


def test_a_getattribute_of_a_class_is_asked() -> None:
    class Magic(Net):
        def __getattribute__(self, name):
            return 42 if name == "magic" else super().__getattribute__(name)

    class Further(Magic):
        pass

    for net in Magic(), Further():
        assert net.magic == 42 and net.scale.shape == (3,) and net.training
        with pytest.raises(AttributeError, match="has no attribute 'other'"):
            _ = net.other


@pytest.mark.parametrize("has_getattr", [False, True])
def test_a_member_stands_in_for_a_property_that_raises_attribute_error(has_getattr) -> None:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ready = False
            self.register_buffer("state", torch.zeros(1))

        @property
        def state(self):
            if self.ready:
                return "made"
            raise AttributeError("not yet")

        if has_getattr:

            def __getattr__(self, name):
                return "other" if name == "other" else super().__getattr__(name)

    class Further(Lazy):
        pass

    for net in Lazy(), Further():
        assert net.state is net._buffers["state"] and [*net.state_dict()] == ["state"]
        net.ready = True
        assert net.state == "made" and hasattr(net, "other") is has_getattr
        assert net._buffers["state"].tolist() == [0]


def test_a_property_that_works_takes_its_name() -> None:
    class Named(nn.Module):
        @property
        def weight(self) -> str:
            return "property"

    net = Named()
    with pytest.raises(KeyError, match="attribute 'weight' already exists"):
        net.weight = nn.Parameter(torch.ones(1))  # pyright: ignore[reportAttributeAccessIssue]
    assert net.weight == "property" and not list(net.parameters())
