"""Every example in the docstrings of rushlight.nn runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import rushlight as torch

MODULES = [
    "rushlight.nn.attention",
    "rushlight.nn.attention.bias",
    "rushlight.nn.functional",
    "rushlight.nn._attention",
    "rushlight.nn.init",
    "rushlight.nn.parameter",
    *(
        info.name
        for package in (torch.nn.modules, torch.nn.utils)
        for info in pkgutil.iter_modules(package.__path__, package.__name__ + ".")
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, extraglobs={"torch": torch})
    assert failed == 0


@pytest.mark.parametrize("name", sorted(torch.nn.modules.__all__))
def test_every_layer_has_an_example(name):
    assert ">>> " in getattr(torch.nn, name).__doc__
