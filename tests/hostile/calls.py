"""Calls of one public function each: a sample of the op with some arguments replaced.

Where an op has samples, most calls change a few arguments of one, so that they reach its kernel;
the others are anything at all. What a call returns is read, and gradients are taken of it.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from hostile.values import ERRORS, Values
from ops.matrix import ALIASES, ROWS, SAMPLES, function_of
from samples import Sample

import rushlight as torch
from rushlight import _C

MODULES = [
    "nn.functional", "linalg", "fft", "special", "sparse", "vision.ops", "nested", "masked", "func",
    "autograd", "utils.dlpack", "nn.utils",
]  # fmt: skip
HOMES: dict[str, Any] = {
    "": torch, "Tensor": torch.Tensor, "UntypedStorage": torch.UntypedStorage,
    "Generator": torch.Generator, "_C": _C,
    **{name: importlib.import_module(f"rushlight.{name}") for name in MODULES},
}  # fmt: skip
# What waits, writes files, or changes the process for the calls that follow.
LEFT_OUT = re.compile(
    "save|load|compile|from_file|.*default_(device|dtype|tensor_type)|set_num_.*threads|"
    "use_deterministic_algorithms|set_deterministic_debug_mode|set_printoptions|set_warn_always|"
    "autocast_.*crement_nesting|__(del|class|subclasshook|init_subclass|.*attr|getattribute)__|"
    "_(cuda|nccl|cudnn|nvtx|nvml|nvrtc|set|start|stop|push|pop|exchange|open|close|keep|read|begin|"
    "end|map|anomaly|refuse|autocast|meet|onednn)_.*"
)
KEYWORDS = [
    "dim", "keepdim", "dtype", "device", "layout", "generator", "out", "requires_grad", "size", "n",
    "p", "mean", "std", "low", "high", "from", "to", "input", "memory_format", "replacement",
]  # fmt: skip
Functions = dict[str, tuple[Callable[..., Any], list[Sample]]]


def _of_ops() -> Functions:
    """The functions, methods and in-place forms of the op table, with their samples."""
    found: Functions = {}
    for name, row in {**ROWS, **ALIASES}.items():
        known = SAMPLES.get(row["alias_of"] or name)
        samples = known.all if known else []
        found[name] = function_of(name), samples
        for form in (row["name"], row["name"] + "_"):
            method = getattr(torch.Tensor, form, None)
            if method is not None:
                before = found.get(f"Tensor.{form}", (method, []))[1]
                found[f"Tensor.{form}"] = method, before + samples
    return found


def _of_modules(known: Functions) -> Functions:
    """The other functions of modules and classes."""
    found: Functions = {}
    for home, module in HOMES.items():
        for name in sorted(dir(module)):
            function = getattr(module, name)
            key = f"{home}.{name}" if home else name
            is_function = callable(function) and not isinstance(function, type)
            if not is_function or key in known or LEFT_OUT.fullmatch(name):
                continue
            if home == "_C" and hasattr(torch, name):
                continue
            found[key] = function, SAMPLES[key].all if key in SAMPLES else []
    return found


FUNCTIONS = _of_ops()
FUNCTIONS |= _of_modules(FUNCTIONS)


class Call(Values):
    """One call of a function, drawn from a seed and a number."""

    def __init__(self, name: str, seed: int, number: int) -> None:
        super().__init__(f"{name} {seed} {number}")
        self.name = name
        self.function, samples = FUNCTIONS[name]
        from_sample = samples and self.chance(0.9)
        self.args, self.kwargs = self._near(self.pick(samples)) if from_sample else self._any()
        if self.chance(0.08):
            self.kwargs["out"] = self._out()
        if self.chance(0.15):
            self.args = [wanting_grad(x) for x in self.args]

    def __str__(self) -> str:
        named = [f"{key}={described(value)}" for key, value in self.kwargs.items()]
        return f"{self.name}({', '.join([*map(described, self.args), *named])})"

    def run(self) -> Any:
        result = self.function(*self.args, **self.kwargs)
        read(result)
        self._differentiate(result)
        read(self.args)
        return result

    def _any(self) -> tuple[list[Any], dict[str, Any]]:
        of_class = {
            "Tensor": self.tensor, "UntypedStorage": self.storage, "Generator": torch.Generator
        }  # fmt: skip
        make = of_class.get(self.name.partition(".")[0])
        args = [self.value() for _ in range(self.pick([0, 1, 1, 2, 2, 3, 4]))]
        kwargs = {key: self.value() for key in KEYWORDS if self.chance(0.04)}
        return [make(), *args] if make else args, kwargs

    def _near(self, sample: Sample) -> tuple[list[Any], dict[str, Any]]:
        single = self.chance(0.3)  # as most programs are

        def tensor_of(array: np.ndarray) -> torch.Tensor:
            tensor = torch.from_numpy(np.array(array))
            return tensor.float() if single and tensor.is_floating_point() else tensor

        filled = sample.map(tensor_of)
        args, kwargs = list(filled.args), dict(filled.kwargs)
        keys = [*range(len(args)), *kwargs]
        for key in [self.pick(keys) for _ in range(self.pick([1, 1, 1, 2, 2, 3])) if keys]:
            place: Any = args if isinstance(key, int) else kwargs
            place[key] = self.like(place[key])
        if self.chance(0.08):
            args.append(self.value())
        return args, kwargs

    def _out(self) -> Any:
        """Something for out=, most of the time the memory of an argument."""
        tensors = [x for x in self.args if isinstance(x, torch.Tensor)]
        if not tensors or self.chance(0.3):
            return self.tensor()
        x = self.pick(tensors)
        try:
            out = self.pick([
                lambda: x, x.detach, lambda: x.flatten()[1:], lambda: x.transpose(0, -1), x.flatten,
                lambda: x[:0], lambda: x.expand(2, *x.shape), x.clone, lambda: x.unsqueeze(0),
                lambda: x.clone().resize_(0), lambda: self.overlapping(x), lambda: self.freed(x),
            ])()  # fmt: skip
        except ERRORS:
            out = x
        return (out, self.tensor()) if self.chance(0.1) else out

    def _differentiate(self, result: Any) -> None:
        """Takes gradients, sometimes after the memory of the arguments is gone."""
        results = result if isinstance(result, (list, tuple)) else [result]
        results = [y for y in results[:3] if isinstance(y, torch.Tensor) and y.requires_grad]
        if results and self.chance(0.15):
            for x in self.args:
                with contextlib.suppress(*ERRORS):
                    x.untyped_storage().resize_(0)
        for y in results:
            if y.numel() < 100_000 and y.layout is torch.strided:
                grad = torch.ones((), dtype=y.dtype).expand(y.shape)
                y.backward(grad, retain_graph=True, create_graph=self.chance(0.2))


def wanting_grad(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.detach().requires_grad_()
    return value


def read(result: Any) -> None:
    """Reads all elements; a view that reaches beyond its memory would be a mistake of ours."""
    if isinstance(result, torch.Tensor):
        if result.layout is not torch.strided or result.device.type != "cpu":
            repr(result)
        elif 0 < result.numel() < 100_000:
            result.clone().tolist()
    elif isinstance(result, (list, tuple)):
        for item in result[:20]:
            read(item)


def described(value: Any) -> str:
    """What an argument is, in a line."""
    if isinstance(value, (list, tuple)):
        is_deep = len(value) == 1 and isinstance(value[0], (list, tuple))
        if is_deep or len(value) > 20:
            return f"{type(value).__name__} of {len(value)}"
        return f"{type(value).__name__}({', '.join(map(described, value))})"
    if not isinstance(value, torch.Tensor):
        return repr(value)[:100]
    text = f"{value.dtype} {tuple(value.shape)} {value.device} {value.layout}"
    if value.layout is torch.strided:
        text += f", strides {value.stride()}, offset {value.storage_offset()}"
        with contextlib.suppress(*ERRORS):
            text += f", {value.untyped_storage().nbytes()} bytes"
            text += f", {value.tolist()}" if value.numel() < 13 else ""
    return f"<{text}{', wants grad' if value.requires_grad else ''}>"
