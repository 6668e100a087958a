"""Operators that programs add: which kernel runs, and what gradients and vmap make of a call.

A call binds its arguments to the schema and takes the kernel for the device of its tensors. Where
gradients or transforms are concerned it goes through an autograd.Function, with the tensors of
lists as arguments of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._storage import memory_of
from rushlight.autograd import Function
from rushlight.autograd.graph import increment_version
from rushlight.library._schema import Schema
from rushlight.utils import _python_dispatch
from rushlight.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

__all__ = ["Operator", "OperatorPacket", "found_operator", "operator_of", "operators", "packets"]

# All operators by their qualified names, "namespace::name" or "namespace::name.overload".
operators: dict[str, Operator] = {}
# What has the overloads of those whose overloads have names, by "namespace::name".
packets: dict[str, OperatorPacket] = {}


class Operator:
    """What torch.ops.namespace.name is, or one of its overloads where they have names.

    Args:
        qualname: "namespace::name", or "namespace::name.overload".
        schema: its signature.

    Attributes:
        kernels: functions by the type of the device; "" for all others.
        fake: gives the results for tensors on the meta device.
        gradient: the backward and the setup_context, if there are any.
        over_samples: computes a batch, for vmap.
        composite: a function that runs as a part of the program, with the gradients of its ops.
        rules: what a class of modes or tensors does in place of its __torch_dispatch__.
        tags: what the program said of it.
        is_checked: whether results that share memory with arguments are refused, as of custom_op.
    """

    def __init__(self, qualname: str, schema: Schema) -> None:
        namespace, name = qualname.split("::")
        self._qualname = qualname
        self._schema = replace(schema, name=qualname)
        self.namespace = namespace
        self._opname, _, overload = name.partition(".")
        self._overloadname = overload or "default"
        self.__name__ = self.__qualname__ = name
        self.__module__ = f"rushlight.ops.{namespace}"
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.gradient: tuple[Callable[..., Any], Callable[..., Any] | None] | None = None
        self.over_samples: Callable[..., Any] | None = None
        self.composite: Callable[..., Any] | None = None
        self.rules: dict[type, Callable[..., Any]] = {}
        self.casts: dict[str, rl.dtype] = {}
        self.tags: list[Any] = []
        self.is_checked = False
        self._function: type[Function] | None = None

    def name(self) -> str:
        """Returns "namespace::name", or "namespace::name.overload"."""
        return self._qualname

    def overloads(self) -> list[str]:
        """Returns the names of its overloads: it is one."""
        return [self._overloadname]

    @property
    def overloadpacket(self) -> Operator | OperatorPacket:
        """What has the overloads; the operator itself, if they have no names."""
        return found_operator(f"{self.namespace}::{self._opname}") or self

    @property
    def default(self) -> Operator:
        """The operator itself: it is one overload."""
        return self

    @property
    def is_view(self) -> bool:
        """Whether a result may share memory with an argument, which kernels must not do."""
        return False

    @property
    def writes(self) -> bool:
        """Whether it writes to an argument."""
        return self._schema.is_mutable

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return self._qualname.replace("::", ".")

    def __reduce__(self) -> Any:
        return operator_of, (self._qualname,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _C._has_torch_function(()):  # a mode, which is not told of what is inside
            return _C._handle_torch_function(self, (), args, kwargs)
        if _C._argument_takes_over(args, kwargs):
            return _C._call_taken_over(self, args, kwargs)
        values = self._schema.bind(args, kwargs)
        leaves = list(_leaves(values))
        device = self._device(values, leaves)
        if device in self.casts and rl.is_autocast_enabled(device):
            values = [_cast(value, self.casts[device]) for value in values]
            with rl.autocast(device, enabled=False):
                return self._run(values, list(_leaves(values)), device)
        return self._run(values, leaves, device)

    def _device(self, values: list[Any], leaves: list[Any]) -> str:
        """The type of the device of the tensors, or else the one that an argument names."""
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                return leaf.device.type
        for parameter, value in zip(self._schema.parameters, values, strict=True):
            if parameter.name == "device" and value is not None:
                return rl.device(value).type
        return "cpu"

    def _run(self, values: list[Any], leaves: list[Any], device: str) -> Any:
        if self.composite is not None:
            return self._call_with(self.composite, values)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        is_recorded = rl.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if any(_C._lift_of(t) is not None for t in tensors) or (is_recorded and not self.writes):
            call = _Call(self, [_count(value) for value in values], device, [])
            result = self._recorded().apply(call, *leaves)
            return call.result(result) if call.structure else result  # else the one of vmap's rule
        if is_recorded and self.gradient is not None:
            raise RuntimeError(
                f"{self._qualname}: gradients of an operator that writes to its arguments are not "
                "possible. Call it under no_grad."
            )
        with rl.no_grad():
            return self.compute(values, device)

    def compute(self, values: list[Any], device: str) -> Any:
        """Returns what the kernel for a device returns, or a mode or a class of tensors instead.

        Raises:
            NotImplementedError: if there is none.
            RuntimeError: if a result shares memory with an argument.
        """
        tensors = [leaf for leaf in _leaves(values) if isinstance(leaf, Tensor)]
        said = self._said(values)
        answer = self._ask_rules(tensors, *said) if self.rules else NotImplemented
        if answer is NotImplemented:
            answer = _C._ask_about(self, *said, tensors)
        if answer is not NotImplemented:
            return answer
        values = [_detached(value) for value in values]
        result = self._call_with(self._kernel(device), values)
        if self.writes and not rl.is_inference_mode_enabled():
            self._note_writes(values)
        if self.is_checked and device != "meta":
            _check_aliases(self._qualname, result, values)
        return result

    def _ask_rules(self, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        """What the rule for the mode, or for the class of a tensor, returns, if there is one."""
        types = tuple(dict.fromkeys(type(t) for t in tensors if type(t) is not Tensor))
        mode = _python_dispatch._get_current_dispatch_mode()
        asked = types if mode is None else (type(mode),)
        kind = next((kind for kind in asked if kind in self.rules), None)
        if kind is None:
            return NotImplemented
        if mode is None:
            return self.rules[kind](kind, self, types, args, kwargs)
        with _python_dispatch._pop_mode_temporarily():
            return self.rules[kind](mode, self, types, args, kwargs)

    def _note_writes(self, values: list[Any]) -> None:
        """Counts the writes of a kernel, which may write by other ways than ops."""
        pairs = zip(self._schema.parameters, values, strict=True)
        written = [value for parameter, value in pairs if parameter.writes]
        tensors = (leaf for leaf in _leaves(written) if isinstance(leaf, Tensor))
        increment_version(tensor for tensor in tensors if not tensor.is_inference())

    def _kernel(self, device: str) -> Callable[..., Any]:
        kernel = self.fake if device == "meta" else self.kernels.get(device, self.kernels.get(""))
        if kernel is None and device == "meta":
            kernel = self.kernels.get("meta")
            if kernel is None and self.writes and not self._schema.returns:
                return lambda *args, **kwargs: None
        if kernel is None:
            kind = "fake impl or Meta kernel" if device == "meta" else f"kernel for {device}"
            how = "register_fake" if device == "meta" else "register_kernel"
            raise NotImplementedError(
                f"{self._qualname}: attempted to run this operator with {device} tensors, but "
                f"there was no {kind} registered. Register one with {how}."
            )
        return kernel

    def _call_with(self, function: Callable[..., Any], values: list[Any]) -> Any:
        args, kwargs = self.arguments(values)
        return function(*args, **kwargs)

    def arguments(self, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns values for the parameters by place and by name."""
        pairs = list(zip(self._schema.parameters, values, strict=True))
        args = tuple(value for parameter, value in pairs if not parameter.keyword_only)
        return args, {p.name: value for p, value in pairs if p.keyword_only}

    def _said(self, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same, without what is as the default says."""
        args, kwargs = self.arguments(values)
        parameters = {parameter.name: parameter for parameter in self._schema.parameters}
        by_place = [parameter for parameter in parameters.values() if not parameter.keyword_only]
        while args and by_place[len(args) - 1].is_default(args[-1]):
            args = args[:-1]
        named = {n: value for n, value in kwargs.items() if not parameters[n].is_default(value)}
        return args, named

    def _recorded(self) -> type[Function]:
        """The Function that records calls."""
        if self._function is None:
            name = f"GeneratedBackwardFor_{self._qualname.replace('::', '_')}_default"
            self._function = type(name, (_Recorded,), {})
        return self._function


class _Call(NamedTuple):
    """What a Function is told besides the leaves.

    counts has for each argument how many tensors its list has, or None for no list; structure gets
    that of the kernel's result, in which lists of tensors may be.
    """

    op: Operator
    counts: list[int | None]
    device: str
    structure: list[TreeSpec]

    def grouped(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments from their leaves."""
        left = iter(leaves)
        return [
            next(left) if count is None else [next(left) for _ in range(count)]
            for count in self.counts
        ]

    def result(self, leaves: Sequence[Any]) -> Any:
        """The result from its leaves, or what belongs to each of them."""
        return tree_unflatten(leaves, self.structure[0])


class _Recorded(Function):
    """A call that is recorded, or part of a transform."""

    @staticmethod
    def forward(call: _Call, *leaves: Any) -> Any:
        parts, spec = tree_flatten(call.op.compute(call.grouped(leaves), call.device))
        call.structure[:] = [spec]
        return tuple(parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        call, *leaves = inputs
        ctx.call = call
        setup = call.op.gradient[1] if call.op.gradient else None
        if setup is None:
            return
        args, kwargs = call.op.arguments(call.grouped(leaves))
        output = call.result(output)
        with _needs_by_argument(ctx, call):
            if kwargs:
                setup(ctx=ctx, inputs=args, keyword_only_inputs=kwargs, output=output)
            else:
                setup(ctx=ctx, inputs=args, output=output)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        call: _Call = ctx.call
        name = call.op._qualname
        if call.op.gradient is None:
            raise RuntimeError(
                f"Trying to backward through {name.replace('::', '.')}.default but no autograd "
                "formula was registered. Please use register_autograd to add one."
            )
        of_result = call.result(grads)
        several = of_result if isinstance(of_result, tuple) else (of_result,)
        with _needs_by_argument(ctx, call):
            found = call.op.gradient[0](ctx, *several)
        gradients = found if isinstance(found, tuple) else (found,)
        parameters = call.op._schema.parameters
        counts = [c for c, p in zip(call.counts, parameters, strict=True) if not p.keyword_only]
        if len(gradients) != len(counts):
            raise RuntimeError(
                f"{name}: backward returned {len(gradients)} gradients. It must return one for "
                f"each of the {len(counts)} arguments, None for those that have none."
            )
        flat: list[Any] = [None]  # of the call itself
        for gradient, count in zip(gradients, counts, strict=True):
            if count is None:
                flat.append(gradient)
            else:
                flat.extend([None] * count if gradient is None else gradient)
        keyword_only = len(call.counts) - len(counts)
        return (*flat, *[None] * keyword_only)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        call, *leaves = args
        if call.op.over_samples is None:
            raise RuntimeError(
                f"{call.op._qualname}: there is no rule for vmap. Register one with register_vmap."
            )
        args, kwargs = call.op.arguments(call.grouped(leaves))
        dims, _ = call.op.arguments(call.grouped(in_dims[1:]))
        return call.op.over_samples(info, dims, *args, **kwargs)


class OperatorPacket:
    """What torch.ops.namespace.name is where overloads have names.

    A call takes the first overload whose schema fits the arguments.

    Args:
        qualname: "namespace::name".
    """

    def __init__(self, qualname: str) -> None:
        self._qualname = qualname
        namespace, self.__name__ = qualname.split("::")
        self.__module__ = f"rushlight.ops.{namespace}"

    def _all(self) -> dict[str, Operator]:
        start = f"{self._qualname}."
        family = (op for name, op in operators.items() if f"{name}.".startswith(start))
        return {op._overloadname: op for op in family}

    def overloads(self) -> list[str]:
        """Returns the names of the overloads."""
        return list(self._all())

    def __getattr__(self, name: str) -> Operator:
        overload = None if name.startswith("_") else self._all().get(name)
        if overload is None:
            raise AttributeError(f"{self._qualname} has no overload '{name}'")
        return overload

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return self._qualname.replace("::", ".")

    def __reduce__(self) -> Any:
        return found_operator, (self._qualname,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        problems = []
        for overload in self._all().values():
            try:
                overload._schema.bind(args, kwargs)
            except RuntimeError as error:
                problems.append(str(error))
            else:
                return overload(*args, **kwargs)
        raise RuntimeError("\n".join([f"{self._qualname}: no overload fits.", *problems]))


@contextmanager
def _needs_by_argument(ctx: Any, call: _Call) -> Iterator[None]:
    """Lets ctx.needs_input_grad say of the arguments what it says of the leaves, after the call."""
    of_leaves = ctx.needs_input_grad
    by_place = sum(not parameter.keyword_only for parameter in call.op._schema.parameters)
    ctx.needs_input_grad = tuple(call.grouped(of_leaves[1:])[:by_place])
    try:
        yield
    finally:
        ctx.needs_input_grad = of_leaves


def found_operator(qualname: str) -> Operator | OperatorPacket | None:
    """Returns what torch.ops has by "namespace::name", None for nothing."""
    return packets.get(qualname) or operators.get(qualname)


def operator_of(op: Any) -> Operator:
    """Returns an operator from its name, its CustomOpDef or itself.

    Raises:
        RuntimeError: if there is none of the name.
    """
    op = getattr(op, "_opoverload", op)
    if isinstance(op, OperatorPacket):
        op = op._qualname
    if isinstance(op, str):
        op = op.removesuffix(".default")
        if op not in operators:
            raise RuntimeError(f"operator {op} does not exist")
        return operators[op]
    if not isinstance(op, Operator):
        raise ValueError(f"expected the name of an operator, or one, but got {type(op).__name__}.")
    return op


def _count(value: Any) -> int | None:
    """How many tensors a list of tensors has."""
    is_list = isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value)
    return len(value) if is_list else None


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    """The arguments, with the tensors of lists by themselves."""
    for value in values:
        if _count(value) is None:
            yield value
        else:
            yield from value


def _cast(value: Any, dtype: rl.dtype) -> Any:
    """An argument with its floating-point tensors in a dtype."""
    if isinstance(value, (list, tuple)):
        return [_cast(item, dtype) for item in value]
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def _detached(value: Any) -> Any:
    """An argument without history, which a kernel may hand to NumPy."""
    if isinstance(value, (list, tuple)):
        return [_detached(item) for item in value]
    needs_grad = isinstance(value, Tensor) and value.requires_grad
    return value.detach() if needs_grad else value


def _check_aliases(qualname: str, result: Any, values: list[Any]) -> None:
    """Fails when a result shares memory with an argument or another result."""
    results = result if isinstance(result, (tuple, list)) else [result]
    made = [item for item in results if isinstance(item, Tensor)]
    seen = {memory_of(leaf) for leaf in _leaves(values) if isinstance(leaf, Tensor)}
    for tensor in made:
        memory = memory_of(tensor)
        if memory in seen:
            raise RuntimeError(
                f"{qualname.split('::')[1]}: The output of this custom operator (1) must not also "
                "be an input to this custom operator and (2) may not alias any inputs to this "
                "custom operator or other returns. Return a clone."
            )
        seen.add(memory)
