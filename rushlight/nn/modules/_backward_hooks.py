"""How backward hooks of a module reach the tape.

A module's tensor inputs, and then its outputs, pass through one gate each: an identity node whose
gradients are all known together when the engine reaches it, which hooks of single tensors cannot
promise. Imported when the first backward hook runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.nn.modules._hook_tables import Hook
from rushlight.nn.modules._hooks import Hooked


class BackwardWatch:
    """Runs the backward hooks of one call of one module."""

    def __init__(self, module: Hooked, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self._module = module
        self._hooks = hooks
        self._pre_hooks = pre_hooks
        self._input_count = 0
        self._watches_inputs = False
        self._grad_output: tuple[Any, ...] | None = None

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Puts the tensors among args behind a gate that runs the hooks."""
        self._input_count = len(args)
        watched = self._gate(args, self._on_grad_input) if self._hooks else None
        self._watches_inputs = watched is not None
        return args if watched is None else watched

    def outputs(self, result: Any) -> Any:
        """Puts a tensor, or the tensors of a tuple, behind a gate that runs the pre-hooks."""
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=4,
            )
            return result
        values = result if isinstance(result, tuple) else (result,)
        watched = self._gate(values, self._on_grad_output)
        if watched is None:
            return result
        if isinstance(result, Tensor):
            return watched[0]
        return watched if type(result) is tuple else type(result)(*watched)  # a named tuple

    def _gate(
        self, values: tuple[Any, ...], callback: Callable[..., Any]
    ) -> tuple[Any, ...] | None:
        """values with the tensors that require grad behind a gate; None if there are none."""
        positions = [
            i for i, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad
        ]
        if not positions or not rl.is_grad_enabled():
            return None

        def on_grads(grads: Sequence[Any]) -> list[Any]:
            full: list[Any] = [None] * len(values)
            for i, grad in zip(positions, grads, strict=True):
                full[i] = grad
            changed = callback(tuple(full))
            return [changed[i] for i in positions]

        passed = list(values)
        gated = _C._gate(on_grads, [values[i] for i in positions])
        for i, tensor in zip(positions, gated, strict=True):
            passed[i] = tensor
        return tuple(passed)

    def _on_grad_output(self, grad_output: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self._pre_hooks:
            grad_output = self._checked(hook(self._module, grad_output), grad_output, "grad_output")
        self._grad_output = grad_output
        if not self._watches_inputs:
            if self._hooks:
                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to "
                    "module outputs since no inputs require gradients.",
                    stacklevel=4,
                )
            no_grads = (None,) * self._input_count
            for hook in self._hooks:
                changed = hook(self._module, no_grads, grad_output)
                if changed is not None and any(grad is not None for grad in changed):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should "
                        "always return None or None for all gradients."
                    )
        return grad_output

    def _on_grad_input(self, grad_input: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._grad_output is None:  # the outputs are not watched
            return grad_input
        for hook in self._hooks:
            changed = hook(self._module, grad_input, self._grad_output)
            grad_input = self._checked(changed, grad_input, "grad_input")
        self._grad_output = None
        return grad_input

    @staticmethod
    def _checked(changed: Any, grads: tuple[Any, ...], name: str) -> tuple[Any, ...]:
        """What a hook wants the gradients to be."""
        if changed is None:
            return grads
        changed = tuple(changed) if isinstance(changed, (tuple, list)) else (changed,)
        if len(changed) != len(grads):
            raise RuntimeError(
                f"Backward hook returned an invalid number of {name}, got {len(changed)}, "
                f"but expected {len(grads)}."
            )
        return changed
