"""Derivatives as transforms of functions: they nest, and go with vmap.

Reverse mode runs the tape from fresh inputs; forward mode runs the function on dual tensors. How
both go together is Note [Lifted tensors] in core/tensor/lift.h. Jacobians are in jacobians.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rushlight import _C, Tensor
from rushlight.func._recording import (
    OwnTape,
    Recorded,
    as_argnums,
    check_differentiable,
    check_inputs,
    check_outputs,
    check_tensors,
    chosen_of,
    split_aux,
    with_chosen,
)
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]

# Reverse mode


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
        chosen = chosen_of(args, argnums, "grad")
        check_inputs(tree_flatten(chosen)[0], "grad")
        run = Recorded(
            lambda *new: func(*with_chosen(args, argnums, new), **kwargs),
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
        return as_argnums(grads, argnums), (value, run.aux_output()) if has_aux else value

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
    check_inputs(tree_flatten(primals)[0], "vjp")
    run = Recorded(func, primals, has_aux, "vjp")
    check_outputs(run, "vjp")

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


# Forward mode


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
    check_tensors(leaves, "jvp: Expected all primals")
    check_tensors(along, "jvp: Expected all tangents")
    check_differentiable(leaves, "jvp", ValueError)
    level = _C._open_dual_level()
    try:
        duals = [_C._lift_dual(x, t.to(x.dtype), level) for x, t in zip(leaves, along, strict=True)]
        output, aux = split_aux(func(*tree_unflatten(duals, spec)), has_aux, "jvp")
        results, result_spec = tree_flatten(output)
        check_tensors(results, "jvp: Expected f(*primals)")
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
    check_inputs(leaves, "linearize")
    run = Recorded(func, primals, False, "linearize")
    # J^T v is linear in v, and its gradient along t is J t.
    with OwnTape():
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
