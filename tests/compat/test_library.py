"""Operators that a program adds to either library: the same calls, results, texts and errors."""

from __future__ import annotations

import typing
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytest.importorskip("torch.library")

LIBRARIES = (torch, pytorch)


def schemas(lib: Any) -> list[str]:
    """What infer_schema says of many annotations."""
    T, infer = lib.Tensor, lib.library.infer_schema
    found = []
    for annotation in (
        T, T | None, list[T], typing.Sequence[T], int, float, bool, str, list[int], int | None,
        typing.Optional[float], typing.List[int], lib.dtype, lib.device, list[bool], float | None,  # noqa: UP006, UP045
    ):  # fmt: skip

        def f(x, y, *, z=None):
            raise NotImplementedError

        f.__annotations__ = {"x": annotation, "y": T, "z": T | None, "return": T}
        found.append(infer(f, mutates_args=()))
        found.append(infer(f, mutates_args={"y"}))
    for result in (None, T, tuple[T, T], list[T], int, float, bool, tuple[T, int]):

        def g(x, n=2, s="a", b=True, o=None):
            raise NotImplementedError

        g.__annotations__ = {"x": T, "n": int, "s": str, "b": bool, "o": int | None}
        g.__annotations__["return"] = result
        found.append(infer(g, mutates_args=()))
    return found


def test_schemas_are_pytorchs() -> None:
    assert schemas(torch) == schemas(pytorch)


def sine(lib: Any) -> Any:
    """An operator with everything that may be registered."""

    def kernel(x, k=2.0, *, shift=0.0):
        return lib.from_numpy(np.sin(x.numpy()) * k + shift).to(x.dtype)

    kernel.__annotations__ = {"x": lib.Tensor, "k": float, "shift": float, "return": lib.Tensor}
    op = lib.library.custom_op("compat::sine", kernel, mutates_args=())
    op.register_fake(lambda x, k=2.0, *, shift=0.0: lib.empty_like(x))

    def setup(ctx, inputs, keyword_only_inputs, output):
        x, ctx.k = inputs
        ctx.save_for_backward(x)

    op.register_autograd(
        lambda ctx, g: (g * ctx.k * ctx.saved_tensors[0].cos(), None), setup_context=setup
    )

    @op.register_vmap
    def over(info, in_dims, x, k=2.0, *, shift=0.0):
        return op(x, k, shift=shift), in_dims[0]

    return op


def opchecked(lib, op):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's asks for the gradients of results
        return lib.library.opcheck(op, (lib.ones(2, requires_grad=True),))


def test_operators_do_the_same() -> None:
    seen = []
    for lib in LIBRARIES:
        op = sine(lib)
        x = lib.linspace(0, 1, 4).requires_grad_()
        y = lib.ops.compat.sine(x, 3.0, shift=1.0)
        y.sum().backward()
        seen.append(
            (
                repr(op),
                repr(lib.ops.compat.sine),
                type(y.grad_fn).__name__,
                y.detach().numpy().round(5).tolist(),
                x.grad.numpy().round(5).tolist(),
                lib.vmap(op)(x.detach().reshape(2, 2)).numpy().round(5).tolist(),
                tuple(op(lib.ones(2, 3, device="meta")).shape),
                opchecked(lib, op),
            )
        )
    assert seen[0] == seen[1]


def writes(lib: Any) -> Any:
    def kernel(x, out):
        out.copy_(x)

    kernel.__annotations__ = {"x": lib.Tensor, "out": lib.Tensor, "return": None}
    op = lib.library.custom_op("compat::writes", kernel, mutates_args={"out"})
    out = lib.zeros(2)
    result = op(lib.ones(2), out)
    return result, out.tolist(), str(op._opoverload._schema).removeprefix("compat::writes")


def several(lib: Any) -> Any:
    def kernel(xs, n=1):
        return [x * n for x in xs]

    kernel.__annotations__ = {"xs": list[lib.Tensor], "n": int, "return": list[lib.Tensor]}
    op = lib.library.custom_op("compat::several", kernel, mutates_args=())

    def setup(ctx, inputs, output):
        ctx.n = inputs[1]

    op.register_autograd(lambda ctx, gs: ([g * ctx.n for g in gs], None), setup_context=setup)
    xs = [lib.ones(2, requires_grad=True), lib.ones(3, requires_grad=True)]
    results = op(xs, 4)
    (results[0].sum() + 2 * results[1].sum()).backward()
    return type(results).__name__, [x.grad.tolist() for x in xs]


def by_schema(lib: Any) -> Any:
    with lib.library._scoped_library("compat_schema", "DEF") as library:
        name = library.define("scale(Tensor x, int n=2, *, bool flag=False) -> Tensor")
        library.impl("scale", lambda x, n=2, *, flag=False: x * (n + flag), "CPU")
        op = lib.ops.compat_schema.scale
        return name, op(lib.ones(1)).tolist(), op(lib.ones(1), n=4, flag=True).tolist(), repr(op)


@pytest.mark.parametrize("program", [writes, several, by_schema])
def test_programs_give_the_same(program: Any) -> None:
    assert program(torch) == program(pytorch)


MISTAKES = {
    "name": lambda lib: lib.library.custom_op("name", lambda x: x, mutates_args=()),
    "annotation": lambda lib: lib.library.custom_op("compat::q", lambda x: x, mutates_args=()),
    "unknown": lambda lib: lib.library.register_fake("compat::none", lambda x: x),
    "missing": lambda lib: lib.ops.compat.none,
    "kind": lambda lib: lib.library.Library("compat_kind", "OTHER"),
    "type": lambda lib: sine_of(lib)("a"),
    "places": lambda lib: sine_of(lib)(lib.ones(1), 2.0, 3.0),
    "keyword": lambda lib: sine_of(lib)(lib.ones(1), other=1),
    "nothing": lambda lib: sine_of(lib)(),
}


def sine_of(lib: Any) -> Any:
    if not hasattr(lib.ops.compat, "sine"):
        sine(lib)
    return lib.ops.compat.sine


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_raise_the_same_class(name: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        MISTAKES[name](pytorch)
    with pytest.raises(theirs.type):
        MISTAKES[name](torch)


def test_public_names_are_pytorchs() -> None:
    left_out = {"get_ctx", "get_kernel", "fallthrough_kernel", "register_torch_dispatch"}
    left_out |= {"triton_op", "wrap_triton"}
    assert not {n for n in pytorch.library.__all__ if not hasattr(torch.library, n)} - left_out
