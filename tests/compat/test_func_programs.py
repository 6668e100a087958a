"""Jacobians, nested transforms and whole programs of torch.func agree with PyTorch's."""

from typing import Any

import pytest
from compat.programs import Programs
from compat.transforms import data, module, same_outcome

pytestmark = pytest.mark.filterwarnings("ignore")

program = PROGRAMS = Programs()


# Jacobians


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
def jacrev_number(t):
    return t.func.jacrev(t.sin)(3.0)


@program
def jacfwd_number(t):
    return t.func.jacfwd(t.sin)(3.0)


@program
def jacrev_integer(t):
    return t.func.jacrev(lambda x: x * 2)(t.arange(3))


@program
def jacfwd_integer(t):
    return t.func.jacfwd(lambda x: x * 2)(t.arange(3))


@program
def jacrev_integer_output(t):
    return t.func.jacrev(lambda x: (x > 0).long())(data(t, 3))


@program
def jacfwd_integer_output(t):
    return t.func.jacfwd(lambda x: (x > 0).long())(data(t, 3))


@program
def grad_integer_output(t):
    return t.func.grad(lambda x: (x > 0).sum())(data(t, 3))


@program
def jacrev_complex(t):
    return t.func.jacrev(lambda z: z.abs())(data(t, 3, dtype="complex128"))


@program
def jacfwd_complex(t):
    return t.func.jacfwd(lambda z: z.abs())(data(t, 3, dtype="complex128"))


@program
def jacrev_complex_output(t):
    return t.func.jacrev(lambda x: x * 1j)(data(t, 3))


@program
def jacfwd_complex_output(t):
    return t.func.jacfwd(lambda x: x * 1j)(data(t, 3))


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


# Programs after the tutorials


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
    params = {k: data(t, *v.shape, seed=i) * 0.3 for i, (k, v) in enumerate(net.named_parameters())}
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
        f.jacrev(lambda w, b, x: predict(w, b, x).sum(0), argnums=2)(weight, bias, batch).movedim(
            1, 0
        ),
    ]


@program
def neural_tangent_kernel(t):
    f = t.func
    net = t.nn.Sequential(
        t.nn.Conv2d(2, 3, 3), t.nn.ReLU(), t.nn.Flatten(), t.nn.Linear(12, 3)
    ).double()
    params = {k: data(t, *v.shape, seed=i) * 0.4 for i, (k, v) in enumerate(net.named_parameters())}
    one, two = data(t, 4, 2, 4, 4), data(t, 3, 2, 4, 4, seed=5)

    def single(params, x):
        return f.functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)

    def by_jacobians(a, b):
        j1 = f.vmap(f.jacrev(single), (None, 0))(params, a)
        j2 = f.vmap(f.jacrev(single), (None, 0))(params, b)
        return sum(t.einsum("Naf,Mbf->NMab", j1[k].flatten(2), j2[k].flatten(2)) for k in params)

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
        data(t, *s, seed=i) * 0.5 for i, s in enumerate([(8, 1), (8,), (8, 8), (8,), (1, 8), (1,)])
    ]

    def task_loss(params, x1, y1, x2, y2):
        def inner(params):
            return ((net(params, x1) - y1) ** 2).mean()

        grads = f.grad(inner)(params)
        new = [p - g * 0.1 for p, g in zip(params, grads, strict=True)]
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

    values = []
    for _ in range(3):
        params, value = f.vmap(step, in_dims=(0, None, None))(params, x, y)
        values.append(value)
    return params, values


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
    second = t.autograd.grad(y, x, t.eye(3).double(), is_grads_batched=True, create_graph=True)[0]
    return rows, second, t.autograd.functional.jacobian(t.sin, x, vectorize=True)


@program
def attention_per_sample(t):
    f = t.func
    q = data(t, 4, 2, 5, 3)

    def attend(q):
        return ((q @ (q * 2).mT).softmax(-1) @ (q + 1)).sum(-1)

    return f.vmap(attend)(q), f.vmap(f.grad(lambda q: attend(q).pow(2).sum()))(q)


@program
def rearranged(t):
    r = t.func.rearrange
    x = data(t, 2, 3, 4)
    return [
        r(x, "a b c -> c a b"),
        r(x, "a b c -> (a b) c"),
        r(x, "a b c -> (c a) b"),
        r(x, "a (b1 b2) c -> a b2 (b1 c)", b1=3),
        r(x, "(a1 a2) b (c1 c2) -> (a1 c2) b (a2 c1)", a1=2, c1=2),
        r(x, "a ... -> ... a"),
        r(x, "a ... -> a (...)"),
        r(x, "... -> (...)"),
        r(x, "... c -> c ..."),
        r([x, x], "n a b c -> a n b c"),
        r((x[0], x[1]), "n b c -> b (n c)"),
        r(data(t, 2, 1, 4), "a 1 b -> b a"),
        r(data(t, 2, 4), "a b -> a 1 b 1"),
        t.func.vmap(lambda x: r(x, "b c -> (c b)"))(x),
        t.func.grad(lambda x: r(x, "a b c -> (a c) b")[0].sum())(x),
    ]


@program
def rearranged_wrongly(t):
    caught = []
    for pattern in (
        "a b -> a",
        "a b -> a b c",
        "a b",
        "a b c -> a b c",
        "a a -> a",
        "(a b -> a b",
        "a b) -> a b",
        "a -> b -> a",
        "a (b (c)) -> a b c",
    ):
        try:
            t.func.rearrange(data(t, 2, 4), pattern)
        except ValueError:
            caught.append(pattern)
    try:
        t.func.rearrange(data(t, 2, 4), "a b -> b a", q=3)
    except ValueError:
        caught.append("q")
    return caught


@program
def unwrapped(t):
    x = data(t, 3, 2)
    seen: list[Any] = [t.func.debug_unwrap(x) is x]

    def look(x):
        seen.append(tuple(t.func.debug_unwrap(x).shape))
        seen.append(tuple(t.func.debug_unwrap(x, recurse=False).shape))
        return x.sum()

    t.func.vmap(look)(x)
    t.func.vmap(t.func.vmap(look))(x)
    return seen


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_equal(name: str) -> None:
    same_outcome(PROGRAMS[name])
