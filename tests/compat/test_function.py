"""Programs with a Function of their own end as under PyTorch, their mistakes included."""

import warnings

import pytest
from compat.programs import Programs

import rushlight

pytorch = pytest.importorskip("torch")


def function(torch, forward, backward=None, **more):
    methods = {"forward": forward, "backward": backward, **more}
    statics = {name: staticmethod(method) for name, method in methods.items() if method}
    return type(torch.autograd.Function)("Custom", (torch.autograd.Function,), statics)


def leaf(torch):
    return torch.tensor([1.0, -2.0, 3.0], requires_grad=True)


def tells(torch, y):
    """What can be said about a result in words and numbers."""
    if not isinstance(y, torch.Tensor):
        return y
    node = y.grad_fn
    base = y._base is not None
    return y.tolist(), y.requires_grad, node and node.name(), y.output_nr, base, y._version > 0


# Each program gets a library and returns words and numbers.
program = PROGRAMS = Programs()


def marking(mark, result):
    def run(torch):
        def forward(ctx, x):
            y = result(x)
            mark(ctx, x, y)
            return y

        x = leaf(torch)
        inner = x * 1
        y = function(torch, forward, lambda ctx, *g: g[0] * 5).apply(inner)
        said = tells(torch, y), tells(torch, inner)
        if y.requires_grad:
            y.sum().backward()
        return said, None if x.grad is None else x.grad.tolist()

    return run


RESULTS = {
    "new": lambda x: x * 2,
    "itself": lambda x: x,
    "view": lambda x: x.view(3, 1),
    "written": lambda x: x.mul_(2),
    "integers": lambda x: x.long(),
}
MARKS = {
    "nothing": lambda ctx, x, y: None,
    "dirty_input": lambda ctx, x, y: ctx.mark_dirty(x),
    "dirty_result": lambda ctx, x, y: ctx.mark_dirty(y),
    "no_gradient": lambda ctx, x, y: ctx.mark_non_differentiable(y),
    "saved_input": lambda ctx, x, y: ctx.save_for_backward(x),
    "saved_result": lambda ctx, x, y: ctx.save_for_backward(y),
    "saved_number": lambda ctx, x, y: ctx.save_for_backward(3),
}
for result, make in RESULTS.items():
    for mark, do in MARKS.items():
        PROGRAMS[f"{mark}_of_{result}"] = marking(do, make)


@program
def needs_input_grad(torch):
    seen = []

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return args[0] * 1

    Custom = function(torch, forward)
    x = leaf(torch)
    Custom.apply(x, 3, x.detach(), None, x * 2)
    with torch.no_grad():
        Custom.apply(x)
    Custom.apply(x.detach())
    return seen


@program
def gradients_of_several_results(torch):
    seen = []

    def backward(ctx, *grads):
        seen.append([g if g is None else (g.tolist(), str(g.dtype)[-5:]) for g in grads])
        return grads[0] + grads[3]

    def forward(ctx, x):
        return x * 2, "text", None, x * 3, x.int()

    x = leaf(torch)
    y = function(torch, forward, backward).apply(x)
    y[3].sum().backward()
    return seen, x.grad.tolist()


@program
def one_result_twice(torch):
    def forward(ctx, x):
        y = x * 2
        return y, y

    x = leaf(torch)
    a, b = function(torch, forward, lambda ctx, g, h: g + 10 * h).apply(x)
    (a + 2 * b).sum().backward()
    return a is b, a.output_nr, x.grad.tolist()


@program
def the_same_input_twice(torch):
    x = leaf(torch)
    y = function(torch, lambda ctx, a, b: a * b, lambda ctx, g: (g, 2 * g)).apply(x, x)
    y.sum().backward()
    return x.grad.tolist(), len(y.grad_fn.next_functions)


@program
def a_chain_that_passes_nothing(torch):
    seen = []
    Stop = function(torch, lambda ctx, x: x * 1, lambda ctx, g: None)
    Note = function(torch, lambda ctx, x: x * 1, lambda ctx, g: seen.append(g.tolist()) or g)
    x = leaf(torch)
    Stop.apply(Note.apply(x)).sum().backward()
    return seen, x.grad.tolist()


@program
def setup_context(torch):
    notes = []

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:1], output)
        notes.append((inputs[1:], output.tolist()))

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x * y, None

    Custom = function(torch, lambda x, k=3: x * k, backward, setup_context=setup)
    x = leaf(torch)
    for y in (Custom.apply(x), Custom.apply(x, 2), Custom.apply(x, k=5)):
        y.sum().backward()
    return notes, x.grad.tolist()


@program
def second_gradients(torch):
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y

    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    x = leaf(torch)
    y = function(torch, forward, backward).apply(x)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), x)
    return [round(v, 3) for v in second.tolist()]


@program
def once_differentiable(torch):
    once = torch.autograd.function.once_differentiable
    Custom = function(torch, lambda ctx, x: x * 2, once(lambda ctx, g: g * 2))
    x = leaf(torch)
    (first,) = torch.autograd.grad((Custom.apply(x) * x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        first.sum().backward()
    return first.tolist(), first.requires_grad


@program
def freed_and_gone(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    y = function(torch, forward, lambda ctx, g: g).apply(leaf(torch)).sum()
    node = y.grad_fn.next_functions[0][0]
    before = len(node.saved_tensors)
    y.backward()
    del y
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = node.saved_tensors
    return before, node.name(), len(node.next_functions)


def returning(value):
    def run(torch):
        x = leaf(torch)
        Custom = function(torch, lambda ctx, x, k: x * k, lambda ctx, g: value(torch, g))
        Custom.apply(x, 3).sum().backward()
        return None if x.grad is None else x.grad.tolist()

    return run


GRADIENTS = {
    "one_for_two": lambda torch, g: g,
    "three_for_two": lambda torch, g: (g, None, g),
    "nones_in_excess": lambda torch, g: (g, None, None, None),
    "a_list": lambda torch, g: [g, None],
    "text": lambda torch, g: ("text", None),
    "for_a_number": lambda torch, g: (g, g),
    "broadcast": lambda torch, g: (g.expand(2, 3), None),
    "too_long": lambda torch, g: (torch.ones(4), None),
    "a_scalar": lambda torch, g: (torch.ones(()), None),
    "integers": lambda torch, g: (torch.ones(3, dtype=torch.int32), None),
    "complex": lambda torch, g: (torch.ones(3, dtype=torch.complex64), None),
    "doubles": lambda torch, g: (g.double(), None),
    "elsewhere": lambda torch, g: (g.to("meta"), None),
    "none": lambda torch, g: None,
    "nones": lambda torch, g: (None, None),
}
for name, value in GRADIENTS.items():
    PROGRAMS["returns_" + name] = returning(value)


def outcome(torch, run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            said = run(torch)
        except Exception as error:
            said = type(error).__name__
    return said, [w.category.__name__ for w in caught]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_as_under_pytorch(name) -> None:
    assert outcome(rushlight, PROGRAMS[name]) == outcome(pytorch, PROGRAMS[name])
