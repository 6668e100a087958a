"""Random programs of views, in-place writes and arithmetic behave as in PyTorch.

A program works on a pool of tensors; each step takes some by number and may add one. Values, flags,
versions, gradients and the classes of exceptions are compared.
"""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as torch

pytorch = pytest.importorskip("torch")

VIEWS = {
    "first": lambda T, x: x[0],
    "tail": lambda T, x: x[1:],
    "every other": lambda T, x: x[..., ::2],
    "transposed": lambda T, x: x.transpose(0, -1),
    "flat": lambda T, x: x.view(-1),
    "reshaped": lambda T, x: x.reshape(-1),
    "unsqueezed": lambda T, x: x.unsqueeze(0),
    "squeezed": lambda T, x: x.squeeze(),
    "diagonal": lambda T, x: x.diagonal(),
    "narrowed": lambda T, x: x.narrow(-1, 1, 1),
    "expanded": lambda T, x: x.expand(2, *x.shape),
    "strided": lambda T, x: x.as_strided((2,), (1,), 1),
    "chunk": lambda T, x: x.chunk(2)[0],
    "unbound": lambda T, x: x.unbind()[-1],
    "split": lambda T, x: x.split(1, -1)[0],
    "detached": lambda T, x: x.detach(),
    "data": lambda T, x: x.data,
    "the same": lambda T, x: x.view_as(x),
    "permuted": lambda T, x: x.movedim(0, -1),
    "unfolded": lambda T, x: x.unfold(0, 1, 1),
}
NEW = {
    "double": lambda T, x, y: x * 2,
    "product": lambda T, x, y: x * y,
    "sum": lambda T, x, y: x + y,
    "square": lambda T, x, y: x * x,
    "exp": lambda T, x, y: (x * 0.1).exp(),
    "sigmoid": lambda T, x, y: x.sigmoid(),
    "tanh": lambda T, x, y: x.tanh(),
    "clone": lambda T, x, y: x.clone(),
    "total": lambda T, x, y: x.sum(),
    "rows": lambda T, x, y: x.sum(0),
    "joined": lambda T, x, y: T.cat([x.reshape(-1), y.reshape(-1)]),
    "contiguous": lambda T, x, y: x.contiguous(),
    "picked": lambda T, x, y: x[T.tensor([0])],
    "chosen": lambda T, x, y: T.where(x > 1, x, y),
}
WRITES = {
    "add_": lambda T, x, y: x.add_(y),
    "mul_": lambda T, x, y: x.mul_(y),
    "mul_ number": lambda T, x, y: x.mul_(0.5),
    "add_ number": lambda T, x, y: x.add_(1),
    "sigmoid_": lambda T, x, y: x.sigmoid_(),
    "tanh_": lambda T, x, y: x.tanh_(),
    "zero_": lambda T, x, y: x.zero_(),
    "fill_": lambda T, x, y: x.fill_(2),
    "copy_": lambda T, x, y: x.copy_(y),
    "set item": lambda T, x, y: x.__setitem__(0, y),
    "set number": lambda T, x, y: x.__setitem__((Ellipsis, 0), 3),
    "set masked": lambda T, x, y: x.__setitem__(x > 2, 1.0),
    "set indexed": lambda T, x, y: x.__setitem__(T.tensor([0]), y),
    "masked_fill_": lambda T, x, y: x.masked_fill_(x > 2, 0.5),
    "t_": lambda T, x, y: x.transpose_(0, -1),
    "unsqueeze_": lambda T, x, y: x.unsqueeze_(0),
    "detach_": lambda T, x, y: x.detach_(),
    "requires_grad_": lambda T, x, y: x.requires_grad_(),
    "stops": lambda T, x, y: x.requires_grad_(False),
    "retain_grad": lambda T, x, y: x.retain_grad(),
    "hook": lambda T, x, y: (x * 1).register_hook(lambda g: g * 2),
    "backward": lambda T, x, y: x.sum().backward(retain_graph=True),
    "grad": lambda T, x, y: T.autograd.grad(x.sum(), y, retain_graph=True, allow_unused=True)[0],
    "grad of grad": lambda T, x, y: T.autograd.grad(x.sum(), y, create_graph=True)[0],
}
STEPS = {**VIEWS, **NEW, **WRITES}
LIMIT = 1e6  # beyond, rounding differs

step = st.tuples(
    st.one_of(*(st.sampled_from(sorted(names)) for names in (VIEWS, NEW, WRITES, WRITES))),
    st.integers(0, 99),
    st.integers(0, 99),
    st.sampled_from(["grad", "grad", "grad", "grad", "no_grad"]),
)


def shares_memory(x, y):
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


def has_overlap(x):
    return any(stride == 0 and size > 1 for size, stride in zip(x.shape, x.stride(), strict=True))


def attempt(read):
    try:
        return read()
    except Exception as error:
        return type(error).__name__


def numbers(tensor):
    return None if tensor is None else [tuple(tensor.shape), *tensor.detach().reshape(-1).tolist()]


def state_of(tensor):
    readers = [
        lambda: tensor.requires_grad,
        lambda: tensor.is_leaf,
        lambda: tensor.output_nr,
        lambda: tensor.grad_fn is None,
    ]
    return [attempt(read) for read in readers]


def start(library):
    a = library.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    b = library.tensor([0.5, 1.5, 2.5], requires_grad=True)
    return [a, b, library.tensor([[1.0, 3.0], [2.0, 4.0]]), a * 1, b * 1]


class Machine:
    """One library working through a program."""

    def __init__(self, library):
        self.library, self.pool = library, start(library)

    def takes(self, name, i, j):
        """Leaves out what PyTorch leaves undefined or refuses and we compute."""
        x, y = self.pool[i % len(self.pool)], self.pool[j % len(self.pool)]
        if not all(isinstance(attempt(lambda t=t: t.is_leaf), bool) for t in (x, y)):
            return name in (
                "double",
                "product",
            )  # views whose base was written although it must not
        if name not in WRITES:
            return True
        if (x is not y and shares_memory(x, y)) or has_overlap(x):
            return False
        if (name == "set indexed" and x is y) or (name == "stops" and x._is_view()):
            return False
        if name in ("t_", "unsqueeze_"):  # they make a gradient that is kept another shape
            return not ((x.is_leaf and x.requires_grad) or x.retains_grad)
        return not name.startswith("set ") or x.dim() > 0

    def run(self, name, i, j, mode):
        x, y = self.pool[i % len(self.pool)], self.pool[j % len(self.pool)]
        arguments = (x,) if name in VIEWS else (x, y)
        try:
            with self.library.set_grad_enabled(mode == "grad"):
                made = STEPS[name](self.library, *arguments)
        except Exception as error:
            return type(error).__name__
        if name in NEW or name in VIEWS or name.startswith("grad"):
            if made is None:
                return "None"
            if made.numel() <= 24 and len(self.pool) < 12:
                self.pool.append(made)
        return "done"


def close(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        same = a == b or (a != a and b != b)
        return same or abs(a - b) <= 1e-4 * max(1.0, abs(a), abs(b)) or max(abs(a), abs(b)) > LIMIT
    return a == b


def check_same(ours, theirs, trail):
    for k, (mine, other) in enumerate(zip(ours.pool, theirs.pool, strict=True)):
        assert close(numbers(mine), numbers(other)), (trail, k, mine, other)
        assert state_of(mine) == state_of(other), (trail, k, state_of(mine), state_of(other))
        if mine is ours.pool[0] or mine is ours.pool[1]:
            assert close(numbers(mine.grad), numbers(other.grad)), (trail, k, mine.grad, other.grad)


@settings(max_examples=800, deadline=None)
@given(st.lists(step, min_size=1, max_size=14))
def test_random_programs_behave_the_same(program) -> None:
    ours, theirs = Machine(torch), Machine(pytorch)
    trail = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, i, j, mode in program:
            size = len(theirs.pool)
            if not theirs.takes(name, i, j):
                continue
            trail.append(f"{name}({i % size}, {j % size}) {mode}")
            outcomes = ours.run(name, i, j, mode), theirs.run(name, i, j, mode)
            assert outcomes[0] == outcomes[1], (trail, outcomes)
            check_same(ours, theirs, trail)
