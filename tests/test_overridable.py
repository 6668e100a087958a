"""Every function of tensors lets the classes of its arguments take over, as a whole."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
from grouping import each

import rushlight as torch
from rushlight._told import told_of

MODULES = {
    "torch": torch,
    "nn.functional": torch.nn.functional,
    "linalg": torch.linalg,
    "fft": torch.fft,
    "special": torch.special,
}
# Functions that take no tensors, make them of something else, or are gone.
OF_NO_TENSORS = {
    "as_tensor", "asarray", "broadcast_shapes", "can_cast", "compile", "eig", "from_dlpack",
    "from_file", "from_numpy", "frombuffer", "handle_torch_function", "is_storage",
    "is_tensor", "load", "lstsq", "manual_seed", "matrix_rank", "promote_types", "range",
    "save", "seed", "solve", "symeig", "tensor", "thread_safe_generator",
    "to_dlpack", "typename",
    "overridable", "use_deterministic_algorithms",
    "vmap", "initial_seed", "compiled_with_cxx11_abi", "clear_autocast_cache",
    "cond", "while_loop",
    "get_rng_state", "resize_as_sparse_", "are_deterministic_algorithms_enabled",
}  # fmt: skip
PREFIXES = (
    "sym_",
    "set_",
    "get_",
    "is_autocast",
    "is_anomaly",
    "is_grad",
    "is_inference",
    "sparse_",
)
PREFIXES += ("autocast_", "is_deterministic", "is_vulkan", "is_warn", "has_")
# Other names of the same functions.
OTHER_NAMES = {"dsmm": "mm", "hsmm": "hspmm", "saddmm": "addmm", "spmm": "mm"}


class Taker:
    """Takes over whatever it meets."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return "taken", func


def functions(home: str) -> list[str]:
    return [
        name
        for name, function in inspect.getmembers(MODULES[home], callable)
        if not name.startswith(("_", *PREFIXES)) and name not in OF_NO_TENSORS
        if not inspect.isclass(function) and not inspect.ismodule(function)
    ]


def call(function: Any, argument: Any = Taker()) -> Any:  # noqa: B008
    """What a function returns for as many arguments as it needs."""
    for count in range(1, 14):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return function(*[argument] * count)
        except TypeError as error:
            if "argument" not in str(error):
                raise
    raise AssertionError("takes no number of arguments")


@each("name", functions, ids=str)
@pytest.mark.parametrize("home", MODULES)
def test_every_function_is_taken_over(home: str, name: str) -> None:
    function = getattr(MODULES[home], name)
    said, taken = call(function)
    assert said == "taken"
    assert taken.__name__ == OTHER_NAMES.get(name, name)
    assert taken is function or type(taken).__name__ == "OpFunction"


def test_functions_that_classes_can_take_over_are_listed() -> None:
    found = torch.overrides.get_overridable_functions()
    for home, module in MODULES.items():
        listed = found[module]
        assert {getattr(module, name) for name in functions(home)} <= set(listed)
        assert torch.manual_seed not in listed and torch.Tensor not in listed

    class Taken(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "taken", func

    x = torch.ones(2).as_subclass(Taken)
    names = set()
    for method in found[torch.Tensor]:
        names.add(method.__name__)
        if method.__name__ in ("__setitem__", "__get__", "__bool__", "__int__", "__float__"):
            continue  # have no result, or one of a certain type
        if method.__name__ in ("__len__", "__index__"):
            continue
        # Members that are no ops ask when an instance looks them up.
        is_told = method in told_of()
        said, taken = getattr(x, method.__name__)() if is_told else call(method, x)
        assert said == "taken"
        assert method == taken or method.__name__.startswith("__")
    assert {"add", "add_", "reshape", "__getitem__", "__setitem__", "__rsub__", "__lt__"} <= names
    assert {"__len__", "tolist", "dim", "to", "backward", "__repr__", "__reduce_ex__"} <= names
    assert not {"__hash__", "as_subclass"} & names


def test_modes_see_the_ops_inside() -> None:
    class Names(torch.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            self.names: list[str] = []

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    with Names() as mode:
        torch.nn.functional.normalize(x)
    assert mode.names == ["norm", "clamp_min", "div"]


def test_subclasses_take_over_functions_written_in_python() -> None:
    class Sub(torch.Tensor):
        pass

    x = torch.ones(1, 1, 2, 2).as_subclass(Sub)
    assert type(torch.nn.functional.interpolate(x, scale_factor=2)) is Sub
    assert type(torch.nn.functional.max_pool2d(input=x, kernel_size=2)) is Sub
    assert torch.is_floating_point(x) is True


def test_functions_keep_their_signatures() -> None:
    signature = inspect.signature(torch.nn.functional.interpolate)
    assert list(signature.parameters)[:3] == ["input", "size", "scale_factor"]
    assert torch.nn.functional.interpolate.__module__ == "rushlight.nn._vision"
