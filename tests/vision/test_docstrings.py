"""Every example in the docstrings of vision's foundations runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import rushlight as torch
from rushlight import vision
from rushlight.vision import transforms, tv_tensors
from rushlight.vision.transforms import v2

PACKAGES = ("rushlight.vision.io", "rushlight.vision.transforms", "rushlight.vision.tv_tensors")
MODULES = [
    "rushlight.vision.utils",
    *(
        module.name
        for module in pkgutil.walk_packages(vision.__path__, "rushlight.vision.")
        if module.name.startswith(PACKAGES)
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name) -> None:
    names = {"torch": torch, "transforms": transforms, "tv_tensors": tv_tensors, "v2": v2}
    assert doctest.testmod(importlib.import_module(name), extraglobs=names).failed == 0


def test_there_are_examples() -> None:
    modules = map(importlib.import_module, MODULES)
    tests = [test for module in modules for test in doctest.DocTestFinder().find(module)]
    assert sum(bool(test.examples) for test in tests) > 15
