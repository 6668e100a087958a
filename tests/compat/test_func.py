"""torch.func.grad, vjp, jvp and linearize agree with PyTorch's: results, forms, errors."""

import pytest
from compat.programs import Programs
from compat.transforms import data, outcome, pytorch, same_outcome

import rushlight as torch

pytestmark = pytest.mark.filterwarnings("ignore")

program = PROGRAMS = Programs()


# grad


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
        y[1:].add_(x[:2])
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
        f.vmap(f.grad(lambda z: z.abs() ** 2))(z),
        f.jacrev(lambda x: t.view_as_real(t.complex(x, x**2) * z[0]))(data(t, 2)),
        f.jacfwd(lambda x: t.view_as_real(t.complex(x, x**2) * z[0]))(data(t, 2)),
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


# vjp


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
    _, pull = f.vjp(lambda x: x.sin() * x.sum(), x)
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
    return t.func.vjp(lambda: t.ones(3))[0]


@program
def vjp_output_no_tensor(t):
    return t.func.vjp(lambda x: (x, 3), data(t, 3))


@program
def vjp_integer_output(t):
    return t.func.vjp(lambda x: (x * 2, (x > 0).long()), data(t, 3))[0]


@program
def vjp_number(t):
    return t.func.vjp(lambda x: x * 2, 3.0)[0]


@program
def vjp_integer(t):
    return t.func.vjp(lambda x: x * 2, t.arange(3))[0]


# Forward mode


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


# What PyTorch refuses and Rushlight does.
ALSO_POSSIBLE = {
    "backward_inside_grad": "the tape inside is one of its own",
    "requires_grad_inside": "nothing is lost by it",
}


@pytest.mark.parametrize("name", ALSO_POSSIBLE)
def test_more_is_possible(name: str) -> None:
    assert outcome(pytorch, PROGRAMS[name])[:1] == ("raises",)
    assert outcome(torch, PROGRAMS[name])[:1] != ("raises",)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ALSO_POSSIBLE])
def test_programs_equal(name: str) -> None:
    same_outcome(PROGRAMS[name])
