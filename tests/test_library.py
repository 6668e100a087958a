"""Operators that programs add: kernels, shapes, gradients, vmap, names and checks."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import Tensor, library
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.library._schema import infer, parse
from rushlight.overrides import TorchFunctionMode

CPU = torch.device("cpu")


@library.custom_op("tests::scaled_sine", mutates_args=())
def scaled_sine(x: Tensor, *, factor: float = 2.0) -> Tensor:
    """Goes through NumPy, which no gradient follows."""
    return torch.from_numpy(factor * np.sin(x.numpy()))


@scaled_sine.register_fake
def _(x: Tensor, *, factor: float = 2.0) -> Tensor:
    return torch.empty_like(x)


def _setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)
    ctx.factor = keyword_only_inputs["factor"]


def _backward(ctx: Any, grad: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    return grad * ctx.factor * x.cos()


scaled_sine.register_autograd(_backward, setup_context=_setup)


@scaled_sine.register_vmap
def _(info: Any, in_dims: Any, x: Tensor, *, factor: float = 2.0) -> Any:
    return scaled_sine(x, factor=factor), in_dims[0]


@library.custom_op("tests::split_sum", mutates_args=())
def split_sum(xs: Sequence[Tensor], weight: Tensor, places: list[int]) -> tuple[Tensor, Tensor]:
    return sum(xs[i] for i in places) * 1.0, weight.clone()


@library.custom_op("tests::fill", mutates_args={"out"})
def fill(x: Tensor, out: Tensor) -> None:
    out.copy_(x)


def test_an_operator_is_called_by_either_name() -> None:
    x = torch.tensor([0.0, 1.0])
    expected = torch.tensor(3 * np.sin([0.0, 1.0])).float()
    for op in (scaled_sine, torch.ops.tests.scaled_sine, torch.ops.tests.scaled_sine.default):
        torch.testing.assert_close(op(x, factor=3.0), expected)
    assert repr(scaled_sine) == "<CustomOpDef(tests::scaled_sine)>"
    assert str(torch.ops.tests.scaled_sine) == "tests.scaled_sine"
    assert "scaled_sine" in dir(torch.ops.tests)
    op = torch.ops.tests.scaled_sine
    assert pickle.loads(pickle.dumps(op)) is op


def test_modes_are_told_of_the_operator_as_a_whole() -> None:
    seen = []

    class Noting(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Noting():
        result = scaled_sine(x, factor=3.0)
    assert seen == [torch.ops.tests.scaled_sine.default]
    assert torch.allclose(result, 3 * x.sin())


def test_gradients_are_those_that_were_registered() -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: scaled_sine(x, factor=0.5), (x,))
    y = scaled_sine(x)
    assert type(y.grad_fn).__name__ == "GeneratedBackwardFor_tests_scaled_sine_defaultBackward"
    with torch.no_grad():
        assert not scaled_sine(x).requires_grad


def test_lists_of_tensors_have_gradients() -> None:
    def backward(ctx: Any, grad: Tensor, weight_grad: Tensor) -> Any:
        assert weight_grad.tolist() == [0, 0]
        return [grad * 1, grad * 2, None], None, None

    split_sum.register_autograd(backward)
    xs = [torch.ones(2, requires_grad=True) for _ in range(3)]
    first, second = split_sum(xs, torch.ones(2), [0, 1])
    assert first.tolist() == [2, 2] and second.tolist() == [1, 1]
    first.sum().backward()
    assert [x.grad if x.grad is None else x.grad.tolist() for x in xs] == [[1, 1], [2, 2], None]
    split_sum.register_autograd(lambda ctx, a, b: None)
    with pytest.raises(RuntimeError, match="must return one for each of the 3 arguments"):
        split_sum(xs, torch.ones(2), [0])[0].sum().backward()


def test_backward_without_a_formula_fails() -> None:
    op = library.custom_op(
        "tests::plain", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    y = op(torch.ones(1, requires_grad=True))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="Trying to backward through tests.plain.default"):
        y.backward()
    with pytest.raises(RuntimeError, match="no rule for vmap"):
        torch.vmap(op)(torch.ones(2))


def test_samples_are_computed_by_the_registered_rule() -> None:
    x = torch.randn(4, 3)
    torch.testing.assert_close(torch.vmap(scaled_sine)(x), scaled_sine(x))
    jacobian = torch.func.jacrev(scaled_sine)(x[0])
    torch.testing.assert_close(jacobian, torch.diag(2 * x[0].cos()))


@library.custom_op("tests::pieces", mutates_args=())
def pieces(x: Tensor, count: int) -> tuple[list[Tensor], int]:
    return [piece.clone() for piece in x.tensor_split(count)], count


@pieces.register_vmap
def _(info: Any, in_dims: Any, x: Tensor, count: int) -> Any:
    parts = x.movedim(in_dims[0], 0).tensor_split(count, 1)
    return ([part.clone() for part in parts], count), ([0] * count, None)


pieces.register_autograd(lambda ctx, grads, _: (torch.cat(grads), None))


def test_backward_is_told_which_arguments_want_gradients() -> None:
    seen = []

    @library.custom_op("tests::weighed", mutates_args=())
    def weighed(xs: Sequence[Tensor], y: Tensor, *, factor: float = 2.0) -> Tensor:
        return sum(x * y * factor for x in xs)

    def setup_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        seen.append(ctx.needs_input_grad)
        ctx.xs, ctx.y = inputs

    def backward(ctx: Any, grad: Tensor) -> Any:
        seen.append(ctx.needs_input_grad)
        return [grad * ctx.y * 2 if needs else None for needs in ctx.needs_input_grad[0]], None

    weighed.register_autograd(backward, setup_context=setup_context)
    x, z, y = torch.ones(2), torch.ones(2, requires_grad=True), torch.full((2,), 3.0)
    weighed([x, z], y).sum().backward()
    assert seen == [([False, True], False)] * 2
    assert z.grad.tolist() == [6, 6]


def test_results_may_hold_lists_of_tensors() -> None:
    x = torch.arange(4.0, requires_grad=True)
    (first, second), count = pieces(x, np.int64(2))
    assert count == 2
    (first.sum() + second.sum() * 3).backward()
    assert x.grad.tolist() == [1, 1, 3, 3]
    samples = torch.arange(12.0).reshape(3, 4)
    parts, count = torch.vmap(lambda row: pieces(row, 2), out_dims=(0, None))(samples)
    assert count == 2
    assert [part.tolist() for part in parts] == [
        samples[:, :2].tolist(),
        samples[:, 2:].tolist(),
    ]


def test_shapes_need_no_values() -> None:
    assert scaled_sine(torch.ones(2, 3, device="meta")).shape == (2, 3)
    with pytest.raises(NotImplementedError, match="Register one with register_fake"):
        split_sum([torch.ones(1, device="meta")], torch.ones(1, device="meta"), [0])


def test_operators_may_write_to_arguments() -> None:
    out = torch.zeros(2)
    before = out._version
    assert fill(torch.ones(2), out) is None and out.tolist() == [1, 1]
    assert out._version > before
    with pytest.raises(RuntimeError, match="non-functional operator"):
        fill.register_autograd(lambda ctx, grad: grad)
    schema = fill._opoverload._schema
    assert str(schema) == "tests::fill(Tensor x, Tensor(a1!) out) -> ()"
    assert schema.is_mutable and schema.name == fill._opoverload.name() == "tests::fill"
    assert [(a.name, a.alias_info) for a in schema.arguments] == [("x", None), ("out", (True,))]


def test_results_must_be_new() -> None:
    same = library.custom_op(
        "tests::same", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    view = library.custom_op(
        "tests::view", lambda x: x[0], mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    for op in (same, view):
        with pytest.raises(RuntimeError, match="may not alias any inputs"):
            op(torch.ones(2))


def test_a_result_may_not_be_the_argument_that_was_written() -> None:
    @torch.library.custom_op("ours::returns_written", mutates_args={"x"})
    def returns_written(x: torch.Tensor) -> torch.Tensor:
        return x.zero_()

    with pytest.raises(RuntimeError, match="may not alias any inputs"):
        returns_written(torch.ones(2))


def test_kernels_of_functions_without_tensors_are_chosen_by_the_device() -> None:
    @torch.library.custom_op("ours::made_on", mutates_args=(), device_types="cpu")
    def made_on(device: torch.device) -> torch.Tensor:
        return torch.ones(3)

    assert made_on("cpu").tolist() == made_on(torch.device("cpu", 0)).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="no kernel for cuda registered"):
        made_on("cuda")


def test_a_kernel_can_be_put_out_of_use(caplog: Any) -> None:
    @torch.library.custom_op("ours::plus", mutates_args=())
    def plus(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    x = torch.zeros(())
    with plus.set_kernel_enabled("cpu", enabled=False):
        assert plus(x).item() == 1
    assert "no kernel was registered" in caplog.text
    plus.register_kernel("cpu")(lambda x: x + 2)
    with plus.set_kernel_enabled("cpu", enabled=False):
        assert plus(x).item() == 1
        with plus.set_kernel_enabled("cpu"):
            assert plus(x).item() == 2
        with plus.set_kernel_enabled("cpu", enabled=False):
            assert plus(x).item() == 1
        assert "already disabled" in caplog.text and plus(x).item() == 1
    assert plus(x).item() == 2


def test_kernels_are_chosen_by_device_and_dtypes_by_autocast() -> None:
    op = library.custom_op(
        "tests::where",
        lambda x: x + 1,
        mutates_args=(),
        device_types="cpu",
        schema="(Tensor x) -> Tensor",
    )
    op.register_kernel(["meta"])(lambda x: x.new_empty(7))
    assert op(torch.ones(1)).item() == 2 and op(torch.ones(1, device="meta")).shape == (7,)
    op.register_autocast("cpu", torch.bfloat16)
    assert op(torch.ones(1)).dtype == torch.float32
    with torch.autocast("cpu"):
        assert op(torch.ones(1)).dtype == torch.bfloat16
    with pytest.raises(ValueError, match="Unknown device type"):
        op.register_autocast("tpu", torch.float16)


def test_libraries_add_operators_and_take_them_along() -> None:
    lib = library.Library("tests_lib", "DEF")
    assert lib.define("scale(Tensor x, int n=2) -> Tensor") == "scale"
    lib.impl("scale", lambda x, n=2: x * n, "CPU")
    assert torch.ops.tests_lib.scale(torch.ones(1), n=5).item() == 5
    with pytest.raises(NotImplementedError, match="meta"):
        torch.ops.tests_lib.scale(torch.ones(1, device="meta"))
    lib.impl("scale", lambda x, n=2: torch.empty_like(x), "Meta")
    assert torch.ops.tests_lib.scale(torch.ones(1, device="meta")).is_meta
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        library.Library("tests_lib", "DEF")
    with pytest.raises(RuntimeError, match="same name and overload name multiple times"):
        lib.define("scale(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="operator tests_lib::other does not exist"):
        lib.impl("other", lambda x: x)
    with pytest.raises(ValueError, match="no dispatch key 'TPU'"):
        lib.impl("scale", lambda x: x, "TPU")
    fragment = library.Library("tests_lib", "FRAGMENT")
    fragment.define("square(Tensor x) -> Tensor")
    fragment.impl("square", lambda x: x * x, "CompositeImplicitAutograd")
    x = torch.tensor(3.0, requires_grad=True)
    torch.ops.tests_lib.square(x).backward()
    assert x.grad is not None and x.grad.item() == 6
    del lib
    gc.collect()
    with pytest.raises(AttributeError, match="'tests_lib' object has no attribute 'scale'"):
        torch.ops.tests_lib.scale  # noqa: B018
    assert torch.ops.tests_lib.square(x).item() == 9
    fragment._destroy()
    library.Library("tests_lib", "DEF")._destroy()
    with pytest.raises(ValueError, match="reserved namespace"):
        torch.library.Library("prim", "FRAGMENT")
    with pytest.raises(ValueError, match="Unsupported kind"):
        library.Library("tests_lib", "OTHER")


def test_overloads_are_chosen_by_the_arguments_or_by_name() -> None:
    with library._scoped_library("tests_overloads", "DEF") as lib:
        lib.define("scale(Tensor x) -> Tensor")
        lib.impl("scale", lambda x: 2 * x, "CPU")
        single = torch.ops.tests_overloads.scale
        assert single.overloads() == ["default"] and single.overloadpacket is single
        lib.define("scale.Tensor(Tensor x, Tensor y) -> Tensor")
        lib.define("scale.Scalar(Tensor x, float y) -> Tensor")
        lib.impl("scale.Tensor", lambda x, y: x * y, "CPU")
        lib.impl("scale.Scalar", lambda x, y: x * y + 1, "CPU")
        library.register_autograd(
            "tests_overloads::scale.Scalar",
            lambda ctx, grad: (grad * 7, None),
        )
        scale, x = torch.ops.tests_overloads.scale, torch.ones(2, requires_grad=True)
        assert scale is torch.ops.tests_overloads.scale is scale.Tensor.overloadpacket
        assert scale.overloads() == ["default", "Tensor", "Scalar"]
        assert (str(scale), str(scale.Tensor)) == (
            "tests_overloads.scale",
            "tests_overloads.scale.Tensor",
        )
        assert dir(torch.ops.tests_overloads) == ["scale"]
        assert pickle.loads(pickle.dumps(scale.Tensor)) is scale.Tensor
        assert pickle.loads(pickle.dumps(scale)) is scale
        assert scale(x).tolist() == scale.default(x).tolist() == [2, 2]
        assert scale(x, torch.tensor([3.0, 4.0])).tolist() == [3, 4]
        scale(x, 5.0).sum().backward()
        assert x.grad.tolist() == [7, 7]
        traced = make_fx(lambda x: scale(x, x))(torch.ones(2))
        assert scale.Tensor in [node.target for node in traced.graph.nodes]
        assert traced(torch.tensor([3.0])).tolist() == [9]
        with pytest.raises(
            RuntimeError, match=r"no overload fits.\n.*at most 1(.|\n)*found type 'str'"
        ):
            scale(x, "no")
        with pytest.raises(AttributeError, match="has no overload 'two'"):
            _ = scale.two
    assert not hasattr(torch.ops.tests_overloads, "scale")


def test_functions_are_defined_and_implemented_by_name() -> None:
    with library._scoped_library("tests_scope", "DEF") as lib:
        library.define("tests_scope::inc", "(Tensor x, *, float by=1.0) -> Tensor", lib=lib)

        @library.impl("tests_scope::inc", ["cpu", "cuda"])
        def inc(x: Tensor, *, by: float = 1.0) -> Tensor:
            return x + by

        library.register_fake("tests_scope::inc", lambda x, *, by=1.0: torch.empty_like(x))
        assert torch.ops.tests_scope.inc(torch.ones(1), by=2.0).item() == 3
        assert torch.ops.tests_scope.inc(torch.ones(1, device="meta")).is_meta
    with pytest.raises(AttributeError):
        torch.ops.tests_scope.inc  # noqa: B018


def test_a_schema_may_name_the_namespace_of_its_library() -> None:
    with library._scoped_library("tests_named", "DEF") as lib:
        assert lib.define("tests_named::twice(Tensor x) -> Tensor") == "twice"
        lib.impl("twice", lambda x: x * 2)
        assert torch.ops.tests_named.twice(torch.ones(1)).item() == 2


def test_a_library_that_is_not_there_is_not_loaded() -> None:
    before = set(torch.ops.loaded_libraries)
    with pytest.raises(OSError, match=r"Could not load this library: .*/lib\.so"):
        torch.ops.load_library(Path("lib.so"))
    assert torch.ops.loaded_libraries == before


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (
            ("a",),
            {},
            "Expected a value of type 'Tensor' for argument 'x' but instead found type 'str'",
        ),
        ((), {}, "missing value for argument 'x'"),
        ((torch.ones(1), 3.0), {}, "expected at most 1 argument"),
        ((torch.ones(1),), {"other": 1}, "has no argument 'other'"),
        ((torch.ones(1),), {"x": 1}, "got twice the argument 'x'"),
        ((torch.ones(1),), {"factor": "a"}, "type 'float' for argument 'factor'"),
    ],
)
def test_calls_that_do_not_fit_say_why(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.ops.tests.scaled_sine(*args, **kwargs)


def test_mistakes_in_definitions_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="of the form namespace::name"):
        library.custom_op("name", mutates_args=())(scaled_sine._init_fn)
    with pytest.raises(ValueError, match="Parameter x must have a type annotation"):
        library.custom_op("tests::a", mutates_args=())(lambda x: x)
    with pytest.raises(ValueError, match="must be a sequence of names or the string 'unknown'"):
        library.custom_op("tests::a", mutates_args="x")(scaled_sine._init_fn)
    with pytest.raises(ValueError, match="the op mutates {'x'}"):
        library.custom_op("tests::a", mutates_args=(), schema="(Tensor(a!) x) -> ()")(torch.sin)
    with pytest.raises(ValueError, match="in mutates_args were not found"):
        library.custom_op("tests::a", mutates_args=("y",))(scaled_sine._init_fn)
    with pytest.raises(RuntimeError, match="operator tests::nothing does not exist"):
        library.register_fake("tests::nothing")
    for schema in ("Tensor x", "(Tensor) -> Tensor", "(Tensor x=?) -> Tensor"):
        with pytest.raises(RuntimeError, match="define: cannot read"):
            library.define("tests::b", schema)
    for schema in ("(Foo x) -> Tensor", "(Tensor x) -> Foo[]"):
        with pytest.raises(RuntimeError, match="unknown type specifier 'Foo'"):
            library.define("tests::b", schema)
    with pytest.raises(ValueError, match="expected the name of an operator"):
        library.register_kernel(3, "cpu", print)


@pytest.mark.parametrize(
    "schema",
    [
        "() -> ()",
        "(Tensor x, Tensor? y=None, *, int[] n=[1, 2]) -> Tensor[]",
        "(Dict(str, Tensor) x, Dict(str, int[])? n, (str, int)[] p) -> Dict(str, Tensor)",
        "(Tensor(a!) x, float y=1.5, bool z=True) -> (Tensor, Tensor)",
        '(Tensor x, ScalarType a=float32, ScalarType? b=None, Device c="cpu") -> Tensor',
        '(Tensor[] xs, str mode="mean", ScalarType? dtype=None) -> SymInt',
    ],
)
def test_schemas_are_read_and_written(schema: str) -> None:
    assert str(parse(schema)) == schema


def test_schemas_may_have_spaces_around_defaults() -> None:
    schema = parse("(Tensor x, *, int n = 2, ScalarType? dtype =None) -> Tensor")
    assert str(schema) == "(Tensor x, *, int n=2, ScalarType? dtype=None) -> Tensor"


def test_tensors_are_written_to_by_a_mark_without_a_name() -> None:
    schema = parse("(Tensor x, Tensor! out, Tensor![] more) -> ()")
    assert str(schema) == "(Tensor x, Tensor(a1!) out, Tensor(a2!)[] more) -> ()"
    assert [p.writes for p in schema.parameters] == [False, True, True]


def test_schemas_are_inferred_from_annotations() -> None:
    def f(
        x: Tensor, ys: list[Tensor], d: int | None = None, *, n: Sequence[int], t: torch.dtype
    ) -> list[Tensor]:
        raise NotImplementedError

    text = "(Tensor x, Tensor[] ys, SymInt? d=None, *, SymInt[] n, ScalarType t) -> Tensor[]"
    assert str(infer(f, ())) == text
    assert str(infer(f, "unknown")).startswith("(Tensor(a0!) x, Tensor(a1!)[] ys")

    def g(*x: Tensor) -> Tensor: ...

    def h(x: dict[str, Tensor]) -> Tensor: ...

    def i(x: Tensor): ...

    def defaults(x: Tensor, t: torch.dtype = torch.int8, d: torch.device = CPU) -> Tensor: ...

    text = '(Tensor x, ScalarType t=int8, Device d="cpu") -> Tensor'
    assert str(infer(defaults, ())) == text
    assert [p.default for p in parse(text).parameters[1:]] == [torch.int8, CPU]

    for function, problem in ((g, "varargs"), (h, "unsupported type"), (i, "No return type")):
        with pytest.raises(ValueError, match=problem):
            infer(function, ())


def test_checks_find_what_is_not_as_it_says() -> None:
    x = torch.randn(3, requires_grad=True)
    assert set(library.opcheck(scaled_sine, (x,), {"factor": 3.0}).values()) == {"SUCCESS"}

    def writing(x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2

    liar = library.custom_op("tests::liar", writing, mutates_args=())
    with pytest.raises(library.OpCheckError, match="Argument x is not defined as mutable"):
        library.opcheck(liar, (torch.ones(2),), test_utils="test_schema")
    with pytest.raises(library.OpCheckError, match="has no gradient"):
        library.opcheck(liar, (x,), test_utils="test_autograd_registration")
    liar.register_fake(lambda x: x.new_empty(5))
    found = library.opcheck(liar, (torch.ones(2),), raise_exception=False)
    assert "is (5,) torch.float32" in str(found["test_faketensor"])
    with pytest.raises(ValueError, match="no operator"):
        library.opcheck(print, ())
    with pytest.raises(ValueError, match="are no tests"):
        library.opcheck(liar, (), test_utils="test_other")


def test_graphs_have_operators_as_steps() -> None:
    traced = torch.fx.symbolic_trace(lambda x: scaled_sine(x, factor=3.0) + 1)
    assert "rushlight.ops.tests.scaled_sine(x, factor = 3.0)" in traced.code
    x = torch.ones(2)
    assert torch.equal(traced(x), scaled_sine(x, factor=3.0) + 1)


def test_a_decorator_registers_kernels_of_a_library_by_their_keys() -> None:
    library = torch.library.Library("keyed", "DEF")
    library.define("twice(Tensor x) -> Tensor")

    @torch.library.impl(library, "twice", "CPU")
    def on_cpu(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    @torch.library.impl(library, torch.ops.keyed.twice.default, dispatch_key="Meta")
    def on_meta(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    assert torch.ops.keyed.twice(torch.ones(2)).tolist() == [2, 2]
    assert torch.ops.keyed.twice(torch.ones(2, device="meta")).is_meta
    library.define("same(Tensor x) -> Tensor")
    torch.library.impl(library, "same", "CPU")(lambda x: x)  # which custom_op refuses
    assert torch.ops.keyed.same(torch.ones(1)).tolist() == [1]
    torch.library.impl(library, "twice", "XPU")(on_meta)
    assert torch.ops.keyed.twice(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="no dispatch key"):
        torch.library.impl(library, "twice", "Nowhere")(on_cpu)


def test_operators_are_defined_and_registered_in_the_old_ways() -> None:
    library = torch.library.Library("older", "DEF")

    @torch.library.define(library, "cube(Tensor x) -> Tensor")
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    x = torch.full((2,), 2.0, requires_grad=True)
    torch.ops.older.cube(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [12, 12]

    tag = torch.Tag.pointwise
    torch.library.define("older::twice", "(Tensor x) -> Tensor", lib=library, tags=tag)
    assert torch.ops.older.twice.default.tags == [tag] and torch.ops.older.cube.tags == []

    @torch.library.impl("older::twice", ["CPU", "Meta"], lib=library)
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert torch.ops.older.twice(torch.ones(2)).tolist() == [2, 2]
    assert torch.ops.older.twice(torch.ones(2, device="meta")).is_meta


def test_what_an_operator_writes_to_counts_a_write() -> None:
    @torch.library.custom_op("written::clear", mutates_args={"x", "ys"})
    def clear(x: torch.Tensor, ys: list[torch.Tensor]) -> None:
        for each in (x, *ys):
            each.numpy().fill(0)

    x, y = torch.ones(2), torch.ones(2)
    z = torch.ones(2, requires_grad=True) * x
    before = x._version, y._version
    clear(x, [y])
    assert x._version > before[0] and y._version > before[1] and x.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="modified"):
        z.sum().backward()
    with torch.inference_mode():
        clear(y, [torch.ones(2)])
    clear(y, [torch.inference_mode()(torch.ones)(2)])


def test_operators_have_their_short_names() -> None:
    torch.library.define("own_names::plain", "(Tensor x) -> Tensor")
    assert torch.ops.own_names.plain.default._opname == "plain"
    assert repr(torch.ops.own_names) == "<namespace torch.ops.own_names>"
