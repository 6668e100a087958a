"""Operators of one's own: a function with kernels, shapes, gradients and a name in torch.ops.

custom_op makes one from a Python function; Library adds them by schemas. What they do is in
_operator.py, what their signatures mean in _schema.py.
"""

from __future__ import annotations

import contextlib
import re
import weakref

import rushlight as rl
from rushlight.library._check import OpCheckError, opcheck
from rushlight.library._operator import Operator, operators
from rushlight.library._schema import infer, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

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
    "register_vmap",
]

_NAME = re.compile(r"\w+")
_defined_namespaces: set[str] = set()

# Where kernels that Library.impl registers run.
_KEYS = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "CompositeExplicitAutograd": "",
    "CompositeImplicitAutograd": None,
    "Autograd": None,
    "AutogradCPU": None,
    "AutogradCUDA": None,
    "": None,
}


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
        tags: have no effect.

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
        op = _add(name, str(found))
        made = CustomOpDef(op, function)
        made.register_kernel(device_types)(function)
        return made

    return make if fn is None else make(fn)


def _add(qualname: str, schema: str) -> Operator:
    """Adds an operator."""
    parts = qualname.split("::")
    if len(parts) != 2 or not all(_NAME.fullmatch(part.split(".")[0]) for part in parts):
        raise ValueError(
            f"custom_op: the name is {qualname!r}. It must be of the form namespace::name."
        )
    operators[qualname] = op = Operator(qualname, parse(schema))
    return op


class CustomOpDef:
    """What custom_op makes: an operator that more can be registered for."""

    def __init__(self, op: Operator, init_fn: Callable[..., Any]) -> None:
        self._opoverload = op
        self._init_fn = init_fn
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


def _operator_of(op: str | Operator | CustomOpDef) -> Operator:
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, Operator):
        return op
    if not isinstance(op, str):
        raise ValueError(f"expected the name of an operator, or one, but got {type(op).__name__}.")
    if op not in operators:
        raise RuntimeError(f"operator {op} does not exist")
    return operators[op]


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
    found = _operator_of(op)

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
    found = _operator_of(op)

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
    found = _operator_of(op)
    if found.writes:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {found} with schema "
            f"{found._schema}. Please create a functional operator and register an autograd "
            "formula for that."
        )
    found.gradient = backward, setup_context


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
    found = _operator_of(op)

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
    _operator_of(op).casts[device_type] = cast_inputs


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Adds an operator by its schema.

    Args:
        qualname: "namespace::name".
        schema: "(Tensor x, int n=2) -> Tensor".
        lib: what the operator leaves with.
        tags: have no effect.

    Example:
        >>> torch.library.define("docs::twice", "(Tensor x) -> Tensor")
        >>> @torch.library.impl("docs::twice", "default")
        ... def twice(x):
        ...     return 2 * x
        >>> torch.ops.docs.twice(torch.ones(2))
        tensor([2., 2.])
    """
    if qualname in operators:
        raise RuntimeError(
            f"Tried to register an operator ({qualname}{schema}) with the same name and overload "
            "name multiple times."
        )
    _add(qualname, schema)
    if lib is not None:
        lib._names.append(qualname)


def impl(
    qualname: Any,
    types: str | Sequence[str],
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers what an operator computes with on some devices; "default" stands for all.

    Args:
        qualname: the name of the operator; or a Library, and then types is the name.
        types: "cpu", "cuda", "default" or a list of them.
        func: what computes; without it, a decorator is returned.
        lib: has no effect.
    """
    if isinstance(qualname, Library):

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(str(types), function)
            return function

        return register
    return register_kernel(qualname, types, func)


class Library:
    """Adds operators of a namespace by schemas; they leave when it does.

    Args:
        ns: the namespace.
        kind: "DEF" for a new namespace, "FRAGMENT" for one that others add to as well, "IMPL" for
            kernels alone.
        dispatch_key: where kernels run that are registered without one.

    Raises:
        ValueError: for another kind.
        RuntimeError: if DEF is said twice of a namespace.

    Example:
        >>> library = torch.library.Library("docs_library", "DEF")
        >>> library.define("scale(Tensor x, float factor=2.0) -> Tensor")
        'scale'
        >>> library.impl("scale", lambda x, factor=2.0: x * factor, "CPU")
        >>> torch.ops.docs_library.scale(torch.ones(2), factor=3.0)
        tensor([3., 3.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if kind == "DEF":
            if ns in _defined_namespaces:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; "
                    'please put all of your definitions in a single Library, or use "FRAGMENT".'
                )
            _defined_namespaces.add(ns)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._names: list[str] = []
        self._end = weakref.finalize(self, _forget, self._names, ns if kind == "DEF" else None)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Adds an operator; returns its name.

        Args:
            schema: "name(Tensor x, int n=2) -> Tensor".
            alias_analysis: has no effect.
            tags: have no effect.

        Raises:
            RuntimeError: if there is one of the name.
        """
        name, bracket, rest = schema.partition("(")
        define(f"{self.ns}::{name.strip()}", bracket + rest, lib=self)
        return name.strip()

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Registers a kernel.

        Args:
            op_name: the operator or its name, without the namespace.
            fn: computes its results.
            dispatch_key: "CPU", "CUDA" or "Meta" for a device, "CompositeExplicitAutograd" for all,
                and "CompositeImplicitAutograd", which none says too, for a function whose ops
                are recorded one by one.
            with_keyset: must be False.
            allow_override: has no effect.

        Raises:
            ValueError: for another key.
            RuntimeError: if there is no such operator.
        """
        key = dispatch_key or self.dispatch_key
        if key not in _KEYS or with_keyset:
            raise ValueError(
                f"impl: there is no dispatch key {key!r} here. Use one of "
                f"{', '.join(filter(None, _KEYS))}."
            )
        name = op_name if isinstance(op_name, str) else _operator_of(op_name)._qualname
        op = _operator_of(name if "::" in name else f"{self.ns}::{name}")
        device = _KEYS[key]
        if device is None:
            op.composite = fn
        elif device == "meta":
            op.fake = fn
        else:
            op.kernels[device] = fn

    def _destroy(self) -> None:
        """Takes the operators away."""
        self._end()


def _forget(names: list[str], namespace: str | None) -> None:
    for name in names:
        operators.pop(name, None)
    if namespace is not None:
        _defined_namespaces.discard(namespace)


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A Library that ends with a with block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()
