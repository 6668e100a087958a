"""How autograd.functional calls func: with tensors of its own, checked, with all gradients.

func is called once, with tensors made from inputs, so that gradients of tensors which it captured
are never mistaken for those of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import _C, Tensor, zeros_like
from rushlight.autograd import grad

Tensors = tuple[Tensor, ...]
TensorOrTensors = Tensor | Tensors

_NOT_STRICT = "This is not allowed in strict mode"

# What jvp, vhp and hvp say of a v that is None.
OF_INPUT = "the input to the user-provided function is"

# What strict mode says of gradients that do not depend on anything.
CONSTANT_GRADIENT = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided "
    "function. This is not allowed in strict mode."
)
CONSTANT_JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on "
    "the inputs (this would be violated by a linear function for example)."
)


# Arguments and results


def as_tensors(value: Any, what: str, function: str) -> tuple[bool, Tensors]:
    """Whether value is a tuple, and its tensors; raises if anything in it is no tensor."""
    several = isinstance(value, tuple)
    values = value if several else (value,)
    for i, tensor in enumerate(values):
        if not isinstance(tensor, Tensor):
            found = f"value at index {i}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors "
                f"but the {found} has type {type(tensor)}."
            )
    return several, values


def as_arguments(inputs: Any, function: str, create_graph: bool) -> tuple[bool, Tensors]:
    """Tensors of our own with the values of inputs, that gradients are taken for."""
    several, tensors = as_tensors(inputs, "inputs", function)
    return several, _own(tensors, create_graph, True)


def _own(tensors: Tensors, create_graph: bool, differentiated: bool) -> Tensors:
    def own(tensor: Tensor) -> Tensor:
        if not (create_graph and tensor.requires_grad):
            return tensor.detach().requires_grad_(differentiated)
        if tensor.is_sparse:
            return tensor.clone()
        # Inside vmap each sample has its own.
        return _C._fresh_input(tensor) if differentiated else tensor.view_as(tensor)

    return tuple(own(tensor) for tensor in tensors)


def call(
    func: Callable[..., Any], inputs: Tensors, function: str, strict: bool
) -> tuple[bool, Tensors]:
    """Whether func returns a tuple, and its tensors."""
    several, outputs = as_tensors(func(*inputs), "outputs of the user-provided function", function)
    if strict:
        for i, output in enumerate(outputs):
            if not output.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The "
                    "outputs must be computed in a differentiable manner from the input when "
                    "running in strict mode."
                )
    return several, outputs


def call_for_one(func: Callable[..., Any], inputs: Tensors, function: str, strict: bool) -> Tensor:
    """The only element that func returns, as everything about Hessians needs it."""
    several, outputs = call(func, inputs, function, strict)
    if several:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single "
            "element"
        )
    return outputs[0]


def as_vectors(
    v: Any, function: str, create_graph: bool, like: Tensors, several: bool, source: str
) -> Tensors | None:
    """The tensors of v, of the shapes of like; None where a one stands for it."""
    if v is None:
        if len(like) == 1 and like[0].numel() == 1:
            return None
        raise RuntimeError(
            f"The vector v can only be None if {source} a single Tensor with a single element."
        )
    _, vectors = as_tensors(v, "v", function)
    if len(vectors) != len(like):
        if several:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (vector, tensor) in enumerate(zip(vectors, like, strict=True)):
        if vector.shape != tensor.shape:
            entry = f"Entry {i} in v" if several else "v"
            raise RuntimeError(
                f"{entry} has invalid size: should be {tensor.shape} but got {vector.shape}."
            )
    return _own(vectors, create_graph, False)


def given_back(tensors: Tensors, create_graph: bool, several: bool) -> TensorOrTensors:
    """Tensors in the form of what they belong to, without history unless that was asked for."""
    if not create_graph:
        tensors = tuple(tensor.detach() for tensor in tensors)
    return tensors if several else tensors[0]


# Gradients


def gradients_of(
    outputs: Sequence[Tensor | None],
    inputs: Tensors,
    vectors: Tensors | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[Tensor | None, ...]:
    """What grad gives for the outputs that have a history, None for everything without them."""
    recorded = [(i, out) for i, out in enumerate(outputs) if out is not None and out.requires_grad]
    if not recorded:
        return (None,) * len(inputs)
    weights = None if vectors is None else [vectors[i] for i, _ in recorded]
    roots = [out for _, out in recorded]
    return grad(roots, inputs, weights, retain_graph, create_graph, allow_unused=True)


def completed(
    gradients: Sequence[Tensor | None],
    like: Tensors,
    strict: bool,
    create_graph: bool,
    missing: str,
    constant: str,
) -> Tensors:
    """Zeros in place of absent gradients; in strict mode an error, also for constant ones."""
    for i, gradient in enumerate(gradients):
        if strict and gradient is None:
            raise RuntimeError(f"{missing.format(i)}. {_NOT_STRICT}.")
        if strict and create_graph and gradient is not None and not gradient.requires_grad:
            raise RuntimeError(
                f"The {constant} of the user-provided function is independent of input {i}. "
                f"{_NOT_STRICT} when create_graph=True."
            )
    return tuple(
        zeros_like(tensor) if gradient is None else gradient
        for gradient, tensor in zip(gradients, like, strict=True)
    )


def check_varies(gradients: Sequence[Tensor | None], meaning: str) -> None:
    """Raises unless every gradient exists and depends on something, as strict mode wants."""
    for i, gradient in enumerate(gradients):
        if gradient is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. "
                f"{_NOT_STRICT}."
            )
        if not gradient.requires_grad:
            raise RuntimeError(meaning.format(i))
