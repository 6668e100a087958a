"""torch.func and forward mode agree with PyTorch's: results, forms, and which errors are raised."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(run: Program) -> Program:
    """A program of library t, compared by what it returns or raises."""
    PROGRAMS[run.__name__] = run
    return run


def data(t: Any, *shape: int, seed: int = 0, dtype: str = "float64") -> Any:
    numbers = np.random.default_rng(seed)
    array = numbers.standard_normal(shape)
    if dtype.startswith("complex"):
        array = array + 1j * numbers.standard_normal(shape)
    return t.from_numpy(array).to(getattr(t, dtype))


def described(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [described(v) for v in value]
    if isinstance(value, dict):
        return {k: described(v) for k, v in value.items()}
    if hasattr(value, "requires_grad"):
        facts = tuple(value.shape), str(value.dtype).rpartition(".")[2], value.requires_grad
        return facts, value.detach().resolve_conj().numpy()
    return value


def outcome(library: Any, run: Program) -> Any:
    try:
        return described(run(library))
    except Exception as error:
        return "raises", type(error).__name__, str(error)


def same(ours: Any, theirs: Any, path: str = "") -> None:
    assert type(ours) is type(theirs), (path, ours, theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs), path
        for key in ours:
            same(ours[key], theirs[key], f"{path}[{key!r}]")
    elif isinstance(ours, (tuple, list)):
        if "raises" in (*ours[:1], *theirs[:1]):
            assert ours[:2] == theirs[:2], (path, ours, theirs)
            return
        assert len(ours) == len(theirs), (path, ours, theirs)
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{path}[{i}]")
    elif isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=path)
    else:
        assert ours == theirs, path


@pytest.fixture
def left_alone() -> Any:
    """After each program no level is open."""
    yield
    x = torch.tensor([1.0, 2.0])
    assert torch.func.vmap(torch.sin)(x).tolist() == torch.sin(x).tolist()
    assert torch.func.grad(torch.sum)(x).tolist() == [1.0, 1.0]
    with torch.autograd.forward_ad.dual_level():
        pass


# ---- grad ---------------------------------------------------------------------------------------


@program
def grad_forms(t):
    f = t.func
    x, y = data(t, 3), data(t, 3, seed=1)

    def func(x, y, scale=1.0):
        return (x.sin() * y * scale).sum()

    return [
        f.grad(func)(x, y),
        f.grad(func, argnums=1)(x, y),
        f.grad(func, argnums=-1)(x, y),
        f.grad(func, argnums=(1, 0))(x, y),
        f.grad(func, argnums=(0,))(x, y),
        f.grad(func, argnums=(0, -1))(x, y, scale=2.0),
        f.grad_and_value(func)(x, y),
        f.grad_and_value(func, argnums=(0, 1))(x, y),
    ]


@program
def grad_aux(t):
    f = t.func
    x = data(t, 3)

    def func(x):
        return x.exp().sum(), {"twice": x * 2, "list": [x.sin(), x.detach()]}

    return [f.grad(func, has_aux=True)(x), f.grad_and_value(func, has_aux=True)(x)]


@program
def grad_aux_missing(t):
    return t.func.grad(lambda x: x.sum(), has_aux=True)(data(t, 3))


@program
def grad_aux_three(t):
    return t.func.grad(lambda x: (x.sum(), x, x), has_aux=True)(data(t, 3))


@program
def grad_structures(t):
    f = t.func
    x, y = data(t, 3), data(t, 2, seed=1)

    def func(p, other=None):
        return (p["a"] ** 2).sum() + (p["b"][0] ** 3).sum()

    return [
        f.grad(func)({"a": x, "b": [y]}),
        f.grad(lambda p: (p[0] * p[1][0]).sum())((x, (x * 2,))),
        f.grad(lambda p, q: (p[0] * q["z"]).sum(), argnums=(0, 1))([x], {"z": x}),
        f.grad_and_value(func)({"a": x, "b": [y]}),
    ]


@program
def grad_unused(t):
    f = t.func
    x = data(t, 3)
    return [
        f.grad(lambda x, y: x.sum(), argnums=(0, 1))(x, x * 2),
        f.grad(lambda x: t.ones(()).double())(x),
        f.grad(lambda x: x.detach().sum())(x),
        f.jacrev(lambda x, y: x.sin(), argnums=1)(x, x),
        f.jacfwd(lambda x, y: x.sin(), argnums=1)(x, x),
        f.jacfwd(lambda x: t.ones(2).double())(x),
        f.jacrev(lambda x: t.ones(2).double())(x),
        f.hessian(lambda x: x.sum())(x),
    ]


@program
def grad_closures(t):
    f = t.func
    w = data(t, 3, seed=3).requires_grad_()
    x = data(t, 3)
    g = f.grad(lambda x: (x.sin() * w).sum())(x)
    g.sum().backward()
    value = f.grad_and_value(lambda x: (x.sin() * w).sum())(x)
    out, pull = f.vjp(lambda x: x * w, x)
    (pulled,) = pull(x)
    jac = f.jacrev(lambda x: x * w)(x)
    fwd = f.jacfwd(lambda x: x * w)(x)
    tangent = f.jvp(lambda x: x * w, (x,), (x,))
    batch = f.vmap(lambda x: x * w)(data(t, 2, 3))
    return [g, w.grad, value, out, pulled, jac, fwd, tangent, batch]


@program
def grad_of_leaf(t):
    f = t.func
    x = data(t, 3).requires_grad_()
    g = f.grad(lambda x: x.sin().sum())(x)
    g.sum().backward()
    v, gv = f.grad_and_value(lambda x: x.sin().sum())(x)
    j = f.jacrev(t.sin)(x)
    jf = f.jacfwd(t.sin)(x)
    return [g, x.grad, v, gv, j, jf, f.hessian(lambda x: (x**3).sum())(x)]


@program
def grad_under_no_grad(t):
    f = t.func
    x = data(t, 3)
    w = data(t, 3, seed=3).requires_grad_()
    with t.no_grad():
        outside = [
            f.grad(lambda x: (x**2 * w).sum())(x),
            f.grad(f.grad(lambda x: x**3))(t.tensor(2.0)),
            f.vjp(t.sin, x)[1](x),
            f.jacrev(lambda x: x * w)(x),
            f.jvp(t.sin, (x,), (x,)),
            f.hessian(lambda x: (x**3).sum())(x),
        ]

    def inside(x):
        with t.no_grad():
            c = x**2
        return (x - c).sum()

    with t.no_grad():
        both = f.grad(inside)(x)
    return [outside, f.grad(inside)(x), both, f.jvp(inside, (x,), (t.ones_like(x),))]


@program
def grad_turned_off_inside(t):
    x = data(t, 3)

    def func(x):
        with t.no_grad():
            return (x**2).sum()

    return t.func.grad(func)(x)


@program
def grad_inplace(t):
    f = t.func
    x = data(t, 3)

    def func(x):
        y = x.clone()
        y.mul_(2)
        y[0] = x[1] ** 2
        y[1:].sin_()
        return y

    def on_zeros(x):
        out = t.zeros(3, dtype=t.float64)
        out[0] = x[0] * x[1]
        out += x
        return out

    def scalar(x):
        return func(x).sum()

    return [
        f.grad(scalar)(x),
        f.jacrev(func)(x),
        f.jacfwd(func)(x),
        f.jvp(func, (x,), (x,)),
        f.jacfwd(on_zeros)(x),
        f.jacrev(on_zeros)(x),
        f.hessian(scalar)(x),
        f.vmap(f.grad(scalar))(data(t, 4, 3)),
        f.vmap(func)(data(t, 4, 3)),
        f.grad(f.grad(lambda x: func(t.stack([x, x * 2, x**3])).prod()))(t.tensor(0.5).double()),
    ]


@program
def grad_of_input_written(t):
    x = data(t, 3)

    def func(x):
        x.mul_(2)
        return (x**2).sum()

    return t.func.grad(func)(x), x


@program
def vmap_writes_input(t):
    x = data(t, 4, 3)
    out = t.func.vmap(lambda x: x.mul_(2))(x)
    return out, x


@program
def jvp_writes_input(t):
    x = data(t, 3)
    out = t.func.jvp(lambda x: x.mul_(2).sin(), (x,), (t.ones_like(x),))
    return out, x


@program
def vmap_writes_shared(t):
    return t.func.vmap(lambda x, y: y.add_(x), in_dims=(0, None))(data(t, 4, 3), data(t, 3))


@program
def grad_integer_input(t):
    return t.func.grad(lambda x: x.sum())(t.arange(3))


@program
def grad_integer_other(t):
    i = t.tensor([2, 0])
    return t.func.grad(lambda x, i: x[i].prod())(data(t, 3), i)


@program
def grad_not_scalar(t):
    return t.func.grad(t.sin)(data(t, 3))


@program
def grad_one_element(t):
    return t.func.grad(lambda x: x.sum().reshape(1))(data(t, 3))


@program
def grad_of_tuple(t):
    return t.func.grad(lambda x: (x.sum(), x.sum()))(data(t, 3))


@program
def grad_of_number(t):
    return t.func.grad(lambda x: 3.0)(data(t, 3))


@program
def grad_by_number(t):
    return t.func.grad(lambda x: x**2)(3.0)


@program
def grad_argnum_out_of_range(t):
    return t.func.grad(lambda x: x.sum(), argnums=1)(data(t, 3))


@program
def grad_argnums_twice(t):
    return t.func.grad(lambda x, y: (x * y).sum(), argnums=(0, -2))(data(t, 3), data(t, 3))


@program
def grad_argnums_empty(t):
    return t.func.grad(lambda x: x.sum(), argnums=())(data(t, 3))


@program
def grad_argnums_float(t):
    return t.func.grad(lambda x: x.sum(), argnums=0.0)(data(t, 3))


@program
def grad_argnums_list(t):
    return t.func.grad(lambda x: x.sum(), argnums=[0])(data(t, 3))


@program
def grad_by_keyword(t):
    return t.func.grad(lambda x: x.sum())(x=data(t, 3))


@program
def grad_raises(t):
    def func(x):
        raise KeyError("stop")

    return t.func.grad(func)(data(t, 3))


@program
def all_raise_inside(t):
    f = t.func
    x = data(t, 3)
    seen = []

    def func(x):
        seen.append(tuple(x.shape))
        raise KeyError("stop")

    for run in (
        lambda: f.vmap(func)(x),
        lambda: f.vmap(f.grad(func))(x),
        lambda: f.grad(f.vmap(func))(x),
        lambda: f.jvp(func, (x,), (x,)),
        lambda: f.jacfwd(func)(x),
        lambda: f.jacrev(func)(x),
        lambda: f.vjp(func, x),
        lambda: f.hessian(func)(x),
        lambda: f.linearize(func, x),
    ):
        try:
            run()
        except KeyError:
            seen.append("caught")
    return seen, f.vmap(t.sin)(x), f.grad(t.sum)(x), f.jvp(t.sin, (x,), (x,))


@program
def grad_complex(t):
    f = t.func
    z = data(t, 3, dtype="complex128")
    return [
        f.grad(lambda z: (z * z.conj()).real.sum())(z),
        f.grad(lambda z: z.abs().sum())(z),
        f.grad(lambda x: (x * z).abs().sum())(data(t, 3)),
        f.vjp(lambda z: z**2, z)[1](z)[0],
        f.jvp(lambda z: z**2 * 1j, (z,), (z.conj(),)),
        f.jacrev(lambda z: z**2)(z),
        f.jacfwd(lambda z: z**2)(z),
        f.jacrev(lambda z: t.view_as_real(z**2))(z),
        f.jacfwd(lambda z: z.abs())(z),
        f.vmap(f.grad(lambda z: z.abs() ** 2))(z),
        f.jacfwd(lambda x: t.complex(x, x**2))(data(t, 2)),
        f.jacrev(lambda x: t.complex(x, x**2))(data(t, 2)),
    ]


@program
def grad_of_complex_output(t):
    return t.func.grad(lambda z: z.sum())(data(t, 3, dtype="complex128"))


@program
def grad_float32(t):
    x = data(t, 3, dtype="float32")
    return [
        t.func.grad(lambda x: (x.double() ** 2).sum())(x),
        t.func.jacfwd(lambda x: x.double() ** 2)(x),
        t.func.jacrev(lambda x: x.double() ** 2)(x),
    ]


@program
def with_autograd_grad_inside(t):
    x = data(t, 3)

    def func(x):
        y = x.sin().sum()
        (g,) = t.autograd.grad(y, x, create_graph=True)
        return (g**2).sum()

    return t.func.grad(func)(x), t.func.vmap(t.func.grad(func))(data(t, 2, 3))


@program
def backward_inside_grad(t):
    def func(x):
        w = t.ones(3, dtype=t.float64, requires_grad=True)
        (w * x).sum().backward()
        return (x**2).sum()

    return t.func.grad(func)(data(t, 3))


@program
def requires_grad_inside(t):
    def func(x):
        y = x.sin().requires_grad_()
        return (y * 2).sum()

    return t.func.grad(func)(data(t, 3))


@program
def seen_inside_grad(t):
    seen = []

    def func(x):
        seen.append((x.requires_grad, x.is_leaf, tuple(x.shape), x.dim(), x.numel(), str(x.dtype)))
        return x.sum()

    t.func.grad(func)(data(t, 3))
    return [s[0] for s in seen] + [s[2:5] for s in seen]


# ---- vjp ----------------------------------------------------------------------------------------


@program
def vjp_forms(t):
    f = t.func
    x, y = data(t, 3), data(t, 3, seed=1)
    out, pull = f.vjp(lambda x, y: (x * y, {"s": x.sum()}), x, y)
    first = pull((x, {"s": t.ones((), dtype=t.float64)}))
    again = pull((y, {"s": t.zeros((), dtype=t.float64)}))
    aux = f.vjp(lambda x: (x.sin(), x.cos()), x, has_aux=True)
    structured = f.vjp(lambda p: [p["a"].sin(), p["b"][0] * 2], {"a": x, "b": (y,)})
    return [out, first, again, aux[0], aux[1](x), aux[2], structured[0], structured[1]([x, y])]


@program
def vjp_single_in_tuple(t):
    out, pull = t.func.vjp(lambda x: (x.sin(),), data(t, 3))
    return out, pull((data(t, 3),))


@program
def vjp_of_vjp(t):
    f = t.func
    x = data(t, 3)

    def inner(x):
        _, pull = f.vjp(lambda x: x**3, x)
        return pull(t.ones_like(x))[0]

    out, pull = f.vjp(inner, x)
    return out, pull(x), f.jacrev(inner)(x), f.jacfwd(inner)(x), f.grad(lambda x: inner(x).sum())(x)


@program
def vjp_vmapped(t):
    f = t.func
    x = data(t, 3)
    _, pull = f.vjp(lambda x: (x.sin() * x.sum()), x)
    return f.vmap(pull)(t.eye(3, dtype=t.float64))


@program
def vjp_wrong_structure(t):
    _, pull = t.func.vjp(lambda x: (x, x), data(t, 3))
    return pull(data(t, 3))


@program
def vjp_wrong_shape(t):
    _, pull = t.func.vjp(t.sin, data(t, 3))
    return pull(data(t, 4))


@program
def vjp_without_primals(t):
    return t.func.vjp(lambda: t.ones(3))


@program
def vjp_output_no_tensor(t):
    return t.func.vjp(lambda x: (x, 3), data(t, 3))


@program
def vjp_integer_output(t):
    out, pull = t.func.vjp(lambda x: (x * 2, (x > 0).long()), data(t, 3))
    return out


# ---- forward mode -------------------------------------------------------------------------------


@program
def jvp_forms(t):
    f = t.func
    x, y = data(t, 3), data(t, 3, seed=1)
    return [
        f.jvp(t.sin, (x,), (y,)),
        f.jvp(lambda x, y: (x * y, {"s": x.sum()}), (x, y), (y, x)),
        f.jvp(lambda p: p["a"] * p["b"][0], ({"a": x, "b": [y]},), ({"a": y, "b": [x]},)),
        f.jvp(lambda x: (x.sin(), x.cos()), (x,), (y,), has_aux=True),
        f.jvp(lambda x: t.ones(2), (x,), (y,)),
        f.jvp(lambda x: (x, x.detach()), (x,), (y,)),
        f.jvp(lambda x: x[1:].view(2, 1).t() @ x[:2], (x,), (y,)),
        f.jvp(lambda x: t.where(x > 0, x, x**2).cumsum(0), (x,), (y,)),
        f.jvp(lambda x: t.linalg.norm(x) + t.logsumexp(x, 0), (x,), (y,)),
        f.jvp(lambda x: t.cat([x, x * 2]).reshape(2, 3).softmax(1), (x,), (y,)),
        f.jvp(lambda x: x.max(), (x,), (y,)),
        f.jvp(lambda x: x.sort()[0] * x.amax(), (x,), (y,)),
    ]


@program
def jvp_strict(t):
    return t.func.jvp(lambda x: t.ones(2), (data(t, 3),), (data(t, 3),), strict=True)


@program
def jvp_primals_not_tuple(t):
    return t.func.jvp(t.sin, data(t, 3), data(t, 3))


@program
def jvp_primals_list(t):
    return t.func.jvp(t.sin, [data(t, 3)], [data(t, 3)])


@program
def jvp_empty(t):
    return t.func.jvp(lambda: t.ones(3), (), ())


@program
def jvp_wrong_structure(t):
    return t.func.jvp(t.sin, (data(t, 3),), (data(t, 3), data(t, 3)))


@program
def jvp_wrong_shape(t):
    return t.func.jvp(t.sin, (data(t, 3),), (data(t, 4),))


@program
def jvp_wrong_dtype(t):
    return t.func.jvp(t.sin, (data(t, 3),), (data(t, 3, dtype="float32"),))


@program
def jvp_integer(t):
    return t.func.jvp(lambda x: x * 2, (t.arange(3),), (t.arange(3),))


@program
def jvp_number(t):
    return t.func.jvp(lambda x: x * 2, (2.0,), (1.0,))


@program
def jvp_number_tangent(t):
    return t.func.jvp(lambda x: x * 2, (data(t, 3),), (1.0,))


@program
def jvp_output_no_tensor(t):
    return t.func.jvp(lambda x: 2, (data(t, 3),), (data(t, 3),))


@program
def linearize_forms(t):
    f = t.func
    x, y = data(t, 3), data(t, 3, seed=1)
    out, push = f.linearize(lambda x: x.sin() * x.sum(), x)
    two, push_two = f.linearize(lambda x, y: (x * y, {"a": y.exp()}), x, y)
    return [out, push(y), push(x), f.vmap(push)(t.eye(3).double()), two, push_two(y, x)]


@program
def linearize_wrong_shape(t):
    return t.func.linearize(t.sin, data(t, 3))[1](data(t, 4))


@program
def linearize_wrong_structure(t):
    return t.func.linearize(t.sin, data(t, 3))[1](data(t, 3), data(t, 3))


# ---- Jacobians ----------------------------------------------------------------------------------


@program
def jacobian_forms(t):
    f = t.func
    x, y = data(t, 3), data(t, 2, seed=1)

    def func(x, y):
        return x.sin().outer(y)

    def many(x, y):
        return {"a": x.sum() * y, "b": (x**2, y[0] * x)}

    made = []
    for jac in (f.jacrev, f.jacfwd):
        made += [
            jac(func)(x, y),
            jac(func, argnums=1)(x, y),
            jac(func, argnums=(0, 1))(x, y),
            jac(func, argnums=(1,))(x, y),
            jac(many)(x, y),
            jac(many, argnums=(0, 1))(x, y),
            jac(lambda p: p["u"] * p["v"][0].sum())({"u": x, "v": [y]}),
            jac(lambda x: (x.sin(), {"aux": x.cos()}), has_aux=True)(x),
            jac(lambda x: x.sum())(x),
            jac(t.sin)(t.tensor(0.5)),
            jac(lambda x: x.sum(1))(data(t, 2, 3)),
        ]
    return made


@program
def jacrev_chunks(t):
    x = data(t, 5)
    return [t.func.jacrev(lambda x: x**2 * x.sum(), chunk_size=n)(x) for n in (1, 2, 3, 5, 7)] + [
        t.func.jacrev(lambda x: (x**2, x.sum()), chunk_size=2)(x)
    ]


@program
def jacrev_chunk_zero(t):
    return t.func.jacrev(t.sin, chunk_size=0)(data(t, 3))


@program
def jacrev_empty(t):
    return t.func.jacrev(t.sin)(data(t, 0)), t.func.jacrev(lambda x: x[:0])(data(t, 3))


@program
def jacfwd_empty(t):
    return t.func.jacfwd(lambda x: x[:0])(data(t, 3))


@program
def hessian_forms(t):
    f = t.func
    x, y = data(t, 3), data(t, 2, seed=1)
    return [
        f.hessian(lambda x: (x**3).sum() * x[0])(x),
        f.hessian(lambda x, y: (x**2).sum() * (y**3).sum(), argnums=(0, 1))(x, y),
        f.hessian(lambda x: x**3)(x),
        f.hessian(lambda p: (p["a"] ** 2).prod())({"a": x}),
        f.hessian(lambda x: x.sin().outer(x))(y),
    ]


@program
def nested(t):
    f = t.func
    x = data(t, 3)
    s = t.tensor(0.7, dtype=t.float64)

    def func(x):
        return x.sin() * x.sum() ** 2

    def scalar(x):
        return func(x).sum()

    return [
        f.grad(f.grad(t.sin))(s),
        f.grad(f.grad(f.grad(lambda x: x**5)))(s),
        f.jacfwd(f.jacrev(func))(x),
        f.jacrev(f.jacfwd(func))(x),
        f.jacrev(f.jacrev(func))(x),
        f.jacfwd(f.jacfwd(func))(x),
        f.jacfwd(f.jacfwd(f.jacfwd(t.sin)))(s),
        f.jacrev(f.jacfwd(f.jacrev(scalar)))(x),
        f.grad(lambda x: f.jvp(scalar, (x,), (x.detach(),))[1])(x),
        f.jvp(f.grad(scalar), (x,), (t.ones_like(x),)),
        f.grad(lambda x: (f.grad(scalar)(x) ** 2).sum())(x),
        f.jvp(lambda x: f.jvp(func, (x,), (x,))[1], (x,), (x,)),
        f.jvp(lambda x: f.jvp(lambda y: x * y, (x,), (t.ones_like(x),))[1], (x,), (x,)),
        f.grad(lambda x: x * f.grad(lambda y: x * y**2)(x * 2))(s),
        f.jvp(lambda x: f.grad(lambda y: (x * y**2).sum())(x), (x,), (x,)),
        f.grad(lambda x: (x * f.vmap(lambda y: (y * x).sum())(t.eye(3).double())).sum())(x),
    ]


@program
def nested_vmap(t):
    f = t.func
    x = data(t, 4, 3)
    w = data(t, 3, seed=1)

    def scalar(x, w):
        return (x.sin() * w).sum() ** 2

    return [
        f.vmap(f.grad(scalar), in_dims=(0, None))(x, w),
        f.grad(lambda w: f.vmap(scalar, in_dims=(0, None))(x, w).sum())(w),
        f.vmap(f.jacrev(lambda x: x**2 * x.sum()))(x),
        f.vmap(f.jacfwd(lambda x: x**2 * x.sum()))(x),
        f.vmap(f.hessian(lambda x: (x**3).prod()))(x),
        f.jacrev(f.vmap(lambda x: x.sum() ** 2))(x),
        f.jacfwd(f.vmap(lambda x: x.sum() ** 2))(x),
        f.jvp(f.vmap(lambda x: x.sum() ** 2), (x,), (x,)),
        f.vmap(lambda x, v: f.jvp(t.sin, (x,), (v,))[1])(x, x),
        f.vmap(lambda v: f.jvp(lambda w: (x @ w) ** 2, (w,), (v,))[1])(t.eye(3).double()),
        f.vmap(f.vmap(f.grad(lambda x: x**3)))(x),
        f.vmap(f.vmap(lambda a, b: a * b, in_dims=(0, None)), in_dims=(None, 0))(w, w),
        f.vmap(f.vmap(t.dot, in_dims=(1, None)), in_dims=(None, 0), out_dims=1)(x, data(t, 5, 4)),
        f.vmap(lambda w: f.grad(lambda w: scalar(x, w))(w))(data(t, 2, 3)),
        f.vmap(lambda x: f.vmap(lambda y: (x * y).sum())(data(t, 2, 3)))(x),
    ]


@program
def hvp_forward_over_reverse(t):
    f = t.func

    def hvp(func, primals, tangents):
        return f.jvp(f.grad(func), primals, tangents)[1]

    x, v = data(t, 4), data(t, 4, seed=1)
    rev = f.grad(lambda x: (f.grad(lambda x: (x.sin() ** 3).sum())(x) * v).sum())(x)
    return hvp(lambda x: (x.sin() ** 3).sum(), (x,), (v,)), rev


# ---- vmap ---------------------------------------------------------------------------------------


@program
def vmap_dims(t):
    v = t.func.vmap
    x, y = data(t, 2, 3, 4), data(t, 3, seed=1)
    return [
        v(t.sum)(x),
        v(lambda x: x.sum(0), in_dims=1)(x),
        v(lambda x: x.sum(0), in_dims=-1)(x),
        v(lambda x: x * 2, in_dims=1, out_dims=1)(x),
        v(lambda x: x * 2, in_dims=2, out_dims=-1)(x),
        v(lambda x, y: x * y, in_dims=(1, 0))(x, y),
        v(lambda x, y: x * y, in_dims=(1, None))(x, 3.0),
        v(lambda x, y: x * y, in_dims=[1, 0])(x, y),
        v(lambda d: d["a"].sum() * d["b"], in_dims=({"a": 1, "b": 0},))({"a": x, "b": y}),
        v(lambda d: d["a"].sum() * d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": 2.0}),
        v(lambda p: p[0].sum() * p[1][0].sum(), in_dims=((0, [0]),))((x, [x])),
        v(lambda p: p[0].sum() * p[1].sum())((x, x)),
        v(lambda x: (x.sum(), x), out_dims=(0, 2))(x),
        v(lambda x: {"a": x.sum(), "b": [x]})(x),
        v(lambda x: {"a": x.sum(), "b": [x]}, out_dims={"a": 0, "b": [1]})(x),
        v(lambda x: (x, t.ones(2)), out_dims=(0, None))(x),
        v(lambda x: t.ones(2))(x),
        v(lambda x: (x,))(x),
        v(lambda x: [x, x])(x),
        v(lambda x, scale: x * scale, in_dims=(0, None))(x, 2),
        v(lambda x, *, y: x * y)(x, y=2.0),
        v(lambda x, y=None: x.sum(1) * y.sum(), in_dims=0)(x, y=y[:2]),
        v(lambda x: x.shape[0] * x)(x),
        v(lambda x: x.t())(x),
        v(lambda x: t.stack([x, x], -1))(x),
        v(lambda x, i: x[i], in_dims=(None, 0))(y, t.tensor([2, 0, 1])),
        v(lambda x: t.atleast_1d(x.sum()))(x),
        v(lambda x: x.new_zeros(2) + x.sum())(x),
        v(lambda x: x @ x.mT)(x),
        v(lambda x, y: t.nn.functional.linear(x, y), in_dims=(0, None))(x, data(t, 5, 4)),
        v(lambda x: t.nn.functional.layer_norm(x, (4,)))(x),
        v(lambda x: x.softmax(-1).argmax(-1))(x),
        v(lambda x: t.where(x > 0, x, 0.0))(x),
        v(lambda x: (x > 0).any(), in_dims=1)(x),
        v(lambda x: t.einsum("ij,kj->ik", x, x))(x),
        v(lambda x: x.unfold(1, 2, 1))(x),
        v(lambda x: x.flatten().cumsum(0))(x),
    ]


@program
def vmap_chunks(t):
    x = data(t, 5, 3)
    v = t.func.vmap
    return [
        [v(lambda x: x.sum() * 2, chunk_size=n)(x) for n in (1, 2, 5, 9)],
        v(lambda x, y: (x + y, y), in_dims=(1, None), out_dims=(1, 0), chunk_size=2)(x, x[:, 0]),
        v(lambda x: {"a": x}, chunk_size=2)(x),
        v(lambda x: x, out_dims=-1, chunk_size=2)(x),
    ]


@program
def vmap_chunk_zero(t):
    return t.func.vmap(t.sin, chunk_size=0)(data(t, 3))


@program
def vmap_chunk_negative(t):
    return t.func.vmap(t.sin, chunk_size=-1)


@program
def vmap_no_inputs(t):
    return t.func.vmap(lambda: t.ones(2))()


@program
def vmap_all_none(t):
    return t.func.vmap(t.sin, in_dims=None)(data(t, 3))


@program
def vmap_all_none_in_tuple(t):
    return t.func.vmap(t.sin, in_dims=(None,))(data(t, 3))


@program
def vmap_in_dims_float(t):
    return t.func.vmap(t.sin, in_dims=1.0)(data(t, 3))


@program
def vmap_in_dims_string_inside(t):
    return t.func.vmap(t.sin, in_dims=("0",))(data(t, 3))


@program
def vmap_in_dims_too_many(t):
    return t.func.vmap(t.sin, in_dims=(0, 0))(data(t, 3))


@program
def vmap_in_dims_too_few(t):
    return t.func.vmap(t.add, in_dims=(0,))(data(t, 3), data(t, 3))


@program
def vmap_of_0d(t):
    return t.func.vmap(t.sin)(t.tensor(1.0))


@program
def vmap_in_dim_out_of_range(t):
    return t.func.vmap(t.sin, in_dims=1)(data(t, 3))


@program
def vmap_in_dim_far_negative(t):
    return t.func.vmap(t.sin, in_dims=-2)(data(t, 3))


@program
def vmap_sizes_differ(t):
    return t.func.vmap(t.add)(data(t, 3), data(t, 4))


@program
def vmap_of_number(t):
    return t.func.vmap(t.add)(data(t, 3), 2.0)


@program
def vmap_returns_number(t):
    return t.func.vmap(lambda x: 2.0)(data(t, 3))


@program
def vmap_returns_none(t):
    return t.func.vmap(lambda x: None)(data(t, 3))


@program
def vmap_returns_number_none(t):
    return t.func.vmap(lambda x: (x, 2.0), out_dims=(0, None))(data(t, 3))


@program
def vmap_out_dims_too_many(t):
    return t.func.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(data(t, 3))


@program
def vmap_out_dims_of_one(t):
    return t.func.vmap(lambda x: x, out_dims=(0, 0))(data(t, 3))


@program
def vmap_out_dim_out_of_range(t):
    return t.func.vmap(t.sin, out_dims=1)(data(t, 3))


@program
def vmap_out_dim_none_of_sample(t):
    return t.func.vmap(t.sin, out_dims=None)(data(t, 3))


@program
def vmap_out_dims_string(t):
    return t.func.vmap(t.sin, out_dims="0")(data(t, 3))


@program
def vmap_item(t):
    return t.func.vmap(lambda x: x * x.item())(data(t, 3))


@program
def vmap_if(t):
    return t.func.vmap(lambda x: x if x > 0 else -x)(data(t, 3))


@program
def vmap_random_error(t):
    return t.func.vmap(lambda x: x + t.rand(()))(data(t, 3))


@program
def vmap_random_bad(t):
    return t.func.vmap(t.sin, randomness="other")(data(t, 3))


@program
def vmap_random(t):
    x = t.zeros(4, 3)
    same = t.func.vmap(lambda x: x + t.rand(3), randomness="same")(x)
    different = t.func.vmap(lambda x: x + t.rand(3), randomness="different")(x)
    drop = t.func.vmap(
        lambda x: t.nn.functional.dropout(x + 1, 0.5), randomness="different"
    )(t.zeros(3, 100))
    return [
        bool((same[0] == same[1]).all()),
        bool((different[0] == different[1]).all()),
        bool((drop[0] == drop[1]).all()),
    ]


@program
def vmap_empty_batch(t):
    return t.func.vmap(t.sin)(t.zeros(0, 3))


@program
def vmap_nonzero(t):
    return t.func.vmap(lambda x: x.nonzero())(data(t, 3, 2))


@program
def vmap_numpy(t):
    return t.func.vmap(lambda x: t.from_numpy(x.numpy()))(data(t, 3, 2))


@program
def vmap_tolist(t):
    return t.func.vmap(lambda x: t.tensor(x.tolist()))(data(t, 3, 2))


@program
def vmap_prints(t):
    seen = []

    def func(x):
        seen.append(len(repr(x)) > 0)
        return x

    t.func.vmap(func)(data(t, 3))
    return seen


@program
def vmap_leak(t):
    kept = []
    t.func.vmap(lambda x: kept.append(x) or x)(data(t, 3))
    return tuple(kept[0].shape), kept[0] * 2


@program
def grad_leak(t):
    kept = []
    t.func.grad(lambda x: kept.append(x) or x.sum())(data(t, 3))
    return (kept[0] * 2).detach()


@program
def jvp_leak(t):
    kept = []
    t.func.jvp(lambda x: kept.append(x) or x.sum(), (data(t, 3),), (data(t, 3),))
    return kept[0] * 2


@program
def backward_through_vmap(t):
    x = data(t, 4, 3).requires_grad_()
    w = data(t, 3, seed=1).requires_grad_()
    out = t.func.vmap(lambda x: (x * w).sum() ** 2)(x)
    out.sum().backward()
    return out, x.grad, w.grad


@program
def backward_inside_vmap(t):
    def func(x):
        x.requires_grad_()
        (x**2).sum().backward()
        return x

    return t.func.vmap(func)(data(t, 3, 2))


@program
def root_vmap(t):
    return t.vmap(t.sin)(data(t, 3))


# ---- modules ------------------------------------------------------------------------------------


def module(t: Any, seed: int = 0) -> Any:
    net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 2)).double()
    with t.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(data(t, *p.shape, seed=seed + i))
    return net


@program
def functional_call_forms(t):
    f = t.func
    net = module(t)
    params = {k: v.detach() * 2 for k, v in net.named_parameters()}
    x = data(t, 5, 3)
    made = [
        f.functional_call(net, params, x),
        f.functional_call(net, params, (x,)),
        f.functional_call(net, {}, x),
        f.functional_call(net, ({"0.weight": params["0.weight"]}, {"2.bias": params["2.bias"]}), x),
        f.functional_call(net, params, kwargs={"input": x}),
        f.grad(lambda p: f.functional_call(net, p, x).sum())(params),
    ]
    return made, f.functional_call(net, params, (x,), strict=True), net(x).detach()


@program
def functional_call_strict_missing(t):
    net = module(t)
    return t.func.functional_call(net, {"0.weight": net[0].weight}, data(t, 1, 3), strict=True)


@program
def functional_call_strict_unexpected(t):
    net = module(t)
    params = {**dict(net.named_parameters()), "other": data(t, 1)}
    return t.func.functional_call(net, params, data(t, 1, 3), strict=True)


@program
def functional_call_unexpected(t):
    return t.func.functional_call(module(t), {"other": data(t, 1)}, data(t, 1, 3))


@program
def functional_call_unknown_module(t):
    return t.func.functional_call(module(t), {"7.weight": data(t, 1)}, data(t, 1, 3))


@program
def functional_call_twice(t):
    p = {"0.bias": data(t, 4)}
    return t.func.functional_call(module(t), (p, p), data(t, 1, 3))


@program
def functional_call_no_dict(t):
    return t.func.functional_call(module(t), 3, data(t, 1, 3))


@program
def functional_call_error_restores(t):
    net = module(t)
    before = net[0].weight
    try:
        t.func.functional_call(net, {"0.weight": data(t, 7, 7)}, data(t, 1, 3))
    except RuntimeError:
        return net[0].weight is before, type(net[0].weight).__name__


def tied(t: Any) -> Any:
    class Tied(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = t.nn.Parameter(data(t, 3))
            self.b = self.a
            self.register_buffer("c", data(t, 3, seed=1))

        def forward(self, x):
            self.c.add_(1)
            self.d = x
            return self.a * x + self.b * self.c

    return Tied()


@program
def functional_call_tied(t):
    x = data(t, 3, seed=2)
    new = data(t, 3, seed=3)
    net = tied(t)
    return [
        t.func.functional_call(net, {"a": new}, x),
        t.func.functional_call(net, {"b": new}, x),
        t.func.functional_call(net, {"a": new}, x, tie_weights=False).detach(),
        t.func.functional_call(net, {"a": new, "b": new}, x),
        net.c,
    ]


@program
def functional_call_tied_differently(t):
    values = {"a": data(t, 3), "b": data(t, 3, seed=1)}
    return t.func.functional_call(tied(t), values, data(t, 3))


@program
def functional_call_updates_buffers(t):
    net = tied(t)
    new = data(t, 3, seed=7)
    out = t.func.functional_call(net, {"c": new}, data(t, 3))
    norm = t.nn.BatchNorm1d(3).double()
    state = {k: v.clone() for k, v in norm.state_dict().items()}
    y = t.func.functional_call(norm, state, data(t, 5, 3))
    return out, new, net.c, y, state, norm.running_mean


@program
def functional_call_in_training(t):
    net = module(t)
    params = {k: v.detach().requires_grad_() for k, v in net.named_parameters()}
    t.func.functional_call(net, params, data(t, 5, 3)).sum().backward()
    return {k: v.grad for k, v in params.items()}, [p.grad for p in net.parameters()]


@program
def ensemble(t):
    f = t.func
    nets = [module(t, seed=i) for i in range(3)]
    params, buffers = f.stack_module_state(nets)
    base = module(t, seed=9)
    x = data(t, 5, 3)

    def call(params, buffers, x):
        return f.functional_call(base, (params, buffers), (x,))

    return [
        params,
        buffers,
        f.vmap(call, in_dims=(0, 0, None))(params, buffers, x),
        f.vmap(call)(params, buffers, data(t, 3, 5, 3)),
        t.stack([net(x) for net in nets]),
    ]


@program
def stack_nothing(t):
    return t.func.stack_module_state([])


@program
def stack_modes(t):
    return t.func.stack_module_state([module(t), module(t).eval()])


@program
def stack_classes(t):
    return t.func.stack_module_state([t.nn.Linear(1, 1), t.nn.Conv1d(1, 1, 1)])


@program
def batch_norm_replaced(t):
    net = t.nn.Sequential(t.nn.Conv2d(1, 2, 1), t.nn.BatchNorm2d(2)).double()
    t.func.replace_all_batch_norm_modules_(net)
    with t.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(data(t, *p.shape, seed=i))
    params = dict(net.named_parameters())
    x = data(t, 4, 1, 3, 3)

    def loss(p, x):
        return t.func.functional_call(net, p, (x.unsqueeze(0),)).square().sum()

    return t.func.vmap(t.func.grad(loss), in_dims=(None, 0))(
        {k: v.detach() for k, v in params.items()}, x
    ), net[1].running_mean


# ---- autograd.Function --------------------------------------------------------------------------


def cube(t: Any, **options: Any) -> Any:
    class Cube(t.autograd.Function):
        generate_vmap_rule = options.get("generate", False)

        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2 * options.get("factor", 1)

        if options.get("jvp"):

            @staticmethod
            def jvp(ctx, tangent):
                (x,) = ctx.saved_tensors
                return tangent * 3 * x**2

        if options.get("vmap"):

            @staticmethod
            def vmap(info, in_dims, x):
                return Cube.apply(x.movedim(in_dims[0], 0)), 0

    return Cube


@program
def function_with_transforms(t):
    f = t.func
    x = data(t, 3)
    made = []
    for options in ({"generate": True}, {"vmap": True}):
        c = cube(t, **options, factor=2)
        made += [
            c.apply(x),
            f.grad(lambda x, c=c: c.apply(x).sum())(x),
            f.vmap(c.apply)(x),
            f.vmap(c.apply, in_dims=1)(data(t, 2, 3)),
            f.vmap(f.grad(lambda x, c=c: c.apply(x).sum()))(data(t, 4, 3)),
            f.jacrev(c.apply)(x),
            f.grad(f.grad(lambda x, c=c: c.apply(x)))(x[0]),
            f.vmap(f.vmap(c.apply))(data(t, 2, 3)),
        ]
    return made


@program
def function_jvp(t):
    f = t.func
    x = data(t, 3)
    c = cube(t, jvp=True, generate=True)
    return [
        f.jvp(c.apply, (x,), (x,)),
        f.jacfwd(lambda x: c.apply(x).sum())(x),
        f.jacfwd(c.apply)(x),
        f.hessian(lambda x: c.apply(x).sum())(x),
        f.jvp(f.grad(lambda x: c.apply(x).sum()), (x,), (x,)),
    ]


@program
def function_without_jvp(t):
    return t.func.jvp(cube(t).apply, (data(t, 3),), (data(t, 3),))


@program
def function_without_vmap(t):
    return t.func.vmap(cube(t).apply)(data(t, 3))


@program
def function_with_both(t):
    return t.func.vmap(cube(t, vmap=True, generate=True).apply)(data(t, 3))


def old_style(t: Any) -> Any:
    class Old(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    return Old


@program
def function_old_style_in_grad(t):
    return t.func.grad(lambda x: old_style(t).apply(x).sum())(data(t, 3))


@program
def function_old_style_in_vmap(t):
    return t.func.vmap(old_style(t).apply)(data(t, 3))


@program
def function_several(t):
    class Multiply(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y, scale):
            return x * y * scale, x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, y, ctx.scale = inputs
            ctx.save_for_backward(x, y)

        @staticmethod
        def backward(ctx, first, second):
            x, y = ctx.saved_tensors
            return first * y * ctx.scale + second, first * x * ctx.scale + second, None

    f = t.func
    x, y = data(t, 4, 3), data(t, 3, seed=1)

    def loss(x, y):
        a, b = Multiply.apply(x, y, 2.0)
        return (a.sin() + b).sum()

    return [
        f.vmap(lambda x, y: Multiply.apply(x, y, 2.0), in_dims=(0, None))(x, y),
        f.vmap(f.grad(loss, argnums=(0, 1)), in_dims=(0, None))(x, y),
        f.jacrev(lambda y: Multiply.apply(y, y, 3.0))(y),
        f.grad(lambda y: f.vmap(loss, in_dims=(0, None))(x, y).sum())(y),
    ]


@program
def function_with_numpy_and_vmap(t):
    def array(x):
        return x.detach().numpy()

    class Sort(t.autograd.Function):
        @staticmethod
        def forward(x, dim):
            order = np.argsort(array(x), axis=dim, kind="stable")
            return t.from_numpy(np.take_along_axis(array(x), order, dim)), t.from_numpy(order)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.dim = inputs[1]
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(output[1])

        @staticmethod
        def backward(ctx, grad, _):
            (order,) = ctx.saved_tensors
            return t.zeros_like(grad).scatter(ctx.dim, order, grad), None

        @staticmethod
        def vmap(info, in_dims, x, dim):
            x = x.movedim(in_dims[0], 0)
            return Sort.apply(x, dim if dim < 0 else dim + 1), (0, 0)

    f = t.func
    x = data(t, 4, 3)
    return [
        Sort.apply(x, 1),
        f.vmap(lambda x: Sort.apply(x, 0))(x),
        f.vmap(lambda x: Sort.apply(x, -1), in_dims=1)(x),
        f.grad(lambda x: (Sort.apply(x, 1)[0] * t.arange(3)).sum())(x),
    ]


# ---- forward_ad ---------------------------------------------------------------------------------


@program
def duals(t):
    fw = t.autograd.forward_ad
    x, v = data(t, 3), data(t, 3, seed=1)
    made = []
    with fw.dual_level():
        d = fw.make_dual(x, v)
        out = (d * 2).sin()
        made += [tuple(fw.unpack_dual(out)), fw.unpack_dual(out).tangent, fw.unpack_dual(d).primal]
        made += [fw.unpack_dual(x).tangent, fw.unpack_dual(d.detach()).tangent]
        made += [tuple(fw.unpack_dual(d[1:].view(2, 1))), fw.unpack_dual(d.sum()).tangent]
        made += [fw.unpack_dual(d.clone().mul_(d)).tangent]
        with t.no_grad():
            made += [fw.unpack_dual(d.exp()).tangent]
    made += [fw.unpack_dual(out).tangent]
    return made, out, out * 2


@program
def duals_written(t):
    fw = t.autograd.forward_ad
    x, v = data(t, 3), data(t, 3, seed=1)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        out = t.zeros(3, dtype=t.float64)
        out[0] = d[1]
        out[1:] = d[:2] * 2
        first = fw.unpack_dual(out)
        plain = t.ones(3, dtype=t.float64)
        plain.mul_(d)
        second = fw.unpack_dual(plain)
        base = t.zeros(2, 3, dtype=t.float64)
        base[1].copy_(d)
        third = fw.unpack_dual(base)
        row = base[0]
        row.add_(d)
        fourth = fw.unpack_dual(base)
        e = d.clone()
        e[0] = 5.0
        fifth = fw.unpack_dual(e)
        e.zero_()
        sixth = fw.unpack_dual(e)
        g = d.clone()
        view = g[1:]
        g.mul_(3)
        return [
            tuple(a)
            for a in (first, second, third, fourth, fifth, sixth, fw.unpack_dual(view))
        ]


@program
def dual_written_shares(t):
    fw = t.autograd.forward_ad
    x, v = data(t, 3), data(t, 3, seed=1)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        d.mul_(2)
        return tuple(fw.unpack_dual(d)), x, v


@program
def backward_through_duals(t):
    fw = t.autograd.forward_ad
    x = data(t, 3).requires_grad_()
    v = data(t, 3, seed=1).requires_grad_()
    with fw.dual_level():
        d = fw.make_dual(x, v)
        out, tangent = fw.unpack_dual((d**3).sum())
        (first,) = t.autograd.grad(tangent, x, retain_graph=True)
        second = t.autograd.grad(tangent, v, retain_graph=True)
        tangent.backward()
    return [first, second, x.grad, v.grad, out, tangent]


@program
def dual_parameters(t):
    fw = t.autograd.forward_ad
    net = module(t)
    params = dict(net.named_parameters())
    tangents = {k: data(t, *p.shape, seed=20 + i) for i, (k, p) in enumerate(params.items())}
    x = data(t, 5, 3)
    with fw.dual_level():
        for name, p in params.items():
            owner = net.get_submodule(name.rpartition(".")[0])
            delattr(owner, name.rpartition(".")[2])
            setattr(owner, name.rpartition(".")[2], fw.make_dual(p, tangents[name]))
        out = net(x)
        jvp = fw.unpack_dual(out).tangent
    functional = []
    with fw.dual_level():
        fresh = module(t)
        dual = {k: fw.make_dual(p, tangents[k]) for k, p in fresh.named_parameters()}
        functional.append(fw.unpack_dual(t.func.functional_call(fresh, dual, x)).tangent)
    return jvp, functional


@program
def dual_function(t):
    fw = t.autograd.forward_ad
    c = cube(t, jvp=True)
    x = data(t, 3)
    with fw.dual_level():
        return tuple(fw.unpack_dual(c.apply(fw.make_dual(x, x))))


@program
def dual_numbers_of_types(t):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        d = fw.make_dual(data(t, 3), data(t, 3, seed=1))
        z = fw.make_dual(data(t, 3, dtype="complex128"), data(t, 3, seed=1, dtype="complex128"))
        return [
            tuple(fw.unpack_dual(d.float())),
            fw.unpack_dual((d > 0)).tangent,
            fw.unpack_dual(d.long()).tangent,
            tuple(fw.unpack_dual(z.abs())),
            tuple(fw.unpack_dual(z.conj().resolve_conj())),
            tuple(fw.unpack_dual(z.real)),
            tuple(fw.unpack_dual(d * z)),
            d[0].item() == data(t, 3)[0].item(),
        ]


@program
def dual_level_twice(t):
    fw = t.autograd.forward_ad
    with fw.dual_level(), fw.dual_level():
        pass


@program
def dual_outside(t):
    return t.autograd.forward_ad.make_dual(data(t, 3), data(t, 3))


@program
def dual_unpack_outside(t):
    return tuple(t.autograd.forward_ad.unpack_dual(data(t, 3)))


@program
def dual_exit_outside(t):
    return t.autograd.forward_ad.exit_dual_level()


@program
def dual_of_integers(t):
    with t.autograd.forward_ad.dual_level():
        return t.autograd.forward_ad.make_dual(t.arange(3), data(t, 3))


@program
def dual_of_integer_tangent(t):
    with t.autograd.forward_ad.dual_level():
        return t.autograd.forward_ad.make_dual(data(t, 3), t.arange(3))


@program
def dual_of_number(t):
    with t.autograd.forward_ad.dual_level():
        return t.autograd.forward_ad.make_dual(data(t, 3), 2.0)


@program
def dual_of_other_shape(t):
    with t.autograd.forward_ad.dual_level():
        return t.autograd.forward_ad.make_dual(data(t, 3), data(t, 4))


@program
def dual_of_other_dtype(t):
    with t.autograd.forward_ad.dual_level():
        return t.autograd.forward_ad.make_dual(data(t, 3), data(t, 3, dtype="float32"))


@program
def dual_of_dual(t):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        d = fw.make_dual(data(t, 3), data(t, 3))
        return tuple(fw.unpack_dual(fw.make_dual(d, data(t, 3, seed=1))))


@program
def dual_enter_exit(t):
    fw = t.autograd.forward_ad
    level = fw.enter_dual_level()
    d = fw.make_dual(data(t, 3), data(t, 3), level=level)
    tangent = fw.unpack_dual(d * 2, level=level).tangent
    fw.exit_dual_level(level=level)
    return tangent, fw.unpack_dual(d * 2).tangent


@program
def dual_with_func(t):
    fw = t.autograd.forward_ad
    f = t.func
    x, v = data(t, 3), data(t, 3, seed=1)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        g = f.grad(lambda x: (x**3).sum())(d)
        m = f.vmap(lambda x: x**2)(d)
        return tuple(fw.unpack_dual(g)), tuple(fw.unpack_dual(m))


@program
def dual_raises_inside(t):
    fw = t.autograd.forward_ad
    try:
        with fw.dual_level():
            raise KeyError("stop")
    except KeyError:
        pass
    with fw.dual_level():
        return fw.unpack_dual(fw.make_dual(data(t, 3), data(t, 3)) * 2).tangent


# ---- programs after the tutorials ---------------------------------------------------------------


@program
def per_sample_gradients(t):
    f = t.func

    class Net(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = t.nn.Conv2d(1, 4, 3, 1)
            self.conv2 = t.nn.Conv2d(4, 6, 3, 1)
            self.fc1 = t.nn.Linear(24, 10)
            self.fc2 = t.nn.Linear(10, 5)

        def forward(self, x):
            x = t.nn.functional.relu(self.conv1(x))
            x = t.nn.functional.relu(self.conv2(x))
            x = t.nn.functional.max_pool2d(x, 2)
            x = t.flatten(x, 1)
            x = t.nn.functional.relu(self.fc1(x))
            return t.nn.functional.log_softmax(self.fc2(x), dim=1)

    net = Net().double()
    params = {
        k: data(t, *v.shape, seed=i) * 0.3 for i, (k, v) in enumerate(net.named_parameters())
    }
    buffers = {k: v.detach() for k, v in net.named_buffers()}
    images, targets = data(t, 6, 1, 8, 8), t.tensor([0, 1, 2, 3, 4, 0])

    def loss(params, buffers, sample, target):
        out = f.functional_call(net, (params, buffers), (sample.unsqueeze(0),))
        return t.nn.functional.nll_loss(out, target.unsqueeze(0))

    per_sample = f.vmap(f.grad(loss), in_dims=(None, None, 0, 0))
    chunked = f.vmap(f.grad(loss), in_dims=(None, None, 0, 0), chunk_size=4)
    return per_sample(params, buffers, images, targets), chunked(params, buffers, images, targets)


@program
def jacobians_of_predict(t):
    f = t.func

    def predict(weight, bias, x):
        return t.nn.functional.linear(x, weight, bias).tanh()

    weight, bias, x = data(t, 4, 4), data(t, 4, seed=1), data(t, 4, seed=2)
    batch = data(t, 6, 4, seed=3)
    v = f.vmap(f.vjp(lambda x: predict(weight, bias, x), x)[1])(t.eye(4).double())[0]
    return [
        v,
        f.jacrev(predict, argnums=2)(weight, bias, x),
        f.jacfwd(predict, argnums=0)(weight, bias, x),
        f.jacrev(predict, argnums=(0, 1))(weight, bias, x),
        f.hessian(predict, argnums=2)(weight, bias, x),
        f.jacfwd(f.jacfwd(predict, argnums=2), argnums=2)(weight, bias, x),
        f.jacrev(f.jacrev(predict, argnums=2), argnums=2)(weight, bias, x),
        f.vmap(f.jacrev(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch),
        f.vmap(f.hessian(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch),
        f.jacrev(
            lambda w, b, x: predict(w, b, x).sum(0), argnums=2
        )(weight, bias, batch).movedim(1, 0),
    ]


@program
def neural_tangent_kernel(t):
    f = t.func
    net = t.nn.Sequential(
        t.nn.Conv2d(2, 3, 3), t.nn.ReLU(), t.nn.Flatten(), t.nn.Linear(12, 3)
    ).double()
    params = {
        k: data(t, *v.shape, seed=i) * 0.4 for i, (k, v) in enumerate(net.named_parameters())
    }
    one, two = data(t, 4, 2, 4, 4), data(t, 3, 2, 4, 4, seed=5)

    def single(params, x):
        return f.functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)

    def by_jacobians(a, b):
        j1 = f.vmap(f.jacrev(single), (None, 0))(params, a)
        j2 = f.vmap(f.jacrev(single), (None, 0))(params, b)
        return sum(
            t.einsum("Naf,Mbf->NMab", j1[k].flatten(2), j2[k].flatten(2)) for k in params
        )

    def by_vjps(func, params, a, b):
        def one_pair(x1, x2):
            def func1(p):
                return func(p, x1)

            def func2(p):
                return func(p, x2)

            out, pull = f.vjp(func1, params)

            def slice_of(vec):
                _, pushed = f.jvp(func2, (params,), pull(vec))
                return pushed

            basis = t.eye(out.numel(), dtype=out.dtype).view(out.numel(), -1)
            return f.vmap(slice_of)(basis)

        return f.vmap(f.vmap(one_pair, (None, 0)), (0, None))(a, b)

    return by_jacobians(one, two), by_vjps(single, params, one, two)


@program
def maml(t):
    f = t.func

    def net(params, x):
        x = t.nn.functional.linear(x, params[0], params[1]).relu()
        x = t.nn.functional.linear(x, params[2], params[3]).relu()
        return t.nn.functional.linear(x, params[4], params[5])

    params = [
        data(t, *s, seed=i) * 0.5
        for i, s in enumerate([(8, 1), (8,), (8, 8), (8,), (1, 8), (1,)])
    ]

    def task_loss(params, x1, y1, x2, y2):
        def inner(params):
            return ((net(params, x1) - y1) ** 2).mean()

        grads = f.grad(inner)(params)
        new = [p - g * 0.1 for p, g in zip(params, grads)]
        return ((net(new, x2) - y2) ** 2).mean()

    tasks = [data(t, 3, 5, 1, seed=10 + i) for i in range(4)]

    def total(params):
        return f.vmap(lambda *task: task_loss(params, *task))(*tasks).mean()

    leaves = [p.clone().requires_grad_() for p in params]
    loss = total(leaves)
    loss.backward()
    return f.grad_and_value(total)(params), loss, [p.grad for p in leaves]


@program
def training_with_grad(t):
    f = t.func
    net = module(t)
    params = {k: v.detach() for k, v in net.named_parameters()}
    x, y = data(t, 8, 3), data(t, 8, 2, seed=4)

    def loss(params, x, y):
        return t.nn.functional.mse_loss(f.functional_call(net, params, (x,)), y)

    losses = []
    for _ in range(5):
        grads, value = f.grad_and_value(loss)(params, x, y)
        params = {k: params[k] - 0.1 * grads[k] for k in params}
        losses.append(value)
    return losses, params


@program
def ensemble_training(t):
    f = t.func
    params, _ = f.stack_module_state([module(t, seed=i) for i in range(3)])
    params = {k: v.detach() for k, v in params.items()}
    base = module(t)
    x, y = data(t, 8, 3), data(t, 8, seed=4).gt(0).long()

    def step(params, x, y):
        def loss(p):
            return t.nn.functional.cross_entropy(f.functional_call(base, p, (x,)), y)

        grads, value = f.grad_and_value(loss)(params)
        return {k: params[k] - 0.1 * grads[k] for k in params}, value

    for _ in range(3):
        params, value = f.vmap(step, in_dims=(0, None, None))(params, x, y)
    return params, value


@program
def laplacian(t):
    f = t.func

    def net(x):
        return (x.sin() * x.roll(1)).sum() ** 2

    x = data(t, 5, 4)
    return f.vmap(lambda x: t.einsum("ii->", f.hessian(net)(x)))(x), f.vmap(
        lambda x: t.stack([f.jvp(f.grad(net), (x,), (e,))[1] @ e for e in t.eye(4).double()]).sum()
    )(x)


@program
def batched_autograd(t):
    x = data(t, 3).requires_grad_()
    y = x.sin() * x.sum()
    rows = t.autograd.grad(y, x, t.eye(3).double(), is_grads_batched=True, retain_graph=True)
    second = t.autograd.grad(
        y, x, t.eye(3).double(), is_grads_batched=True, create_graph=True
    )[0]
    return rows, second, t.autograd.functional.jacobian(t.sin, x, vectorize=True)


@program
def attention_per_sample(t):
    f = t.func
    q = data(t, 4, 2, 5, 3)

    def attend(q):
        return t.nn.functional.scaled_dot_product_attention(q, q * 2, q + 1).sum(-1)

    return f.vmap(attend)(q), f.vmap(f.grad(lambda q: attend(q).pow(2).sum()))(q)


@program
def functionalized(t):
    def func(x):
        y = x.clone()
        y.add_(1)
        return y

    x = data(t, 3)
    return [
        t.func.functionalize(func)(x),
        t.func.functionalize(func, remove="mutations_and_views")(x),
        t.func.grad(t.func.functionalize(lambda x: func(x).sum()))(x),
    ]


@program
def functionalize_wrong(t):
    return t.func.functionalize(t.sin, remove="views")(data(t, 3))


@pytest.mark.usefixtures("left_alone")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_equal(name: str) -> None:
    same(outcome(torch, PROGRAMS[name]), outcome(pytorch, PROGRAMS[name]))
