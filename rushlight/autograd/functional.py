"""Jacobians, Hessians and their products with vectors, of Python functions of tensors.

Every function here calls func once on tensors of its own, made from inputs, so that gradients of
tensors which func captured are never mistaken for those of its arguments.
"""

from __future__ import annotations

from rushlight import Tensor, enable_grad, stack, zeros_like
from rushlight.autograd import grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    Tensors = tuple[Tensor, ...]
    TensorOrTensors = Tensor | Tensors
    Strategy = Literal["reverse-mode", "forward-mode"]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_NOT_STRICT = "This is not allowed in strict mode"


# ---- arguments and results ----------------------------------------------------------------------


def _tensors(value: Any, what: str, function: str) -> tuple[bool, Tensors]:
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


def _arguments(inputs: Any, function: str, create_graph: bool) -> tuple[bool, Tensors]:
    """Tensors of our own with the values of inputs, that gradients are taken for."""
    several, tensors = _tensors(inputs, "inputs", function)
    return several, _own(tensors, create_graph, True)


def _own(tensors: Tensors, create_graph: bool, differentiated: bool) -> Tensors:
    def own(tensor: Tensor) -> Tensor:
        if not (create_graph and tensor.requires_grad):
            return tensor.detach().requires_grad_(differentiated)
        return tensor.clone() if tensor.is_sparse else tensor.view_as(tensor)

    return tuple(own(tensor) for tensor in tensors)


def _outputs(
    func: Callable[..., Any], inputs: Tensors, function: str, strict: bool
) -> tuple[bool, Tensors]:
    several, outputs = _tensors(func(*inputs), "outputs of the user-provided function", function)
    if strict:
        for i, output in enumerate(outputs):
            if not output.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The "
                    "outputs must be computed in a differentiable manner from the input when "
                    "running in strict mode."
                )
    return several, outputs


def _single_output(
    func: Callable[..., Any], inputs: Tensors, function: str, strict: bool
) -> Tensor:
    """The only element that func returns, as everything about Hessians needs it."""
    several, outputs = _outputs(func, inputs, function, strict)
    if several:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single "
            "element"
        )
    return outputs[0]


def _vectors(
    v: Any, function: str, create_graph: bool, like: Tensors, several: bool, source: str
) -> Tensors | None:
    """The tensors of v, of the shapes of like; None where a one stands for it."""
    if v is None:
        if len(like) == 1 and like[0].numel() == 1:
            return None
        raise RuntimeError(
            f"The vector v can only be None if {source} a single Tensor with a single element."
        )
    _, vectors = _tensors(v, "v", function)
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


_OF_INPUT = "the input to the user-provided function is"


def _given_back(tensors: Tensors, create_graph: bool, several: bool) -> TensorOrTensors:
    """Tensors in the form of what they belong to, without history unless that was asked for."""
    if not create_graph:
        tensors = tuple(tensor.detach() for tensor in tensors)
    return tensors if several else tensors[0]


# ---- gradients ----------------------------------------------------------------------------------


def _gradients(
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


def _complete(
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


def _check_varies(gradients: Sequence[Tensor | None], meaning: str) -> None:
    """Raises unless every gradient exists and depends on something, as strict mode wants."""
    for i, gradient in enumerate(gradients):
        if gradient is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. "
                f"{_NOT_STRICT}."
            )
        if not gradient.requires_grad:
            raise RuntimeError(meaning.format(i))


_CONSTANT_GRADIENT = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided "
    "function. This is not allowed in strict mode."
)
_CONSTANT_JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on "
    "the inputs (this would be violated by a linear function for example)."
)


# ---- products with the Jacobian -----------------------------------------------------------------


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
        several_inputs, points = _arguments(inputs, "vjp", create_graph)
        several_outputs, outputs = _outputs(func, points, "vjp", strict)
        vectors = _vectors(
            v, "vjp", create_graph, outputs, several_outputs, "the user-provided function returns"
        )
        products = _complete(
            _gradients(outputs, points, vectors, create_graph),
            points, strict, create_graph,
            "The output of the user-provided function is independent of input {}", "jacobian",
        )  # fmt: skip
    return (
        _given_back(outputs, create_graph, several_outputs),
        _given_back(products, create_graph, several_inputs),
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
        several_inputs, points = _arguments(inputs, "jvp", create_graph)
        vectors = _vectors(v, "jvp", create_graph, points, several_inputs, _OF_INPUT)
        several_outputs, outputs = _outputs(func, points, "jvp", strict)
        # Their values never count, because backward is linear in them.
        weights = tuple(zeros_like(output, requires_grad=True) for output in outputs)
        backward = _gradients(outputs, points, weights, create_graph=True)
        if strict:
            _check_varies(backward, _CONSTANT_GRADIENT)
        slopes = _complete(
            _gradients(backward, weights, vectors, create_graph),
            outputs, strict, create_graph,
            "The gradient with respect to the input is independent of entry {} in the "
            "grad_outputs when using the double backward trick to compute forward mode gradients",
            "jacobian",
        )  # fmt: skip
    return (
        _given_back(outputs, create_graph, several_outputs),
        _given_back(slopes, create_graph, several_outputs),
    )


# ---- the Jacobian and the Hessian ---------------------------------------------------------------


def _rows(i: int, output: Tensor, inputs: Tensors, strict: bool, create_graph: bool) -> Tensors:
    """The Jacobian of output i for each input, of the output's shape followed by the input's."""
    rows: list[list[Tensor]] = [[] for _ in inputs]
    for j in range(output.numel()):
        one = zeros_like(output.detach()).view(-1)
        one[j] = 1
        weights = (one.view(output.shape),)
        gradients = _gradients((output,), inputs, weights, create_graph, retain_graph=True)
        missing = f"Output {i} of the user-provided function is independent of input {{}}"
        row = _complete(gradients, inputs, strict, create_graph, missing, "jacobian")
        for entries, gradient in zip(rows, row, strict=True):
            entries.append(gradient)
    return tuple(
        (stack(entries) if entries else tensor.new_zeros(0)).reshape(output.shape + tensor.shape)
        for entries, tensor in zip(rows, inputs, strict=True)
    )


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
        vectorize: may compute many rows at once; the result is the same.
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
        several_inputs, points = _arguments(inputs, "jacobian", create_graph)
        several_outputs, outputs = _outputs(func, points, "jacobian", strict)
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
        rows = [_rows(i, out, points, strict, create_graph) for i, out in enumerate(outputs)]
    result = tuple(_given_back(row, create_graph, several_inputs) for row in rows)
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
        vectorize: may compute many rows at once; the result is the same.
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
        return _single_output(func, arguments, "hessian", strict).reshape(())

    def gradient(*arguments: Tensor) -> TensorOrTensors:
        rows = jacobian(single, arguments, create_graph=True)
        if strict:
            _check_varies(rows, _CONSTANT_JACOBIAN)
        return rows

    several, _ = _tensors(inputs, "inputs", "hessian")
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
        several, points = _arguments(inputs, "vhp", create_graph)
        vectors = _vectors(v, "vhp", create_graph, points, several, _OF_INPUT)
        output = _single_output(func, points, "vhp", strict)
        gradient = _gradients((output,), points, create_graph=True)
        if strict:
            _check_varies(gradient, _CONSTANT_JACOBIAN)
        products = _complete(
            _gradients(gradient, points, vectors, create_graph),
            points, strict, create_graph,
            "The jacobian of the user-provided function is independent of input {}", "hessian",
        )  # fmt: skip
    return (
        output if create_graph else output.detach(),
        _given_back(products, create_graph, several),
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
        several, points = _arguments(inputs, "hvp", create_graph)
        vectors = _vectors(v, "hvp", create_graph, points, several, _OF_INPUT)
        output = _single_output(func, points, "hvp", strict)
        gradient = _gradients((output,), points, create_graph=True)
        if strict:
            _check_varies(gradient, _CONSTANT_JACOBIAN)
        # As in jvp, of the gradient.
        weights = tuple(zeros_like(point, requires_grad=True) for point in points)
        backward = _gradients(gradient, points, weights, create_graph=True)
        products = _complete(
            _gradients(backward, weights, vectors, create_graph),
            points, strict, create_graph,
            "The hessian of the user-provided function is independent of entry {} in the "
            "grad_jacobian", "hessian",
        )  # fmt: skip
    return (
        output if create_graph else output.detach(),
        _given_back(products, create_graph, several),
    )
