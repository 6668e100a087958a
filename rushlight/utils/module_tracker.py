"""Which modules run, in forward and in backward, for tools that ask from inside an op."""

from __future__ import annotations

from typing import Any, Self

from rushlight import _C, Tensor, nn
from rushlight.autograd.graph import register_multi_grad_hook
from rushlight.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from rushlight.utils._pytree import tensor_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context that knows the modules that run, or whose backward runs.

    A module's backward begins with the first gradient of its outputs and ends with the last of its
    inputs, or with the whole backward if no input requires grad.

    Attributes:
        parents: the names of these modules, and "Global". A module that was called by no other has
            the name of its class, one inside of it that and its path.

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
        self._names: dict[nn.Module, str] = {}
        self._hooks: list[Any] = []
        self._walk = -1  # of whose end we shall be told

    @property
    def is_bw(self) -> bool:
        """Whether it is a backward that runs."""
        return _C._current_walk() != -1

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

    def _name_of(self, module: nn.Module) -> str:
        if module not in self._names:
            base = type(module).__name__
            for path, child in module.named_modules():
                self._names.setdefault(child, f"{base}.{path}" if path else base)
        return self._names[module]

    def _before(self, module: nn.Module, args: Any) -> None:
        name = self._name_of(module)
        self.parents.add(name)
        inputs = _differentiable(args)
        if inputs:
            self._hooks.append(
                register_multi_grad_hook(inputs, lambda _: self.parents.discard(name))
            )

    def _after(self, module: nn.Module, args: Any, result: Any) -> None:
        name = self._name_of(module)
        self.parents.discard(name)
        outputs = _differentiable(result)
        if outputs:
            self._hooks.append(
                register_multi_grad_hook(outputs, lambda _: self._begin(name), mode="any")
            )

    def _begin(self, name: str) -> None:
        if self._walk != _C._current_walk():
            self._walk = _C._current_walk()
            _C._queue_callback(self._end)
        self.parents.add(name)

    def _end(self) -> None:
        self.parents = {"Global"}


def _differentiable(values: Any) -> list[Tensor]:
    return [x for x in tensor_leaves(values) if x.requires_grad]
