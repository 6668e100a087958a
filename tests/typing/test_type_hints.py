"""typing.get_type_hints reads the annotations of classes that programs derive from."""

import importlib
import inspect
import typing

import pytest

PACKAGES = ["nn", "utils.data", "distributions", "optim.lr_scheduler", "vision.models", "fx"]


@pytest.mark.parametrize("package", PACKAGES)
def test_annotations_of_public_classes_can_be_read(package: str) -> None:
    module = importlib.import_module(f"rushlight.{package}")
    classes = [value for value in vars(module).values() if inspect.isclass(value)]
    for found in classes:
        typing.get_type_hints(found)
    assert classes
