"""opcheck: whether an operator does what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.library._operator import Operator
from rushlight.utils._pytree import tensor_leaves, tree_map

__all__ = ["OpCheckError", "opcheck"]

_TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


class OpCheckError(Exception):
    """Raised by opcheck for what an operator does not do."""


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Tries an operator on some arguments and returns what was found, by the names of the tests.

    test_schema: it writes only to what its schema says. test_autograd_registration: where arguments
    require gradients, it has some. test_faketensor: its results without values have the shapes and
    dtypes of the real ones. test_aot_dispatch_dynamic: backward gives gradients of the arguments'
    shapes, and the same ones again.

    Args:
        op: the operator.
        args: arguments for it.
        kwargs: arguments by name.
        test_utils: the tests.
        raise_exception: whether to raise what was found.
        atol: how far gradients may differ.
        rtol: how far they may differ relatively.

    Raises:
        OpCheckError: if a test fails.

    Example:
        >>> @torch.library.custom_op("docs::halved", mutates_args=())
        ... def halved(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> _ = halved.register_fake(lambda x: torch.empty_like(x))
        >>> torch.library.opcheck(halved, (torch.ones(2),), test_utils="test_faketensor")
        {'test_faketensor': 'SUCCESS'}
    """
    found: Operator = getattr(op, "_opoverload", op)
    if not isinstance(found, Operator):
        raise ValueError(f"opcheck: {op!r} is no operator of torch.library.")
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    unknown = set(names) - set(_TESTS)
    if unknown:
        raise ValueError(f"opcheck: {sorted(unknown)} are no tests. There are {', '.join(_TESTS)}.")
    results: dict[str, str] = {}
    tolerances = {"atol": atol, "rtol": rtol} if atol is not None or rtol is not None else {}
    for name in names:
        try:
            if name == "test_aot_dispatch_dynamic":
                _test_gradients(found, args, kwargs or {}, tolerances)
            else:
                _FUNCTIONS[name](found, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error  # pyright: ignore[reportArgumentType]
    return results


def _copied(value: Any) -> Any:
    def copy(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)

    return tree_map(copy, value)


def _test_schema(op: Operator, args: Any, kwargs: Any) -> None:
    args, kwargs = _copied((args, kwargs))
    values = op._schema.bind(args, kwargs)
    before = [_copied(value) for value in values]
    with rl.no_grad():
        op(*args, **kwargs)
    for parameter, old, new in zip(op._schema.parameters, before, values, strict=True):
        pairs = zip(tensor_leaves(old), tensor_leaves(new), strict=True)
        changed = any(not rl.allclose(a, b, rtol=0, atol=0, equal_nan=True) for a, b in pairs)
        if changed and not parameter.writes:
            raise RuntimeError(
                f"Argument {parameter.name} is not defined as mutable but was mutated"
            )


def _test_autograd_registration(op: Operator, args: Any, kwargs: Any) -> None:
    has_gradient = op.gradient is not None or op.composite is not None or op.writes
    if any(t.requires_grad for t in tensor_leaves((args, kwargs))) and not has_gradient:
        raise RuntimeError(
            f"{op} has no gradient, but the arguments require one. Use register_autograd."
        )


def _test_fake(op: Operator, args: Any, kwargs: Any) -> None:
    args, kwargs = _copied((args, kwargs))

    def to_meta(leaf: Any) -> Any:
        return leaf.detach().to("meta") if isinstance(leaf, Tensor) else leaf

    fake = tensor_leaves(op(*tree_map(to_meta, args), **tree_map(to_meta, kwargs)))
    with rl.no_grad():
        real = tensor_leaves(op(*args, **kwargs))
    if len(fake) != len(real):
        raise RuntimeError(f"the fake impl gives {len(fake)} tensors, the kernel {len(real)}.")
    for place, (a, b) in enumerate(zip(fake, real, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise RuntimeError(
                f"result {place} of the fake impl is {tuple(a.shape)} {a.dtype}, but that of the "
                f"kernel is {tuple(b.shape)} {b.dtype}."
            )


def _test_gradients(op: Operator, args: Any, kwargs: Any, tolerances: dict[str, Any]) -> None:
    if not any(t.requires_grad for t in tensor_leaves((args, kwargs))):
        return
    runs = []
    for _ in range(2):
        own_args, own_kwargs = _copied((args, kwargs))
        wanted = [t for t in tensor_leaves((own_args, own_kwargs)) if t.requires_grad]
        outputs = [o for o in tensor_leaves(op(*own_args, **own_kwargs)) if o.requires_grad]
        grads = rl.autograd.grad(
            outputs, wanted, [rl.ones_like(o) for o in outputs], allow_unused=True
        )
        runs.append([g for g in grads if g is not None])
    for first, second in zip(*runs, strict=True):
        rl.testing.assert_close(first, second, **tolerances)


_FUNCTIONS = {
    "test_schema": _test_schema,
    "test_autograd_registration": _test_autograd_registration,
    "test_faketensor": _test_fake,
}
