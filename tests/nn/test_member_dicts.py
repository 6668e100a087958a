"""The dictionaries of a module's members are PyTorch's, and reading members stays fast.

What programs do with them is in tests/member_programs.py; tests/compat runs that on PyTorch, too.
"""

import gc
import weakref

import member_programs
import pytest

import rushlight as torch
from rushlight import nn


@pytest.mark.parametrize("program", member_programs.PROGRAMS, ids=lambda p: p.__name__)
def test_dictionaries_of_members(program) -> None:
    program(torch)


def test_members_are_found_without_asking_getattr(monkeypatch) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

    net = Net()

    def fail(self, name):
        raise AssertionError(name)

    monkeypatch.setattr(nn.Module.__mro__[3], "__getattr__", fail)
    net._parameters = net._parameters.copy()
    net._parameters["other"] = net.weight
    assert net.other is net.weight


def test_a_module_is_freed_without_the_collector() -> None:
    gc.disable()
    try:
        net = member_programs.made(torch)
        kept, gone = net._parameters, weakref.ref(net)
        del net
        assert gone() is None
        kept["weight"] = None  # nobody shows it
    finally:
        gc.enable()


def test_attributes_are_set_to_a_dictionary_only() -> None:
    net = nn.Linear(1, 1)
    with pytest.raises(TypeError, match="__dict__ must be set to a dictionary, not a 'int'"):
        net.__dict__ = 3
    assert net.weight.shape == (1, 1)
