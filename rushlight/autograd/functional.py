"""Jacobians, Hessians and their products with vectors, of Python functions of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from rushlight import Tensor, enable_grad, stack, zeros_like
from rushlight.autograd import grad
from rushlight.autograd._calls import (
    CONSTANT_GRADIENT,
    CONSTANT_JACOBIAN,
    OF_INPUT,
    TensorOrTensors,
    Tensors,
    as_arguments,
    as_tensors,
    as_vectors,
    call,
    call_for_one,
    check_varies,
    completed,
    given_back,
    gradients_of,
)

Strategy = Literal["reverse-mode", "forward-mode"]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


# Products with the Jacobian


def vjp(
    func: Callable[..., TensorOrTensors],
    inputs: TensorOrTensors,
    v: TensorOrTensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[TensorOrTensors, TensorOrTensors]:
    """Returns func(*inputs) and the product of v with its Jacobian: v^T J.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of all arguments.
        v: one tensor for each output, of its shape; may be None when func returns one element.
        create_graph: records the results, so that they can be differentiated again.
        strict: raises where an input has no influence, instead of giving zeros.

    Returns:
        What func returned, and one tensor for each input, of its shape.

    Raises:
        TypeError: if inputs, v or what func returns are not tensors.
        RuntimeError: if v does not fit the outputs, or as strict says.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vjp(lambda x: x**2, x, torch.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        several_inputs, points = as_arguments(inputs, "vjp", create_graph)
        several_outputs, outputs = call(func, points, "vjp", strict)
        vectors = as_vectors(
            v, "vjp", create_graph, outputs, several_outputs, "the user-provided function returns"
        )
        products = completed(
            gradients_of(outputs, points, vectors, create_graph),
            points, strict, create_graph,
            "The output of the user-provided function is independent of input {}", "jacobian",
        )  # fmt: skip
    return (
        given_back(outputs, create_graph, several_outputs),
        given_back(products, create_graph, several_inputs),
    )


def jvp(
    func: Callable[..., TensorOrTensors],
    inputs: TensorOrTensors,
    v: TensorOrTensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[TensorOrTensors, TensorOrTensors]:
    """Returns func(*inputs) and the product of its Jacobian with v: J v, the slope along v.

    The backward of func is linear in the gradient of the outputs, u^T J; its own backward,
    applied to v, is J v (https://j-towns.github.io/2017/06/12/A-new-trick.html).

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of all arguments.
        v: one tensor for each input, of its shape; may be None for a single element.
        create_graph: records the results, so that they can be differentiated again.
        strict: raises where an output does not depend on the inputs, instead of giving zeros.

    Returns:
        What func returned, and one tensor for each output, of its shape.

    Raises:
        TypeError: if inputs, v or what func returns are not tensors.
        RuntimeError: if v does not fit the inputs, or as strict says.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.jvp(lambda x: x.sum() * x, x, torch.tensor([1.0, 0.0]))
        (tensor([3., 6.]), tensor([4., 2.]))
    """
    with enable_grad():
        several_inputs, points = as_arguments(inputs, "jvp", create_graph)
        vectors = as_vectors(v, "jvp", create_graph, points, several_inputs, OF_INPUT)
        several_outputs, outputs = call(func, points, "jvp", strict)
        # Their values never count, because backward is linear in them.
        weights = tuple(zeros_like(output, requires_grad=True) for output in outputs)
        backward = gradients_of(outputs, points, weights, create_graph=True)
        if strict:
            check_varies(backward, CONSTANT_GRADIENT)
        slopes = completed(
            gradients_of(backward, weights, vectors, create_graph),
            outputs, strict, create_graph,
            "The gradient with respect to the input is independent of entry {} in the "
            "grad_outputs when using the double backward trick to compute forward mode gradients",
            "jacobian",
        )  # fmt: skip
    return (
        given_back(outputs, create_graph, several_outputs),
        given_back(slopes, create_graph, several_outputs),
    )


# The Jacobian and the Hessian


def _rows(i: int, output: Tensor, inputs: Tensors, strict: bool, create_graph: bool) -> Tensors:
    """The Jacobian of output i for each input, of the output's shape followed by the input's."""
    rows: list[list[Tensor]] = [[] for _ in inputs]
    for j in range(output.numel()):
        one = zeros_like(output.detach()).view(-1)
        one[j] = 1
        weights = (one.view(output.shape),)
        gradients = gradients_of((output,), inputs, weights, create_graph, retain_graph=True)
        missing = f"Output {i} of the user-provided function is independent of input {{}}"
        row = completed(gradients, inputs, strict, create_graph, missing, "jacobian")
        for entries, gradient in zip(rows, row, strict=True):
            entries.append(gradient)
    return tuple(
        (stack(entries) if entries else tensor.new_zeros(0)).reshape(output.shape + tensor.shape)
        for entries, tensor in zip(rows, inputs, strict=True)
    )


def _rows_at_once(output: Tensor, inputs: Tensors, create_graph: bool) -> Tensors:
    """The same by one backward that takes all unit vectors along."""
    from rushlight import eye, zeros

    count = output.numel()
    units = eye(count, dtype=output.dtype, device=output.device).reshape(count, *output.shape)
    found: tuple[Tensor | None, ...] = (None,) * len(inputs)
    if output.requires_grad:
        found = grad(
            output, inputs, units, True, create_graph, allow_unused=True, is_grads_batched=True
        )
    return tuple(
        zeros(output.shape + x.shape, dtype=x.dtype, device=x.device)
        if g is None
        else g.reshape(output.shape + x.shape)
        for g, x in zip(found, inputs, strict=True)
    )


def _columns_at_once(
    func: Callable[..., TensorOrTensors], points: Tensors
) -> tuple[bool, list[Tensors]]:
    """Whether func returns a tuple, and for each output its Jacobian, from dual tensors."""
    from rushlight.func import jacfwd

    several = False

    def as_tuple(*args: Tensor) -> Tensors:
        nonlocal several
        several, outputs = call(func, args, "jacobian", False)
        return outputs

    found = jacfwd(as_tuple, argnums=tuple(range(len(points))), _complex=True)(*points)
    return several, list(found)


def _check_forward_mode(strict: bool, vectorize: bool, create_graph: bool) -> None:
    name = "torch.autograd.functional.jacobian"
    for is_set, option in ((create_graph, "create_graph"), (strict, "strict")):
        if is_set:
            raise (NotImplementedError if option == "create_graph" else RuntimeError)(
                f'{name}: `{option}=True` and `strategy="forward-mode"` are not supported together '
                f'(yet). Please either set `{option}=False` or `strategy="reverse-mode"`.'
            )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
            "implemented for `vectorize=True`."
        )


def jacobian(
    func: Callable[..., TensorOrTensors],
    inputs: TensorOrTensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: Strategy = "reverse-mode",
) -> Any:
    """Returns the Jacobian of func: the derivative of each element of outputs by each of inputs.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of all arguments.
        create_graph: records the result, so that it can be differentiated again.
        strict: raises where an output does not depend on an input, instead of giving zeros.
        vectorize: computes all rows at once by vmap, which takes less time and more memory.
        strategy: "reverse-mode" goes by outputs, "forward-mode", which needs vectorize, by inputs.

    Returns:
        A tensor of the output's shape followed by the input's. With a tuple of inputs a tuple of
        these, with a tuple of outputs a tuple of what a single one would give.

    Raises:
        TypeError: if inputs or what func returns are not tensors.
        RuntimeError: as strict says, if strict is asked for with vectorize or forward mode, or if
            an output is complex.
        NotImplementedError: for options that forward mode does not have.

    Example:
        >>> torch.autograd.functional.jacobian(lambda x: x * x.sum(), torch.tensor([1.0, 2.0]))
        tensor([[4., 1.],
                [2., 5.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        _check_forward_mode(strict, vectorize, create_graph)
    with enable_grad():
        several_inputs, points = as_arguments(inputs, "jacobian", create_graph)
        if strategy == "forward-mode":
            several_outputs, rows = _columns_at_once(func, points)
            result = tuple(given_back(row, create_graph, several_inputs) for row in rows)
            return result if several_outputs else result[0]
        several_outputs, outputs = call(func, points, "jacobian", strict)
        if strict and vectorize:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                "supported together. Please either set `strict=False` or `vectorize=False`."
            )
        for output in outputs:
            if output.is_complex() and not vectorize:
                raise RuntimeError(
                    "jacobian: grad can be implicitly created only for real scalar outputs but "
                    f"got {output.dtype}. Pass view_as_real of the output."
                )
        rows = [
            _rows_at_once(out, points, create_graph)
            if vectorize
            else _rows(i, out, points, strict, create_graph)
            for i, out in enumerate(outputs)
        ]
    result = tuple(given_back(row, create_graph, several_inputs) for row in rows)
    return result if several_outputs else result[0]


def hessian(
    func: Callable[..., Tensor],
    inputs: TensorOrTensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: Strategy = "reverse-mode",
) -> Any:
    """Returns the Hessian of func: the second derivatives of the element that it returns.

    Args:
        func: takes tensors, returns a tensor of one element.
        inputs: a tensor, or a tuple of all arguments.
        create_graph: records the result, so that it can be differentiated again.
        strict: raises where the gradient does not depend on an input, instead of giving zeros.
        vectorize: computes all rows at once by vmap, which takes less time and more memory.
        outer_jacobian_strategy: how the gradient is differentiated; see jacobian.

    Returns:
        A tensor of the input's shape twice. With a tuple of inputs a tuple of tuples: entry [i][j]
        has the shape of input i followed by that of input j.

    Raises:
        TypeError: if inputs or what func returns are not tensors.
        RuntimeError: if func returns more than one element, or as strict says.

    Example:
        >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def single(*arguments: Tensor) -> Tensor:
        return call_for_one(func, arguments, "hessian", strict).reshape(())

    def gradient(*arguments: Tensor) -> TensorOrTensors:
        rows = jacobian(single, arguments, create_graph=True)
        if strict:
            check_varies(rows, CONSTANT_JACOBIAN)
        return rows

    several, points = as_tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy == "forward-mode":  # in which dual tensors meet the tape
        from rushlight.func import grad as gradient_of

        gradient = gradient_of(single, argnums=tuple(range(len(points))))
    result = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    # The gradient is a tuple by arguments, whatever the form of inputs.
    return result if several else result[0]


def vhp(
    func: Callable[..., Tensor],
    inputs: TensorOrTensors,
    v: TensorOrTensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, TensorOrTensors]:
    """Returns func(*inputs) and the product of v with its Hessian: v^T H.

    Equal to hvp where second derivatives are continuous, and cheaper.

    Args:
        func: takes tensors, returns a tensor of one element.
        inputs: a tensor, or a tuple of all arguments.
        v: one tensor for each input, of its shape; may be None for a single element.
        create_graph: records the results, so that they can be differentiated again.
        strict: raises where the gradient does not depend on an input, instead of giving zeros.

    Returns:
        What func returned, and one tensor for each input, of its shape.

    Raises:
        TypeError: if inputs, v or what func returns are not tensors.
        RuntimeError: if func returns more than one element, v does not fit, or as strict says.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), x, torch.tensor([1.0, 10.0]))
        (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        several, points = as_arguments(inputs, "vhp", create_graph)
        vectors = as_vectors(v, "vhp", create_graph, points, several, OF_INPUT)
        output = call_for_one(func, points, "vhp", strict)
        gradient = gradients_of((output,), points, create_graph=True)
        if strict:
            check_varies(gradient, CONSTANT_JACOBIAN)
        products = completed(
            gradients_of(gradient, points, vectors, create_graph),
            points, strict, create_graph,
            "The jacobian of the user-provided function is independent of input {}", "hessian",
        )  # fmt: skip
    return (
        output if create_graph else output.detach(),
        given_back(products, create_graph, several),
    )


def hvp(
    func: Callable[..., Tensor],
    inputs: TensorOrTensors,
    v: TensorOrTensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, TensorOrTensors]:
    """Returns func(*inputs) and the product of its Hessian with v: H v.

    Args:
        func: takes tensors, returns a tensor of one element.
        inputs: a tensor, or a tuple of all arguments.
        v: one tensor for each input, of its shape; may be None for a single element.
        create_graph: records the results, so that they can be differentiated again.
        strict: raises where the gradient does not depend on an input, instead of giving zeros.

    Returns:
        What func returned, and one tensor for each input, of its shape.

    Raises:
        TypeError: if inputs, v or what func returns are not tensors.
        RuntimeError: if func returns more than one element, v does not fit, or as strict says.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, torch.tensor([1.0, 10.0]))
        (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        several, points = as_arguments(inputs, "hvp", create_graph)
        vectors = as_vectors(v, "hvp", create_graph, points, several, OF_INPUT)
        output = call_for_one(func, points, "hvp", strict)
        gradient = gradients_of((output,), points, create_graph=True)
        if strict:
            check_varies(gradient, CONSTANT_JACOBIAN)
        # As in jvp, of the gradient.
        weights = tuple(zeros_like(point, requires_grad=True) for point in points)
        backward = gradients_of(gradient, points, weights, create_graph=True)
        products = completed(
            gradients_of(backward, weights, vectors, create_graph),
            points, strict, create_graph,
            "The hessian of the user-provided function is independent of entry {} in the "
            "grad_jacobian", "hessian",
        )  # fmt: skip
    return (
        output if create_graph else output.detach(),
        given_back(products, create_graph, several),
    )


# What libraries that compute Jacobians of their own import.

_as_tuple = as_tensors


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """Tensors in the form of what they belong to: out of the tuples that _as_tuple made.

    Args:
        res: a tuple, or a tuple of tuples.
        to_unpack: whether what the tuple stands for was one; of both for a tuple of tuples.
    """
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    if not inner:
        res = tuple(row[0] for row in res)
    return res if outer else res[0]


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Tuples of tensors without their history, unless that was asked for."""
    from rushlight.utils import _pytree

    return inputs if create_graph else _pytree.tree_map(lambda x: x.detach(), inputs)


def _construct_standard_basis_for(
    tensors: Tensors, tensor_numels: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """The unit vectors of what tensors together have, as rows, in a matrix for each tensor."""
    from rushlight import eye

    parts = eye(sum(tensor_numels)).split(list(tensor_numels), dim=1)
    return tuple(
        part.to(device=x.device, dtype=x.dtype) for part, x in zip(parts, tensors, strict=True)
    )
