"""The gradient of each sample of a batch on its own, as private training and importance need it.

The module runs as ever. Where a layer reads a parameter, backward asks what each sample would have
added to its gradient: vmap of the gradient of the layer's function at one sample.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.autograd import Function
from rushlight.func import functional_call, vjp, vmap
from rushlight.nn import Module
from rushlight.nn import functional as F
from rushlight.utils import _pytree as pytree

__all__ = ["ExpandedWeight", "call_for_per_sample_grads"]

# Each row of what these give depends on the row of their first argument alone.
_FUNCTIONS = {
    F.linear, F.embedding, F.conv1d, F.conv2d, F.conv3d, F.layer_norm, F.group_norm,
    F.instance_norm,
}  # fmt: skip


class ExpandedWeight(Tensor):
    """A parameter as layers read it while gradients are taken for each sample."""

    orig_weight: Tensor
    batch_size: int
    batch_dim: int
    scale: int  # of the gradients

    _hears_attributes = False

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _FUNCTIONS:
            return _apply(func, args, kwargs or {})
        if getattr(func, "__name__", "") == "__get__":
            return super().__torch_function__(func, types, args, kwargs)
        raise RuntimeError(
            "call_for_per_sample_grads: Expanded Weights encountered but cannot handle function "
            f"{getattr(func, '__name__', func)}. Layers whose parameters it follows are Linear, "
            "Embedding, convolutions and layer, group and instance norms."
        )


def _apply(func: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Calls a function of _FUNCTIONS, recording what each sample adds to the gradients."""
    if "input" in kwargs:
        kwargs = dict(kwargs)
        args = (kwargs.pop("input"), *args)
    (input, *rest), spec = pytree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(rest) if isinstance(leaf, ExpandedWeight)]
    weights = [rest[i] for i in places]
    _check_input(func, input, weights[0])

    def call(input: Tensor, *values: Tensor) -> Tensor:
        leaves = list(rest)
        for i, value in zip(places, values, strict=True):
            leaves[i] = value
        args, kwargs = pytree.tree_unflatten([input, *leaves], spec)
        return func(*args, **kwargs)

    return _PerSample.apply(call, weights, input, *[weight.orig_weight for weight in weights])


def _check_input(func: Callable[..., Tensor], input: Tensor, weight: ExpandedWeight) -> None:
    if input.dim() <= weight.batch_dim or (input.dim() == 1 and func is not F.embedding):
        raise RuntimeError(
            "call_for_per_sample_grads: Input without a batch dimension cannot be used with "
            "expanded weights. Please add a batch dimension."
        )
    size = input.shape[weight.batch_dim]
    if size != weight.batch_size:
        raise RuntimeError(
            "call_for_per_sample_grads: Expected ExpandedWeights to have batch size matching input "
            f"but got input batch size of {size} with ExpandedWeights of batch size "
            f"{weight.batch_size}."
        )


class _PerSample(Function):
    """A call whose gradient by its weights goes, sample by sample, to their grad_sample."""

    @staticmethod
    def forward(
        ctx: Any, call: Any, weights: list[ExpandedWeight], input: Tensor, *values: Tensor
    ) -> Tensor:
        ctx.call, ctx.weights = call, weights
        ctx.save_for_backward(input, *values)
        return call(input, *values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        input, *values = ctx.saved_tensors
        call, dim = ctx.call, ctx.weights[0].batch_dim

        def of_sample(input: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
            _, pull = vjp(functools.partial(call, input.unsqueeze(dim)), *values)
            return pull(grad.unsqueeze(dim))

        samples = vmap(of_sample, in_dims=dim)(input, grad)
        for weight, sample in zip(ctx.weights, samples, strict=True):
            sample = sample * weight.scale
            earlier = getattr(weight.orig_weight, "grad_sample", None)
            weight.orig_weight.grad_sample = sample if earlier is None else earlier + sample
        grad_input = None
        if ctx.needs_input_grad[2]:
            (grad_input,) = vjp(lambda input: call(input, *values), input)[1](grad)
        return None, None, grad_input, *[None for _ in values]


def call_for_per_sample_grads(
    module: Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """A form of a module's call whose backward fills grad_sample of parameters, and not grad.

    Args:
        module: made of layers whose parameters are read by linear, embedding, conv1d to conv3d,
            layer_norm, group_norm and instance_norm; other layers have no parameters.
        batch_size: number of samples N; None takes it from the tensors among the arguments.
        loss_reduction: "sum", or "mean" where the loss divides by N: gradients are then
            multiplied by it.
        batch_first: whether samples lie along dim 0 of what layers get, or dim 1.

    Returns:
        A function with the arguments of module. After backward, parameter.grad_sample is
        (N, *parameter.shape); contributions of several uses of a parameter are added.

    Raises:
        RuntimeError: for other arguments, for parameters that have a grad_sample already, and
            while it runs, for other layers with parameters and for tensors of other batches.

    Example:
        >>> from rushlight.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> layer, x = torch.nn.Linear(2, 1), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> call_for_per_sample_grads(layer)(x).sum().backward()
        >>> layer.weight.grad_sample
        tensor([[[1., 2.]],
        <BLANKLINE>
                [[3., 4.]]])
    """
    _check_arguments(module, batch_size, loss_reduction)

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        size = _size_of_batch(args, kwargs, batch_first) if batch_size is None else batch_size
        parameters = {}
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            weight = parameters[name] = parameter.detach().as_subclass(ExpandedWeight)
            weight.orig_weight = parameter
            weight.batch_size, weight.batch_dim = size, 0 if batch_first else 1
            weight.scale = size if loss_reduction == "mean" else 1
        return functional_call(module, parameters, args, kwargs)

    return call


def _check_arguments(module: Module, batch_size: int | None, loss_reduction: str) -> None:
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            "call_for_per_sample_grads: Expected loss_reduction argument to be sum or mean, got "
            f"{loss_reduction}."
        )
    if not isinstance(module, rl.nn.Module):
        raise RuntimeError(
            "call_for_per_sample_grads: Module passed must be nn.Module, got "
            f"{type(module).__name__}."
        )
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(
            "call_for_per_sample_grads: Batch size passed must be None or an integer, got "
            f"{type(batch_size).__name__}."
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(
            f"call_for_per_sample_grads: Batch size must be positive, got {batch_size}."
        )
    for name, parameter in module.named_parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                f"call_for_per_sample_grads: the parameter '{name}' has a grad_sample already, to "
                "which gradients of this call would be added. Set it to None first."
            )


def _size_of_batch(args: tuple[Any, ...], kwargs: dict[str, Any], batch_first: bool) -> int:
    tensors = pytree.tensor_leaves((args, kwargs))
    sizes = {tensor.shape[0 if batch_first else 1] for tensor in tensors}
    if len(sizes) != 1:
        found = f"sizes {sorted(sizes)}" if sizes else "no tensor"
        raise RuntimeError(
            f"call_for_per_sample_grads: the batch size is read from the arguments, but {found} "
            "were found there. Please give batch_size."
        )
    return sizes.pop()
