"""The modules of PyTorch's own module database give the same in both libraries.

The database has sample calls of all modules, as arguments of the constructor and of forward.
Results, strides and gradients of inputs and parameters are compared, and the classes of exceptions
of calls that must fail.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from compat.databases import (
    Conversion,
    attempt,
    converted_tensor,
    outcomes,
    pytorch,
    without_needless_zeros,
)
from compat.differences import is_accepted_in_database
from compat.libraries import is_same, texts_of
from compat.memory_orders import MODULES
from compat.memory_orders import is_accepted as may_lie_otherwise

import rushlight as torch

database = pytest.importorskip("torch.testing._internal.common_modules")
pytestmark = pytest.mark.filterwarnings("ignore")

INFOS = {
    info.module_cls.__name__: info
    for info in database.module_db
    if hasattr(torch.nn, info.module_cls.__name__)
}
# Regions are drawn in evaluation too; the sample is a module. Both have tests of their own.
LEFT_OUT = ("FractionalMaxPool2d", "FractionalMaxPool3d", "TransformerEncoder")


def made(theirs: Any, library: Any, sample: Any, convert: Any, training: bool, dtype: Any) -> Any:
    """A module of a library in one mode, in the dtype."""
    arguments = sample.constructor_input
    cls = getattr(library.nn, theirs.__name__)
    module = cls(*convert(arguments.args), **convert(arguments.kwargs))
    return module.to(getattr(library, str(dtype)[6:])).train(training)


def share_state(ours: Any, theirs: Any, sample: Any, convert: Any) -> None:
    """Gives our module the state of PyTorch's; lazy ones have it after a call."""
    call = sample.forward_input
    if any("Uninitialized" in type(param).__name__ for param in theirs.parameters()):
        theirs(*call.args, **call.kwargs)
        ours(*convert(call.args), **convert(call.kwargs))
    ours.load_state_dict({k: converted_tensor(v) for k, v in theirs.state_dict().items()})


def without_chance(module: Any) -> None:
    """Dropout, as a module or as a number of another one, that drops nothing."""
    for part in module.modules():
        name = "p" if "Dropout" in type(part).__name__ else "dropout"
        if isinstance(getattr(part, name, None), float):
            setattr(part, name, 0.0)


def differences(info: Any, sample: Any, training: bool, dtype: Any) -> Iterator[str]:
    """Lines about what comes of one sample otherwise than in PyTorch."""
    convert = Conversion()
    theirs = made(info.module_cls, pytorch, sample, lambda value: value, training, dtype)
    ours = made(info.module_cls, torch, sample, convert, training, dtype)
    share_state(ours, theirs, sample, convert)
    for module in (ours, theirs):
        without_chance(module)
    found = []
    sought = {"gradient"}
    if not may_lie_otherwise(info.module_cls.__name__, MODULES):
        sought.add("strides")
    for library, module, change in ((torch, ours, convert), (pytorch, theirs, lambda x: x)):
        args, options = change(sample.forward_input.args), change(sample.forward_input.kwargs)
        parameters = list(module.parameters())
        call = lambda _, *args, module=module, **options: module(*args, **options)  # noqa: E731
        found.append(outcomes(library, call, (parameters, *args), options, sought))
    for what, expected in found[1].items():
        mine = found[0].get(what, found[0][""])
        if what == "gradient":
            mine = without_needless_zeros(mine, expected)
        if not is_same(mine, expected, 1e-7):
            texts = texts_of(mine, expected, 1e-7)
            where = f"{sample.desc} {dtype} {'training' if training else 'evaluation'} {what}"
            yield f"{where}\n  ours:      {texts[0]}\n  PyTorch's: {texts[1][:300]}"


def samples_of(info: Any, dtype: Any, training: bool) -> list[Any]:
    for seed in (pytorch.manual_seed, random.seed):
        seed(0)
    return info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=True, training=training
    )


@pytest.mark.parametrize("name", [name for name in INFOS if name not in LEFT_OUT])
def test_samples_of_modules(name: str) -> None:
    info = INFOS[name]
    found = []
    for dtype in (pytorch.float64, pytorch.float32, pytorch.complex128):
        for training in (True, False) if info.train_and_eval_differ else (True,):
            if dtype in info.dtypes:
                for sample in samples_of(info, dtype, training):
                    found += differences(info, sample, training, dtype)
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:10])


@pytest.mark.parametrize("name", [n for n in INFOS if INFOS[n].module_error_inputs_func])
def test_mistakes_with_modules(name: str) -> None:
    info = INFOS[name]
    calls = info.module_error_inputs_func(
        info, device="cpu", dtype=pytorch.float32, requires_grad=False, training=True
    )
    for k, wrong in enumerate(calls):
        sample, convert = wrong.module_error_input, Conversion()

        def run(library: Any, change: Any, sample: Any = sample) -> Any:
            module = made(info.module_cls, library, sample, change, True, pytorch.float32)
            call = sample.forward_input
            return module(*change(call.args), **change(call.kwargs)) if call else module

        ours = attempt(run, torch, convert)
        theirs = attempt(run, pytorch, lambda value: value)
        texts = texts_of(ours, theirs, 0)
        case = f"{name} [error {k}]"
        same = type(ours).__name__ == type(theirs).__name__
        assert same or is_accepted_in_database(case, *texts), texts
