"""Derivatives as transforms of functions: they nest, and go with vmap.

Reverse mode runs the tape from fresh inputs; forward mode runs the function on dual tensors. How
both go together is Note [Lifted tensors] in core/tensor/lift.h.
"""

from __future__ import annotations

import functools
from typing import Any

from rushlight import _C, Tensor
from rushlight._functorch.vmap import vmap
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


# ---- arguments ----------------------------------------------------------------------------------


def _chosen(args: tuple[Any, ...], argnums: int | tuple[int, ...], name: str) -> tuple[Any, ...]:
    """The arguments that argnums names."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple) or not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(
            f"{name}: argnums should be int or Tuple[int, ...], got: {type(argnums).__name__}"
        )
    if not numbers:
        raise RuntimeError(f"{name}: argnums must be non-empty, got argnums=().")
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(
                f"{name}: Got argnum={n}, but only {len(args)} positional inputs. The function is "
                "differentiated by positional arguments only."
            )
    if len({n % len(args) for n in numbers}) < len(numbers):
        raise RuntimeError(f"{name}: argnums elements must be unique, got {argnums}.")
    return tuple(args[n] for n in numbers)


def _with_chosen(
    args: tuple[Any, ...], argnums: int | tuple[int, ...], chosen: Sequence[Any]
) -> tuple[Any, ...]:
    replaced = list(args)
    for n, value in zip((argnums,) if isinstance(argnums, int) else argnums, chosen, strict=True):
        replaced[n] = value
    return tuple(replaced)


def _as_argnums(chosen: Sequence[Any], argnums: int | tuple[int, ...]) -> Any:
    return chosen[0] if isinstance(argnums, int) else tuple(chosen)


def _check_tensors(leaves: Sequence[Any], what: str, error: type[Exception] = RuntimeError) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise error(f"{what} to be a Tensor, got a {type(leaf).__name__}")


def _is_differentiable(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _check_differentiable(
    leaves: Sequence[Any], name: str, error: type[Exception] = RuntimeError
) -> None:
    for leaf in leaves:
        if not _is_differentiable(leaf):
            raise error(
                f"{name}: inputs must be floating-point or complex tensors, got {leaf.dtype}. "
                "Pass the others outside of argnums."
            )


def _check_inputs(leaves: Sequence[Any], name: str) -> None:
    _check_tensors(leaves, f"{name}: Expected all inputs", ValueError)
    _check_differentiable(leaves, name)


def _check_real(leaves: Sequence[Any], what: str, name: str) -> None:
    """A complex Jacobian could be one of several matrices."""
    for leaf in leaves:
        if leaf.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received one of {leaf.dtype}. Pass "
                "view_as_real of it."
            )


def _split_aux(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def _detached(tree: Any) -> Any:
    return tree_map(lambda x: _C._without_history(x) if isinstance(x, Tensor) else x, tree)


# ---- reverse mode -------------------------------------------------------------------------------


class _OwnTape:
    """The scope in which a transform records, in no_grad and in inference mode too."""

    def __enter__(self) -> None:
        self._before = _C._begin_own_tape()

    def __exit__(self, *exc_info: object) -> None:
        _C._end_own_tape(self._before)


class _Recorded:
    """A function that has run on fresh inputs, so that it can be differentiated by them."""

    def __init__(self, func: Callable[..., Any], args: tuple[Any, ...], has_aux: bool, name: str):
        outer = _C.is_grad_enabled()
        leaves, self.input_spec = tree_flatten(args)
        with _OwnTape():
            self.inputs = [_C._fresh_input(x) for x in leaves]
            result = func(*tree_unflatten(self.inputs, self.input_spec))
        output, self.aux = _split_aux(result, has_aux, name)
        self.results, self.output_spec = tree_flatten(output)
        _check_tensors(self.results, f"{name}: Expected f(*primals)")
        wanted = [x for x in self.results if x.requires_grad]
        # Whether derivatives beyond these can be asked for: only then is everything recorded.
        self.more = outer and bool(wanted) and _C._depends_on_more(wanted, self.inputs)

    def output(self) -> Any:
        output = tree_unflatten(self.results, self.output_spec)
        return output if self.more else _detached(output)

    def aux_output(self) -> Any:
        return self.aux if self.more else _detached(self.aux)

    def pull(self, cotangents: Sequence[Any], retain: bool) -> list[Any]:
        """The gradients of the inputs, for gradients of the results."""
        pairs = [(x, g) for x, g in zip(self.results, cotangents, strict=True) if x.requires_grad]
        create = _C.is_grad_enabled() and (
            self.more or any(g is not None and g.requires_grad for _, g in pairs)
        )
        found: Sequence[Any] = [None] * len(self.inputs)
        if pairs:
            roots, grads = zip(*pairs, strict=True)
            with _OwnTape():
                found = _C._run_backward(roots, grads, self.inputs, retain or create, create, False)
        return [
            _C._without_history(x).new_zeros(x.shape) if g is None else g
            for x, g in zip(self.inputs, found, strict=True)
        ]


def _check_outputs(run: _Recorded, name: str) -> None:
    for result in run.results:
        if not _is_differentiable(result):
            raise RuntimeError(
                f"{name}: All outputs of f must be floating-point or complex Tensors, got Tensor "
                f"with dtype {result.dtype}. Return it as aux, with has_aux=True."
            )


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Makes a function that gives the gradient of func and its value.

    Args:
        func: returns a tensor of one element without dims, or (that, anything) with has_aux.
        argnums: the positional arguments to differentiate by; a tuple for several.
        has_aux: whether func returns something beside the value.

    Returns:
        A function that returns (gradient, value) or (gradient, (value, aux)).

    Example:
        >>> x = torch.tensor(3.0)
        >>> torch.func.grad_and_value(lambda x: x**2)(x)
        (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        chosen = _chosen(args, argnums, "grad")
        _check_inputs(tree_flatten(chosen)[0], "grad")
        run = _Recorded(
            lambda *new: func(*_with_chosen(args, argnums, new), **kwargs),
            chosen,
            has_aux,
            "grad",
        )
        if not run.output_spec.is_leaf():
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a tensor, got "
                f"{run.output_spec}"
            )
        if run.results[0].dim() != 0:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor "
                f"with {run.results[0].dim()} dims. Maybe you wanted to use the vjp or jacrev APIs "
                "instead?"
            )
        grads = tree_unflatten(run.pull([None], retain=False), run.input_spec)
        value = run.output()
        return _as_argnums(grads, argnums), (value, run.aux_output()) if has_aux else value

    return wrapper


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Makes a function that gives the gradient of func; nest it for higher derivatives.

    Args:
        func: returns a tensor of one element without dims, or (that, anything) with has_aux.
        argnums: the positional arguments to differentiate by; a tuple for several.
        has_aux: whether func returns something beside the value.

    Returns:
        A function that returns the gradient in the structure of the argument, or (gradient, aux).

    Example:
        >>> sin2 = torch.func.grad(torch.func.grad(torch.sin))
        >>> sin2(torch.tensor(0.5)) == -torch.sin(torch.tensor(0.5))
        tensor(True)
    """
    with_value = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = with_value(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Runs func, and gives with its result the function v -> v^T J of its Jacobian J.

    Args:
        func: takes and returns tensors, or lists, tuples and dicts of them.
        primals: its arguments.
        has_aux: whether func returns (output, anything).

    Returns:
        (output, vjp_fn) or (output, vjp_fn, aux). vjp_fn takes gradients in the structure of output
        and returns those of the primals, a tuple for several.

    Example:
        >>> output, vjp_fn = torch.func.vjp(torch.sin, torch.zeros(2))
        >>> vjp_fn(torch.tensor([1.0, 2.0]))
        (tensor([1., 2.]),)
    """
    _check_inputs(tree_flatten(primals)[0], "vjp")
    run = _Recorded(func, primals, has_aux, "vjp")
    _check_outputs(run, "vjp")

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        leaves, spec = tree_flatten(cotangents)
        if spec != run.output_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {spec}, primal output: {run.output_spec}"
            )
        return tree_unflatten(run.pull(leaves, retain_graph), run.input_spec)

    output = run.output()
    return (output, vjp_fn, run.aux_output()) if has_aux else (output, vjp_fn)


# ---- forward mode -------------------------------------------------------------------------------


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Runs func, and its derivative along a direction: J t, by dual tensors.

    Args:
        func: takes and returns tensors, or lists, tuples and dicts of them.
        primals: a tuple of its arguments.
        tangents: the direction, a tuple in the structure and shapes of primals.
        strict: raises if the result does not depend on the primals, instead of zeros.
        has_aux: whether func returns (output, anything).

    Returns:
        (output, J t) or (output, J t, aux).

    Example:
        >>> torch.func.jvp(torch.sin, (torch.zeros(2),), (torch.tensor([1.0, 2.0]),))
        (tensor([0., 0.]), tensor([1., 2.]))
    """
    if not isinstance(primals, tuple) or not primals:
        raise RuntimeError(f"jvp: Expected primals to be a non-empty tuple, got {primals!r}")
    leaves, spec = tree_flatten(primals)
    along, along_spec = tree_flatten(tangents)
    if along_spec != spec:
        raise RuntimeError(
            "jvp: Expected primals and tangents to have the same python structure. For example, "
            "if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec} and tangents with structure {along_spec}"
        )
    _check_tensors(leaves, "jvp: Expected all primals")
    _check_tensors(along, "jvp: Expected all tangents")
    _check_differentiable(leaves, "jvp", ValueError)
    level = _C._open_dual_level()
    try:
        duals = [_C._lift_dual(x, t.to(x.dtype), level) for x, t in zip(leaves, along, strict=True)]
        output, aux = _split_aux(func(*tree_unflatten(duals, spec)), has_aux, "jvp")
        results, result_spec = tree_flatten(output)
        _check_tensors(results, "jvp: Expected f(*primals)")
        values, derivatives = [], []
        for result in results:
            value, tangent = _C._unlift_dual(result, level)
            if tangent is None:
                if strict:
                    raise RuntimeError(
                        "jvp(f, primals, tangents, strict=True): The output of f is independent of "
                        "the inputs. This is not allowed with strict=True."
                    )
                tangent = _C._without_history(value).new_zeros(value.shape)
            values.append(value)
            derivatives.append(tangent)
        aux = tree_map(lambda x: _C._unlift_dual(x, level)[0] if isinstance(x, Tensor) else x, aux)
    finally:
        _C._close_level(level)
    pair = tree_unflatten(values, result_spec), tree_unflatten(derivatives, result_spec)
    return (*pair, aux) if has_aux else pair


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Runs func, and gives with its result the function t -> J t, which does not run func again.

    Args:
        func: takes and returns tensors, or lists, tuples and dicts of them.
        primals: its arguments.

    Returns:
        (output, jvp_fn); jvp_fn takes tangents in the structure of primals.

    Example:
        >>> output, jvp_fn = torch.func.linearize(torch.sin, torch.zeros(2))
        >>> jvp_fn(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    leaves, spec = tree_flatten(primals)
    _check_inputs(leaves, "linearize")
    run = _Recorded(func, primals, False, "linearize")
    # J^T v is linear in v, and its gradient along t is J t.
    with _OwnTape():
        directions = [_C._fresh_input(_C._without_history(x)) for x in run.results]
        pulled = run.pull(directions, retain=True)

    def jvp_fn(*tangents: Any) -> Any:
        along, along_spec = tree_flatten(tangents)
        if along_spec != spec:
            raise RuntimeError(
                f"linearize: Expected the tangents {along_spec} to have the same structure as the "
                f"primals {spec}"
            )
        for i, (t, x) in enumerate(zip(along, leaves, strict=True)):
            if t.shape != x.shape:
                raise RuntimeError(
                    f"linearize: Expected tangent {i} to have shape {tuple(x.shape)}, got "
                    f"{tuple(t.shape)}"
                )
        pairs = [(g, t) for g, t in zip(pulled, along, strict=True) if g.requires_grad]
        found: Sequence[Any] = [None] * len(directions)
        if pairs:
            roots, grads = zip(*pairs, strict=True)
            found = _C._run_backward(roots, grads, directions, True, run.more, False)
        return tree_unflatten(
            [
                x.new_zeros(x.shape) if t is None else t
                for x, t in zip(run.results, found, strict=True)
            ],
            run.output_spec,
        )

    return run.output(), jvp_fn


# ---- Jacobians ----------------------------------------------------------------------------------


def _basis(like: Any) -> Any:
    """All unit vectors of a tensor's shape, along dim 0."""
    from rushlight import eye

    units = eye(like.numel(), dtype=like.dtype, device=like.device)
    return units.reshape(like.numel(), *like.shape)


def _zeros_with(position: int, direction: Any, leaves: Sequence[Any]) -> list[Any]:
    return [direction if i == position else x.new_zeros(x.shape) for i, x in enumerate(leaves)]


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Makes a function that gives the Jacobian of func, a row for each element of the result.

    Best where results have fewer elements than arguments; see jacfwd for the opposite.

    Args:
        func: takes and returns tensors, or lists, tuples and dicts of them.
        argnums: the positional arguments to differentiate by; a tuple for several.
        has_aux: whether func returns (output, anything).
        chunk_size: how many rows to compute at once; all when None.

    Returns:
        A function that returns the Jacobian (*output shape, *argument shape) in the structure of
        the output, and in it of the argument; or (Jacobian, aux).

    Example:
        >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen = _chosen(args, argnums, "jacrev")
        leaves = tree_flatten(chosen)[0]
        _check_inputs(leaves, "jacrev")
        _check_real(leaves, "inputs", "jacrev")
        run = _Recorded(
            lambda *new: func(*_with_chosen(args, argnums, new), **kwargs),
            chosen,
            has_aux,
            "jacrev",
        )
        _check_outputs(run, "jacrev")
        _check_real(run.results, "outputs", "jacrev")
        rows = []
        for k, result in enumerate(run.results):
            plain = [_C._without_history(x) for x in run.results]
            pulled = vmap(
                lambda v, k=k, plain=plain: run.pull(_zeros_with(k, v, plain), retain=True),
                chunk_size=chunk_size,
            )(_basis(plain[k]))
            shaped = [
                g.reshape(result.shape + x.shape) for g, x in zip(pulled, run.inputs, strict=True)
            ]
            rows.append(_as_argnums(tree_unflatten(shaped, run.input_spec), argnums))
        jacobian = tree_unflatten(rows, run.output_spec)
        return (jacobian, run.aux_output()) if has_aux else jacobian

    return wrapper


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    _complex: bool = False,
) -> Callable[..., Any]:
    """Makes a function that gives the Jacobian of func, a column for each element of the argument.

    Best where arguments have fewer elements than results; see jacrev for the opposite.

    Args:
        func: takes and returns tensors, or lists, tuples and dicts of them.
        argnums: the positional arguments to differentiate by; a tuple for several.
        has_aux: whether func returns (output, anything).
        randomness: what random ops do, as in vmap.

    Returns:
        A function that returns the Jacobian (*output shape, *argument shape) in the structure of
        the output, and in it of the argument; or (Jacobian, aux).

    Example:
        >>> torch.func.jacfwd(torch.sin)(torch.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen = _chosen(args, argnums, "jacfwd")
        leaves, spec = tree_flatten(chosen)
        _check_tensors(leaves, "jacfwd: Expected all inputs", AttributeError)
        _check_differentiable(leaves, "jacfwd", ValueError)
        if not _complex:
            _check_real(leaves, "inputs", "jacfwd")

        def along(position: int, direction: Any) -> Any:
            tangents = tree_unflatten(_zeros_with(position, direction, leaves), spec)
            found = jvp(
                lambda *new: func(*_with_chosen(args, argnums, new), **kwargs),
                chosen,
                tangents,
                has_aux=has_aux,
            )
            return found[1:]

        columns, output_spec, aux = [], None, None
        for j, leaf in enumerate(leaves):
            found = vmap(
                lambda t, j=j: along(j, t),
                out_dims=(-1, None) if has_aux else (-1,),
                randomness=randomness,
            )(_basis(_C._without_history(leaf)))
            if has_aux:
                aux = found[1]
            derivatives, output_spec = tree_flatten(found[0])
            if not _complex:
                _check_real(derivatives, "outputs", "jacfwd")
            columns.append([d.reshape(d.shape[:-1] + leaf.shape) for d in derivatives])
        by_output = [
            _as_argnums(tree_unflatten(list(parts), spec), argnums)
            for parts in zip(*columns, strict=True)
        ]
        assert output_spec is not None
        jacobian = tree_unflatten(by_output, output_spec)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Makes a function that gives the Hessian of func: jacfwd of jacrev.

    Args:
        func: returns a tensor, or a list, tuple or dict of them.
        argnums: the positional arguments to differentiate by; a tuple for several.

    Returns:
        A function that returns second derivatives (*output shape, *argument shape, *argument
        shape).

    Example:
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
