"""Which modules run, in forward and in backward, for tools that ask from inside an op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self
from weakref import WeakKeyDictionary

from rushlight import _C, Tensor, nn
from rushlight.autograd.graph import register_multi_grad_hook
from rushlight.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from rushlight.utils._pytree import tensor_leaves
from rushlight.utils.hooks import RemovableHandle

__all__ = ["ModuleCalls", "ModuleTracker"]


class ModuleCalls:
    """Tells in a with block which modules are called, by names, and when they end.

    A module that was called by no other has the name of its class, one inside of it that and its
    path.

    Args:
        begins: gets the name of a module that begins, and its arguments.
        ends: gets the name, and the result; None if the module raised.

    Example:
        >>> from rushlight.utils.module_tracker import ModuleCalls
        >>> layers = torch.nn.Sequential(torch.nn.ReLU())
        >>> with ModuleCalls(lambda name, _: print(name), lambda name, _: print(name, "ends")):
        ...     result = layers(torch.ones(1))
        Sequential
        Sequential.0
        Sequential.0 ends
        Sequential ends
    """

    def __init__(
        self, begins: Callable[[str, Any], object], ends: Callable[[str, Any], object]
    ) -> None:
        self._begins = begins
        self._ends = ends
        self._names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
        self._hooks: list[RemovableHandle] = []
        self._running: list[nn.Module] = []

    @property
    def is_on(self) -> bool:
        """Whether the with block runs."""
        return bool(self._hooks)

    def __enter__(self) -> Self:
        self._hooks = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *exc_info: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self._running = []

    def _name_of(self, module: nn.Module) -> str:
        if module not in self._names:
            base = type(module).__name__
            for path, child in module.named_modules():
                self._names.setdefault(child, f"{base}.{path}" if path else base)
        return self._names[module]

    def _before(self, module: nn.Module, args: Any) -> None:
        self._running.append(module)
        self._begins(self._name_of(module), args)

    def _after(self, module: nn.Module, args: Any, result: Any) -> None:
        if module in self._running:  # another's hook may have raised before it began
            self._running.remove(module)
            self._ends(self._name_of(module), result)


class ModuleTracker:
    """A context that knows the modules that run, or whose backward runs.

    A module's backward begins with the first gradient of its outputs and ends with the last of its
    inputs, or with the whole backward if no input requires grad.

    Attributes:
        parents: the names of these modules, as ModuleCalls gives them, and "Global".

    Example:
        >>> from rushlight.utils.module_tracker import ModuleTracker
        >>> tracker, layers = ModuleTracker(), torch.nn.Sequential(torch.nn.ReLU())
        >>> hook = layers[0].register_forward_pre_hook(lambda *_: print(sorted(tracker.parents)))
        >>> with tracker:
        ...     result = layers(torch.ones(1))
        ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._calls = ModuleCalls(self._before, self._after)
        self._walk = -1  # of whose end we shall be told

    @property
    def is_bw(self) -> bool:
        """Whether it is a backward that runs."""
        return _C._current_walk() != -1

    def __enter__(self) -> Self:
        self._calls.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._calls.__exit__(*exc_info)

    def _before(self, name: str, args: Any) -> None:
        self.parents.add(name)
        inputs = _differentiable(args)
        if inputs:
            register_multi_grad_hook(inputs, lambda _: self.parents.discard(name))

    def _after(self, name: str, result: Any) -> None:
        self.parents.discard(name)
        outputs = _differentiable(result)
        if outputs:
            register_multi_grad_hook(outputs, lambda _: self._begin(name), mode="any")

    def _begin(self, name: str) -> None:
        if not self._calls.is_on:
            return
        if self._walk != _C._current_walk():
            self._walk = _C._current_walk()
            _C._queue_callback(self._end)
        self.parents.add(name)

    def _end(self) -> None:
        self.parents = {"Global"}


def _differentiable(values: Any) -> list[Tensor]:
    return [x for x in tensor_leaves(values) if x.requires_grad]
