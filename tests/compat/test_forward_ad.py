"""Functions inside transforms, and forward mode by dual tensors, agree with PyTorch's."""

from typing import Any

import numpy as np
import pytest
from compat.programs import Programs
from compat.transforms import data, module, outcome, pytorch, same_outcome

import rushlight as torch

pytestmark = pytest.mark.filterwarnings("ignore")

program = PROGRAMS = Programs()


# autograd.Function


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
            f.vmap(f.grad(f.grad(c.apply)))(x),
            f.vmap(f.vmap(f.grad(f.grad(c.apply))))(data(t, 2, 3)),
            f.grad(lambda x, c=c: f.vmap(c.apply)(x).sum())(x),
            f.vmap(f.jacrev(f.jacrev(c.apply)))(data(t, 2, 3)),
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
        f.jvp(f.vmap(c.apply), (x,), (x,)),
        f.jacfwd(f.vmap(c.apply))(x),
        f.vmap(lambda x: f.jvp(c.apply, (x,), (x,)))(x),
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


# forward_ad


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
            tuple(a) for a in (first, second, third, fourth, fifth, sixth, fw.unpack_dual(view))
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
            fw.unpack_dual(d > 0).tangent,
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


# What PyTorch refuses and Rushlight does.
ALSO_POSSIBLE = {
    "function_old_style_in_grad": "the tape is the same one",
}


@pytest.mark.parametrize("name", ALSO_POSSIBLE)
def test_more_is_possible(name: str) -> None:
    assert outcome(pytorch, PROGRAMS[name])[:1] == ("raises",)
    assert outcome(torch, PROGRAMS[name])[:1] != ("raises",)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ALSO_POSSIBLE])
def test_programs_equal(name: str) -> None:
    same_outcome(PROGRAMS[name])
