"""Operations with the user's own gradient: Function, and what its methods get as ctx.

The call itself, contexts and their nodes are native: bindings/function.cpp.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight import _C, Tensor, dtype
from rushlight._grad_mode import no_grad
from rushlight._signatures import signature

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class FunctionCtx:
    """What a Function's methods get as ctx: it takes notes in forward for backward."""

    output_grad_dtypes: tuple[dtype | None, ...] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for backward, which finds them in ctx.saved_tensors.

        Inputs and results must be kept this way, so that writes in place are noticed and nothing
        is kept alive in a circle. Anything else may be an attribute of ctx. Call it once.

        Args:
            *tensors: inputs, results or others; None stays None.

        Example:
            >>> class Square(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.save_for_backward(x)
            ...         return x * x
            ...     @staticmethod
            ...     def backward(ctx, grad):
            ...         (x,) = ctx.saved_tensors
            ...         return 2 * x * grad
            >>> x = torch.tensor(3.0, requires_grad=True)
            >>> Square.apply(x).backward()
            >>> x.grad
            tensor(6.)
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for jvp.

        Args:
            *tensors: inputs, results or others; None stays None.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; "
                    "you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Says that forward wrote inputs in place; it must return them, too.

        Args:
            *args: the inputs that it wrote.

        Example:
            >>> class Double_(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.mark_dirty(x)
            ...         return x.mul_(2)
            ...     @staticmethod
            ...     def backward(ctx, grad):
            ...         return 2 * grad
            >>> x = torch.ones(2, requires_grad=True)
            >>> y = x.clone()
            >>> Double_.apply(y) is y
            True
            >>> y.sum().backward()
            >>> x.grad
            tensor([2., 2.])
        """
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: object) -> None:
        """Does nothing: tensors that share a storage are found without it."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Says that results do not depend smoothly on the inputs; they will not require grad.

        Args:
            *args: the results, such as indices. Backward still gets zeros for them.
        """
        self.non_differentiable = args

    def set_output_grad_dtype(self, *dtypes: dtype | None) -> None:
        """Says in which dtypes backward gets the gradients of results. Call it once.

        Args:
            *dtypes: one for each value that forward returns; the dtype of the result is the
                default. None leaves a gradient as it comes, and stands for what has none.

        Example:
            >>> class Rounded(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.set_output_grad_dtype(torch.float32)
            ...         return x.to(torch.bfloat16)
            ...     @staticmethod
            ...     def backward(ctx, grad):
            ...         print(grad.dtype)
            ...         return grad
            >>> x = torch.ones(1, requires_grad=True)
            >>> (Rounded.apply(x) * 2).backward()
            torch.float32
        """
        if self.output_grad_dtypes is not None:
            raise RuntimeError("set_output_grad_dtype can only be called once")
        for declared in dtypes:
            if not isinstance(declared, dtype | None):
                raise RuntimeError(
                    "set_output_grad_dtype expects each declaration to be a torch.dtype or None, "
                    f"but got {type(declared).__name__}"
                )
        self.output_grad_dtypes = dtypes

    def set_materialize_grads(self, value: bool) -> None:
        """Says what backward gets for results that have no gradient.

        Args:
            value: True for zeros, which is the default; False for None.
        """
        self.materialize_grads = value


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """The class of contexts, which are the nodes of the tape at once: y.grad_fn."""

    _forward_cls: type[Function]

    def apply(self, *args: Any) -> Any:
        """Calls the Function's backward (or vjp) with this context."""
        return self._apply_backward(*args)

    def apply_jvp(self, *args: Any) -> Any:
        """Calls the Function's jvp with this context."""
        return self._forward_cls.jvp(self, *args)

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of saved_tensors."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.saved_tensors


class FunctionMeta(type):
    """Gives every Function a class of contexts of its own, with Backward after its name."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        super().__init__(name, bases, attrs)


class Function(_C._FunctionBase, FunctionCtx, metaclass=FunctionMeta):
    """An operation with a gradient of its own.

    Subclasses define the static methods forward and backward; apply calls the operation. The first
    is called unrecorded, the second recorded if backward was asked for create_graph, so that it can
    be differentiated again if it is made of differentiable operations.

    Example:
        >>> class Exp(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, i):
        ...         result = i.exp()
        ...         ctx.save_for_backward(result)
        ...         return result
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         (result,) = ctx.saved_tensors
        ...         return grad_output * result
        >>> x = torch.zeros(2, requires_grad=True)
        >>> Exp.apply(x)
        tensor([1., 1.], grad_fn=<ExpBackward>)
    """

    # Whether vmap may run forward, backward and jvp on whole batches by itself.
    generate_vmap_rule = False

    if TYPE_CHECKING:

        @classmethod
        def apply(cls, *args: Any, **kwargs: Any) -> Any: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the operation; to be overridden, in one of two forms.

        forward(ctx, *args) takes notes for backward on ctx itself. forward(*args) leaves that to
        setup_context, and is the form that transforms such as vmap need.

        Args:
            *args: whatever apply was called with; tensors among them may require grad.

        Returns:
            A tensor, or a tuple of tensors and other things.
        """
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Takes notes for backward, when forward has no ctx.

        Args:
            ctx: where the notes go.
            inputs: the arguments of forward, those that were left out included.
            output: what forward returned.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Computes the gradients of the inputs from those of the results; to be overridden.

        Args:
            ctx: the notes of forward; ctx.needs_input_grad says which gradients are wanted.
            *grad_outputs: a gradient for each result.

        Returns:
            A gradient for each argument of forward, None for those that have none.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Computes the directional derivatives of the results; to be overridden.

        Args:
            ctx: the notes of forward.
            *grad_inputs: a direction for each argument of forward, None for those that have none.

        Returns:
            A derivative for each result.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Computes the operation on a batch of arguments; may be overridden.

        Args:
            info: has batch_size and randomness.
            in_dims: for each argument the dim of the batch, or None.
            *args: the arguments of forward.

        Returns:
            The results, and for each of them the dim of the batch.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod "
            "or set generate_vmap_rule=True."
        )


def _bind(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """The arguments with defaults filled in, and the names of the last of them."""
    bound = signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return (*bound.args, *bound.kwargs.values()), tuple(bound.kwargs)


def _apply_lifted(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from rushlight.autograd._function_transforms import apply_lifted

    has_defaults = bool(getattr(cls.forward, "__defaults__", None))
    if cls.setup_context is not Function.setup_context and (kwargs or has_defaults):
        values, names = _bind(cls.forward, args, kwargs)
        by_place = len(values) - len(names)
        args, kwargs = values[:by_place], dict(zip(names, values[by_place:], strict=True))
    return apply_lifted(cls, args, kwargs)


_C._set_function_defaults(Function.setup_context, Function.backward, _bind, _apply_lifted)


class _Refusal(Function):
    """Passes gradients on that cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, *grads: Any) -> Any:
        return tuple(None if grad is None else grad.detach() for grad in grads)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a backward that cannot be differentiated itself: doing so raises, not misleads.

    Args:
        fn: the backward, for instance one that leaves for NumPy.

    Returns:
        A backward that runs unrecorded.

    Example:
        >>> from rushlight.autograd.function import once_differentiable
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @once_differentiable
        ...     def backward(ctx, grad):
        ...         return 2 * grad
        >>> x = torch.ones(1, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor([2.])
    """

    @functools.wraps(fn)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with no_grad():
            grads = fn(ctx, *args, **kwargs)
        recorded = _C.is_grad_enabled()
        if not recorded or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return grads
        several = grads if isinstance(grads, tuple) else (grads,)
        return _Refusal.apply(
            *(g.detach().requires_grad_() if isinstance(g, Tensor) else g for g in several)
        )

    return backward


class InplaceFunction(Function):
    """Here for old programs only; use Function."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Here for old programs only; use Function."""

    def forward_extended(self, *input: Any) -> None:
        """To be overridden."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """To be overridden."""
        raise NotImplementedError
