"""Operators of one's own: a function with kernels, shapes, gradients and a name in torch.ops.

custom_op makes one from a Python function; Library adds them by schemas. What they do is in
_operator.py, what their signatures mean in _schema.py.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import rushlight as rl
from rushlight.library._check import OpCheckError, opcheck
from rushlight.library._libraries import Library, add_operator, define, is_key, set_kernel
from rushlight.library._libraries import _scoped_library as _scoped_library
from rushlight.library._operator import Operator, operator_of
from rushlight.library._schema import infer, parse

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "custom_op",
    "define",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """Returns the schema that a function's annotations say.

    Args:
        prototype_function: has an annotation for each parameter and the result.
        mutates_args: the names of the arguments that it writes to, or "unknown".
        op_name: stands before the schema.
        tags: have no effect.

    Raises:
        ValueError: if an annotation is missing or has no type in schemas.

    Example:
        >>> def scale(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor: ...
        >>> torch.library.infer_schema(scale, mutates_args=())
        '(Tensor x, float factor=2.0) -> Tensor'
    """
    return f"{op_name or ''}{infer(prototype_function, mutates_args)}"


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an operator of a function; without one, returns a decorator that does.

    Gradients and transforms see one step, whatever the function does: it may leave for NumPy or C.

    Args:
        name: "namespace::name".
        fn: computes the results, which are new tensors; its annotations say the schema.
        mutates_args: the names of the arguments that it writes to, or "unknown".
        device_types: the types of the devices that it is for; all unless given.
        schema: what the annotations would say otherwise.
        tags: torch.Tag or several, which the operator's `tags` are.

    Returns:
        A CustomOpDef, which is called like the function. It is torch.ops.namespace.name as well.

    Raises:
        ValueError: for a name of another form, or annotations that are no schema.

    Example:
        >>> @torch.library.custom_op("docs::sine", mutates_args=())
        ... def sine(x: torch.Tensor) -> torch.Tensor:
        ...     return torch.from_numpy(np.sin(x.numpy()))
        >>> import numpy as np
        >>> def setup_context(ctx, inputs, output):
        ...     ctx.save_for_backward(*inputs)
        >>> def backward(ctx, grad):
        ...     return grad * ctx.saved_tensors[0].cos()
        >>> sine.register_autograd(backward, setup_context=setup_context)
        >>> x = torch.zeros(2, requires_grad=True)
        >>> torch.ops.docs.sine(x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        found = infer(function, mutates_args) if schema is None else parse(schema)
        if schema is not None and mutates_args != "unknown":
            written = {parameter.name for parameter in found.parameters if parameter.writes}
            if written != {*mutates_args}:
                raise ValueError(
                    f"custom_op: mutates_args are {mutates_args}, but by schema {schema} the op "
                    f"mutates {written or '{}'}. Make them consistent."
                )
        op = add_operator(name, str(found), tags)
        op.is_checked = True
        made = CustomOpDef(op, function)
        made.register_kernel(device_types)(function)
        return made

    return make if fn is None else make(fn)


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """Makes an operator of a function that launches kernels of Triton, as custom_op does.

    Nothing looks into the function, so it may launch what it likes.

    Args:
        name: as of custom_op.
        fn: as of custom_op.
        mutates_args: as of custom_op.
        schema: as of custom_op.

    Returns:
        A CustomOpDef, or without fn a decorator.

    Example:
        >>> @torch.library.triton_op("docs::thrice", mutates_args=())
        ... def thrice(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 3
        >>> torch.ops.docs.thrice(torch.ones(2))
        tensor([3., 3.])
    """
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Returns the kernel as it is: nothing looks into the operators that launch it.

    Example:
        >>> torch.library.wrap_triton(print) is print
        True
    """
    return triton_kernel


class CustomOpDef:
    """What custom_op makes: an operator that more can be registered for."""

    def __init__(self, op: Operator, init_fn: Callable[..., Any]) -> None:
        self._opoverload = op
        self._init_fn = init_fn
        self._disabled: dict[str, Callable[..., Any]] = {}
        self._qualname = op._qualname
        self._namespace, self._name = op._qualname.split("::")
        self.__name__ = op.__name__
        self.__doc__ = init_fn.__doc__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """Registers what computes on some devices.

        Args:
            device_types: "cpu", "cuda" or a list of them; None for all that have no other.
            fn: what computes; without it, a decorator is returned.
        """
        return register_kernel(self, device_types, fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Puts a kernel out of use, or back, in the scope of a `with`.

        Without it the function that the operator was made of computes.

        Args:
            device_type: "cpu", "cuda", ...; without a kernel for it, nothing changes.
            enabled: whether the kernel is to be used.

        Example:
            >>> @torch.library.custom_op("docs::double", mutates_args=())
            ... def double(x: torch.Tensor) -> torch.Tensor:
            ...     return x * 2
            >>> @double.register_kernel("cpu")
            ... def double_by_sum(x):
            ...     return x + x
            >>> with double.set_kernel_enabled("cpu", enabled=False):
            ...     double(torch.ones(1))
            tensor([2.])
        """
        kernels, disabled = self._opoverload.kernels, self._disabled
        changes = device_type in kernels and enabled == (device_type in disabled)
        if not changes:
            logging.getLogger(__name__).warning(
                "set_kernel_enabled: the kernel of %s for %s %s.",
                self._qualname,
                device_type,
                f"was already {'enabled' if enabled else 'disabled'}"
                if device_type in kernels
                else "is not there: no kernel was registered for this device type",
            )

        def switch(enable: bool) -> None:
            if enable:
                kernels[device_type] = disabled.pop(device_type)
            else:
                disabled[device_type] = kernels[device_type]
                kernels[device_type] = self._init_fn

        if changes:
            switch(enabled)
        try:
            yield
        finally:
            if changes:
                switch(not enabled)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Registers what makes results of the right shapes and dtypes of tensors without values.

        Args:
            fn: computes nothing: torch.empty_like(x), for one.
        """
        return register_fake(self, fn)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Registers the gradient.

        Args:
            backward: gets ctx and a gradient for each result; returns one for each argument.
            setup_context: gets ctx, inputs and output, and keeps what backward needs.
        """
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Registers what computes a batch.

        Args:
            func: gets info, the dims of the batch for each argument, and the arguments; returns the
                results and their dims. Without it, a decorator is returned.
        """
        return register_vmap(self, func)

    def register_autocast(self, device_type: str, cast_inputs: rl.dtype) -> None:
        """Registers the dtype that floating-point arguments get under autocast."""
        register_autocast(self, device_type, cast_inputs)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers what an operator computes with on some devices; see CustomOpDef.register_kernel.

    Args:
        op: the operator or its name.
        device_types: "cpu", "cuda" or a list of them; None for all that have no other.
        func: what computes; without it, a decorator is returned.
        lib: has no effect.
    """
    found = operator_of(op)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        kinds = [device_types] if isinstance(device_types, str) else device_types or [""]
        for kind in kinds:
            found.kernels["" if kind == "default" else kind] = function
        return function

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Registers what makes results without values of an operator; see CustomOpDef.register_fake.

    Args:
        op: the operator or its name.
        func: computes shapes and dtypes; without it, a decorator is returned.
        lib: has no effect.
        allow_override: whether it may take the place of another one.

    Raises:
        RuntimeError: if there is no such operator, or there is one already.
    """
    found = operator_of(op)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if found.fake is not None and not allow_override:
            raise RuntimeError(f"register_fake: {found._qualname} already has a fake impl.")
        found.fake = function
        return function

    return register if func is None else register(func)


impl_abstract = register_fake


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Registers the gradient of an operator; see CustomOpDef.register_autograd.

    Args:
        op: the operator or its name.
        backward: gets ctx and a gradient for each result; returns one for each argument.
        setup_context: gets ctx, inputs and output, and keeps what backward needs.
        lib: has no effect.

    Raises:
        RuntimeError: if the operator writes to its arguments.
    """
    found = operator_of(op)
    if found.writes:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {found} with schema "
            f"{found._schema}. Please create a functional operator and register an autograd "
            "formula for that."
        )
    found.gradient = backward, setup_context


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: type,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers what a class of modes or tensors does with an operator.

    Args:
        op: the operator or its name.
        torch_dispatch_class: a class with __torch_dispatch__, which it is called in place of.
        func: gets the mode or the class, the operator, the classes of the tensors, args and kwargs,
            and returns the result; without it, a decorator is returned.
        lib: has no effect.

    Raises:
        RuntimeError: if there is no such operator.

    Example:
        >>> from rushlight.utils._python_dispatch import TorchDispatchMode
        >>> class Counts(TorchDispatchMode):
        ...     calls = 0
        >>> @torch.library.custom_op("docs::tripled", mutates_args=())
        ... def tripled(x: torch.Tensor) -> torch.Tensor:
        ...     return 3 * x
        >>> @torch.library.register_torch_dispatch("docs::tripled", Counts)
        ... def count(mode, func, types, args, kwargs):
        ...     mode.calls += 1
        ...     return func(*args, **kwargs)
        >>> x = torch.ones(2)
        >>> with Counts() as mode:
        ...     y = tripled(x)
        >>> mode.calls, y
        (1, tensor([3., 3.]))
    """
    found = operator_of(op)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        found.rules[torch_dispatch_class] = function
        return function

    return register if func is None else register(func)


def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Registers what computes a batch of an operator; see CustomOpDef.register_vmap.

    Args:
        op: the operator or its name.
        func: gets info, the dims of the batch and the arguments; without it, a decorator is
            returned.
        lib: has no effect.
    """
    found = operator_of(op)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        found.over_samples = function
        return function

    return register if func is None else register(func)


def register_autocast(
    op: Any, device_type: str, cast_inputs: rl.dtype, /, *, lib: Library | None = None
) -> None:
    """Registers the dtype that an operator's floating-point arguments get under autocast.

    Args:
        op: the operator or its name.
        device_type: "cpu" or "cuda".
        cast_inputs: the dtype.
        lib: has no effect.
    """
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    operator_of(op).casts[device_type] = cast_inputs


def impl(
    qualname: Any,
    types: Any,
    func: Any = None,
    dispatch_key: str = "",
    *,
    lib: Library | None = None,
) -> Any:
    """Registers what an operator computes with on some devices; "default" stands for all.

    Args:
        qualname: the name of the operator; or a Library, and then types is the name, func the
            dispatch key, and a decorator is returned.
        types: "cpu", "cuda", "default", a dispatch key such as "CPU", or a list of them.
        func: what computes; without it, a decorator is returned.
        dispatch_key: another way to say it with a Library; see Library.impl.
        lib: has no effect.
    """
    if isinstance(qualname, Library):

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(types, function, func or dispatch_key)
            return function

        return register
    if func is None:
        return lambda function: impl(qualname, types, function) or function
    for place in [types] if isinstance(types, str) else types:
        if is_key(place):
            set_kernel(operator_of(qualname), place, func)
        else:
            register_kernel(qualname, place, func)
    return None
