"""Gradients of tensors: backward and grad, the user's own, the switches that turn recording off."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from rushlight import _C, Tensor
from rushlight._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from rushlight.autograd import anomaly_mode, forward_ad, function, grad_mode, graph
from rushlight.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from rushlight.autograd.function import Function
from rushlight.autograd.grad_mode import (
    enforce_grad_layout_policy,
    is_multithreading_enabled,
    set_multithreading_enabled,
)
from rushlight.autograd.graph import GradientEdge
from rushlight.autograd.variable import Variable

__all__ = [
    "Function",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def _as_tuple(tensors: Any) -> tuple[Any, ...]:
    if tensors is None:
        return ()
    return (tensors,) if isinstance(tensors, (Tensor, GradientEdge)) else tuple(tensors)


def _zeros_for(place: Tensor | GradientEdge, requires_grad: bool) -> Tensor:
    from rushlight import zeros, zeros_like

    if isinstance(place, Tensor):
        return zeros_like(place, requires_grad=requires_grad)
    shape, dtype, device = place.node._result(place.output_nr)
    return zeros(shape, dtype=dtype, device=device, requires_grad=requires_grad)


def _check_counts(outputs: tuple[Any, ...], grads: tuple[Any, ...]) -> None:
    if grads and len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")


def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None,
) -> None:
    """Computes the gradients of tensors and adds them to the .grad of leaves.

    Args:
        tensors: what is differentiated: tensors, or edges of the graph in their place.
        grad_tensors: the gradient of each, of its shape; may be None for a single element.
        retain_graph: keeps the tape for another backward; create_graph when None.
        create_graph: records the gradients, so that they can be differentiated again.
        grad_variables: the old name of grad_tensors.
        inputs: the only leaves that collect gradients; all when None.

    Raises:
        RuntimeError: if a tensor has no history, or several elements and no gradient.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.autograd.backward([x.sum(), (2 * x).sum()])
        >>> x.grad
        tensor([3., 3.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "backward(). Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    roots, grads = _as_tuple(tensors), _as_tuple(grad_tensors)
    _check_counts(roots, grads)
    leaves = None if inputs is None else _as_tuple(inputs)
    if leaves == ():
        raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    retain = create_graph if retain_graph is None else retain_graph
    _C._run_backward(roots, grads, leaves, retain, create_graph, True)


def _batched_grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Tensor | Sequence[Tensor | None] | None,
    create_graph: bool,
    allow_unused: bool | None,
    materialize_grads: bool,
) -> Any:
    from rushlight.func import vmap

    given = _as_tuple(grad_outputs)
    used: list[int] = []

    def pull(*batched: Tensor) -> tuple[Tensor, ...]:
        left = iter(batched)
        found = grad(
            outputs,
            inputs,
            [None if g is None else next(left) for g in given],
            True,
            create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
        used[:] = [i for i, g in enumerate(found) if g is not None]
        return tuple(found[i] for i in used)

    mapped = vmap(pull)(*(g for g in given if g is not None))
    gradients: list[Tensor | None] = [None] * len(_as_tuple(inputs))
    for i, g in zip(used, mapped, strict=True):
        gradients[i] = g
    return tuple(gradients)


def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Returns the gradients of outputs with respect to inputs, leaving every .grad alone.

    Args:
        outputs: what is differentiated: tensors, or edges of the graph in their place.
        inputs: with respect to what; likewise.
        grad_outputs: the gradient of each output, of its shape; may be None for a single element.
        retain_graph: keeps the tape for another backward; create_graph when None.
        create_graph: records the gradients, so that they can be differentiated again.
        only_inputs: has no effect; gradients are of the inputs only.
        allow_unused: gives None for inputs that outputs do not depend on, instead of raising.
        is_grads_batched: takes grad_outputs with a batch along dim 0, and gives such gradients, by
            vmap.
        materialize_grads: gives zeros for such inputs.

    Returns:
        One gradient per input, of its shape.

    Raises:
        RuntimeError: if an input was not used and allow_unused is not set, or there are no inputs.

    Example:
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> (first,) = torch.autograd.grad(x**3, x, create_graph=True)
        >>> torch.autograd.grad(first, x)
        (tensor(12.),)
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if is_grads_batched:
        return _batched_grad(
            outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    elif not allow_unused and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True"
        )
    roots = _as_tuple(outputs)
    wanted = _as_tuple(inputs)
    if not wanted:
        raise RuntimeError("grad requires non-empty inputs.")
    gradients = _as_tuple(grad_outputs)
    _check_counts(roots, gradients)
    retain = create_graph if retain_graph is None else retain_graph
    result: Any = _C._run_backward(roots, gradients, wanted, retain, create_graph, False)
    if any(getattr(x, "is_nested", False) for x in wanted):
        result = tuple(
            x._like(g) if g is not None and getattr(x, "is_nested", False) else g
            for g, x in zip(result, wanted, strict=True)
        )
    if not allow_unused and any(g is None for g in result):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. "
            "Set allow_unused=True if this is the desired behavior."
        )
    if materialize_grads:
        pairs = zip(result, wanted, strict=True)
        return tuple(_zeros_for(x, create_graph) if g is None else g for g, x in pairs)
    return result


# Below what they are made of.
from rushlight.autograd import functional  # noqa: E402
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck  # noqa: E402


def __getattr__(name: str) -> Any:
    if name == "profiler":
        import importlib

        return importlib.import_module("rushlight.autograd.profiler")
    if name in ("DeviceType", "ProfilerActivity"):
        from rushlight import profiler

        return getattr(profiler, name)
    if name == "_profiler_enabled":
        from rushlight import _named_ranges

        return lambda: _named_ranges.is_profiling
    raise AttributeError(f"module 'rushlight.autograd' has no attribute '{name}'")
