"""Tools that make objects from settings read annotations by typing.get_type_hints."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

import rushlight as torch

MODULES = """
    amp autograd.functional cuda distributed distributed.checkpoint distributed.fsdp
    distributed.rpc distributions distributions.constraints distributions.transforms export func
    futures hub masked multiprocessing nn nn.attention nn.functional nn.init nn.parallel nn.utils
    nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn optim
    optim.lr_scheduler optim.swa_utils overrides profiler serialization utils.checkpoint utils.data
    vision.datasets vision.io vision.models vision.ops vision.transforms
    vision.transforms.functional vision.transforms.v2 vision.transforms.v2.functional
    vision.tv_tensors vision.utils
"""


def _functions(name: str) -> Iterator[Any]:
    """What programs call to get something of a module: its functions, and __init__ of classes."""
    module = importlib.import_module(f"rushlight.{name}")
    for key in getattr(module, "__all__", dir(module)):
        value = getattr(module, key)
        function = value.__init__ if inspect.isclass(value) else value
        if not inspect.isfunction(function):
            continue
        package, part, *_ = f"{function.__module__}.".split(".")
        if package == "rushlight" and part == name.split(".")[0]:
            yield function


@pytest.mark.parametrize("name", MODULES.split())
def test_programs_read_the_types_that_functions_take(name: str) -> None:
    for function in _functions(name):
        hints = get_type_hints(function)
        assert hints.keys() == inspect.unwrap(function).__annotations__.keys()


def test_the_types_are_those_of_the_annotations() -> None:
    from rushlight.vision.transforms import v2

    conv, resize = get_type_hints(torch.nn.Conv2d.__init__), get_type_hints(v2.Resize.__init__)
    normal = get_type_hints(torch.distributions.Normal.__init__)
    assert (conv["in_channels"], conv["kernel_size"]) == (int, int | tuple[int, ...])
    assert normal["loc"] == torch.Tensor | bool | int | float
    assert resize["antialias"] == bool | None
