"""torch.func.vmap and modules as functions agree with PyTorch's."""

from typing import Any

import pytest
from compat.programs import Programs
from compat.transforms import data, module, same_outcome

pytestmark = pytest.mark.filterwarnings("ignore")

program = PROGRAMS = Programs()


# vmap


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
        v(lambda x, y=0: x.sum(1) * t.as_tensor(y).sum(), in_dims=0)(x, y=y[:2]),
        v(lambda x: x.shape[0] * x)(x),
        v(lambda x: x.t())(x),
        v(lambda x: t.stack([x, x], -1))(x),
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
def vmap_in_dims_list(t):
    return t.func.vmap(t.add, in_dims=[0, 0])(data(t, 3), data(t, 3))


@program
def vmap_out_dims_forms(t):
    v, x = t.func.vmap, data(t, 3)
    return [
        v(lambda x: (x, None, "s", 2), out_dims=(0, None, None, None))(x),
        v(lambda x: 2.0, out_dims=None)(x),
        v(lambda x: [x, x], out_dims=[0, 0])(x),
        v(lambda x: x, out_dims=(0,))(x),
        v(lambda x: (x,), out_dims=(0,))(x),
    ]


@program
def vmap_out_dims_list_of_tuple(t):
    return t.func.vmap(lambda x: (x, x), out_dims=[0, 0])(data(t, 3))


@program
def vmap_out_dims_tuple_of_list(t):
    return t.func.vmap(lambda x: [x, x], out_dims=(0, 0))(data(t, 3))


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
    drop = t.func.vmap(lambda x: t.nn.functional.dropout(x + 1, 0.5), randomness="different")(
        t.zeros(3, 100)
    )
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


# Modules


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
def functional_call_attributes(t):
    class Shifted(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = data(t, 3)
            self.number = 3

        def forward(self, x):
            return x + self.shift + getattr(self, "more", 0)

    net, x = Shifted(), data(t, 3, seed=1)
    made = [
        t.func.functional_call(net, {"shift": x}, x),
        t.func.functional_call(net, {"more": x}, x),
        net(x),
        hasattr(net, "more"),
    ]
    try:
        t.func.functional_call(net, {"number": x}, x)
    except TypeError:
        made.append("TypeError")
    return made


@program
def functional_call_number(t):
    return t.func.functional_call(module(t), {"0.weight": 3.0}, data(t, 1, 3))


@program
def functional_call_list_of_numbers(t):
    return t.func.functional_call(module(t), [3], data(t, 1, 3))


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_equal(name: str) -> None:
    same_outcome(PROGRAMS[name])
