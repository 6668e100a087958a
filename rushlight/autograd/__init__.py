"""Gradients of tensors: backward and grad, and the switches that turn recording off."""

from __future__ import annotations

from rushlight import _C, Tensor
from rushlight._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Variable",
    "backward",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]

Variable = Tensor


def _as_tuple(tensors: Tensor | Sequence[Tensor | None] | None) -> tuple[Tensor | None, ...]:
    if tensors is None:
        return ()
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)


def _check_counts(outputs: tuple[Tensor | None, ...], grads: tuple[Tensor | None, ...]) -> None:
    if grads and len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Computes the gradients of tensors and adds them to the .grad of leaves.

    Args:
        tensors: what is differentiated.
        grad_tensors: the gradient of each, of its shape; may be None for a single element.
        retain_graph: keeps the tape for another backward; create_graph when None.
        create_graph: records the gradients, so that they can be differentiated again.
        inputs: the only leaves that collect gradients; all when None.

    Raises:
        RuntimeError: if a tensor has no history, or several elements and no gradient.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.autograd.backward([x.sum(), (2 * x).sum()])
        >>> x.grad
        tensor([3., 3.])
    """
    roots, grads = _as_tuple(tensors), _as_tuple(grad_tensors)
    _check_counts(roots, grads)
    leaves = None if inputs is None else _as_tuple(inputs)
    if leaves == ():
        raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    retain = create_graph if retain_graph is None else retain_graph
    _C._run_backward(roots, grads, leaves, retain, create_graph, True)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Returns the gradients of outputs with respect to inputs, leaving every .grad alone.

    Args:
        outputs: what is differentiated.
        inputs: with respect to what.
        grad_outputs: the gradient of each output, of its shape; may be None for a single element.
        retain_graph: keeps the tape for another backward; create_graph when None.
        create_graph: records the gradients, so that they can be differentiated again.
        allow_unused: gives None for inputs that outputs do not depend on, instead of raising.
        is_grads_batched: not supported.
        materialize_grads: gives zeros for such inputs.

    Returns:
        One gradient per input, of its shape.

    Raises:
        RuntimeError: if an input was not used and allow_unused is not set.

    Example:
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> (first,) = torch.autograd.grad(x**3, x, create_graph=True)
        >>> torch.autograd.grad(first, x)
        (tensor(12.),)
    """
    if is_grads_batched:
        raise NotImplementedError(
            "grad: is_grads_batched is not supported. Loop over the gradients."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    elif not allow_unused and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True"
        )
    roots = _as_tuple(outputs)
    wanted = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if not wanted:
        raise ValueError("grad requires non-empty inputs.")
    gradients = _as_tuple(grad_outputs)
    _check_counts(roots, gradients)
    retain = create_graph if retain_graph is None else retain_graph
    result = _C._run_backward(roots, gradients, wanted, retain, create_graph, False)
    if not allow_unused and any(g is None for g in result):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. "
            "Set allow_unused=True if this is the desired behavior."
        )
    if materialize_grads:
        from rushlight import zeros_like

        return tuple(zeros_like(x) if g is None else g for g, x in zip(result, wanted, strict=True))
    return result


# Below what they are made of.
from rushlight.autograd import functional  # noqa: E402
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck  # noqa: E402
