"""What the transforms share: their arguments, checked, and a function that ran on fresh inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import _C, Tensor
from rushlight.utils._pytree import tree_flatten, tree_map_only, tree_unflatten


def chosen_of(args: tuple[Any, ...], argnums: int | tuple[int, ...], name: str) -> tuple[Any, ...]:
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


def with_chosen(
    args: tuple[Any, ...], argnums: int | tuple[int, ...], chosen: Sequence[Any]
) -> tuple[Any, ...]:
    replaced = list(args)
    for n, value in zip((argnums,) if isinstance(argnums, int) else argnums, chosen, strict=True):
        replaced[n] = value
    return tuple(replaced)


def as_argnums(chosen: Sequence[Any], argnums: int | tuple[int, ...]) -> Any:
    return chosen[0] if isinstance(argnums, int) else tuple(chosen)


def check_tensors(leaves: Sequence[Any], what: str, error: type[Exception] = RuntimeError) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise error(f"{what} to be a Tensor, got a {type(leaf).__name__}")


def is_differentiable(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def check_differentiable(
    leaves: Sequence[Any], name: str, error: type[Exception] = RuntimeError
) -> None:
    for leaf in leaves:
        if not is_differentiable(leaf):
            raise error(
                f"{name}: inputs must be floating-point or complex tensors, got {leaf.dtype}. "
                "Pass the others outside of argnums."
            )


def check_inputs(leaves: Sequence[Any], name: str) -> None:
    check_tensors(leaves, f"{name}: Expected all inputs", ValueError)
    check_differentiable(leaves, name)


def check_real(leaves: Sequence[Any], what: str, name: str) -> None:
    """A complex Jacobian could be one of several matrices."""
    for leaf in leaves:
        if leaf.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received one of {leaf.dtype}. Pass "
                "view_as_real of it."
            )


def split_aux(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def detached(tree: Any) -> Any:
    return tree_map_only(Tensor, _C._without_history, tree)


class OwnTape:
    """The scope in which a transform records, in no_grad and in inference mode too."""

    def __enter__(self) -> None:
        self._before = _C._begin_own_tape()

    def __exit__(self, *exc_info: object) -> None:
        _C._end_own_tape(self._before)


class Recorded:
    """A function that has run on fresh inputs, so that it can be differentiated by them."""

    def __init__(self, func: Callable[..., Any], args: tuple[Any, ...], has_aux: bool, name: str):
        outer = _C.is_grad_enabled()
        leaves, self.input_spec = tree_flatten(args)
        with OwnTape():
            self.inputs = [_C._fresh_input(x) for x in leaves]
            result = func(*tree_unflatten(self.inputs, self.input_spec))
        output, self.aux = split_aux(result, has_aux, name)
        self.results, self.output_spec = tree_flatten(output)
        check_tensors(self.results, f"{name}: Expected f(*primals)")
        wanted = [x for x in self.results if x.requires_grad]
        # Whether derivatives beyond these can be asked for: only then is everything recorded.
        self.more = outer and bool(wanted) and _C._depends_on_more(wanted, self.inputs)

    def output(self) -> Any:
        output = tree_unflatten(self.results, self.output_spec)
        return output if self.more else detached(output)

    def aux_output(self) -> Any:
        return self.aux if self.more else detached(self.aux)

    def pull(self, cotangents: Sequence[Any], retain: bool) -> list[Any]:
        """The gradients of the inputs, for gradients of the results."""
        pairs = [(x, g) for x, g in zip(self.results, cotangents, strict=True) if x.requires_grad]
        create = _C.is_grad_enabled() and (
            self.more or any(g is not None and g.requires_grad for _, g in pairs)
        )
        found: Sequence[Any] = [None] * len(self.inputs)
        if pairs:
            roots, grads = zip(*pairs, strict=True)
            with OwnTape():
                found = _C._run_backward(roots, grads, self.inputs, retain or create, create, False)
        return [
            _C._without_history(x).new_zeros(x.shape) if g is None else g
            for x, g in zip(self.inputs, found, strict=True)
        ]


def check_outputs(run: Recorded, name: str) -> None:
    for result in run.results:
        if not is_differentiable(result):
            raise RuntimeError(
                f"{name}: All outputs of f must be floating-point or complex Tensors, got Tensor "
                f"with dtype {result.dtype}. Return it as aux, with has_aux=True."
            )
