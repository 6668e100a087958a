"""Values and gradients of ops whose definition is PyTorch's own equal PyTorch's."""

import itertools

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")


def arrays(*shapes, complex=False):
    rng = np.random.default_rng(0)
    made = [rng.normal(size=s) for s in shapes]
    return [a + 1j * rng.normal(size=a.shape) for a in made] if complex else made


def run(library, f, inputs):
    """What f returns, and the gradients of a sum that weights every element differently."""
    tensors = [library.tensor(a).requires_grad_() for a in inputs]
    results = f(library, *tensors)
    results = results if isinstance(results, (tuple, list)) else [results]
    total = 0
    for result in results:
        parts = library.view_as_real(result) if result.dtype.is_complex else result
        weights = np.cos(np.arange(parts.numel())).reshape(tuple(parts.shape))
        total = total + (parts * library.tensor(weights)).sum()
    total.backward()
    grads = [np.zeros(t.shape) if t.grad is None else t.grad.numpy() for t in tensors]
    return [r.detach().numpy() for r in results] + grads


def check(f, *inputs):
    ours, theirs = run(torch, f, inputs), run(pytorch, f, inputs)
    for mine, expected in zip(ours, theirs, strict=True):
        assert mine.dtype == expected.dtype
        np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-12)


PRODUCTS = {
    "addmm_": [(3, 2), (3, 4), (4, 2)],
    "addmv_": [(3,), (3, 4), (4,)],
    "addr_": [(3, 4), (3,), (4,)],
    "baddbmm_": [(5, 3, 2), (5, 3, 4), (5, 4, 2)],
    "addbmm_": [(3, 2), (5, 3, 4), (5, 4, 2)],
}


@pytest.mark.parametrize("options", [{}, {"beta": 0.5, "alpha": 2.0}, {"beta": 0}], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_in_place(name, options) -> None:
    def f(library, input, *factors):
        target = input * 1.5
        assert getattr(target, name)(*factors, **options) is target
        return target * target

    check(f, *arrays(*PRODUCTS[name]))


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("dim", [None, 0, (0, 1)])
@pytest.mark.parametrize("correction", [0, 1, 2])
def test_complex_variances(name, dim, correction) -> None:
    def f(library, x):
        return getattr(library, name)(x, dim=dim, correction=correction, keepdim=dim == 0)

    check(f, *arrays((4, 3), complex=True))


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("unbiased", [False, True])
def test_complex_variances_by_the_old_argument(name, unbiased) -> None:
    check(lambda library, x: getattr(x, name)(1, unbiased), *arrays((4, 3), complex=True))


def test_views_of_complex_numbers() -> None:
    check(lambda library, z: library.view_as_real(z) ** 2, *arrays((3, 4), complex=True))
    check(lambda library, z: library.view_as_real(z.t()[1:]).exp(), *arrays((3, 4), complex=True))
    check(lambda library, x: library.view_as_complex(x) ** 2, *arrays((3, 4, 2)))
    check(lambda library, x: library.view_as_complex(x[::2, 1:]).abs(), *arrays((3, 4, 2)))
    check(lambda library, z: z.real * z.imag, *arrays((3, 4), complex=True))
    check(lambda library, x, y: library.complex(x, y) * 1j, *arrays((3, 4), (3, 4)))


def test_writes_into_the_parts_of_complex_numbers() -> None:
    def scale_parts(library, z):
        w = z * (1 + 2j)
        library.view_as_real(w)[1:, :, 0].mul_(3)
        return w * w

    def replace_imaginary(library, z, x):
        w = z * 2
        w.imag.copy_(x * x)
        return w * w, w.real, w.imag

    check(scale_parts, *arrays((3, 4), complex=True))
    check(replace_imaginary, *arrays((3, 4), complex=True), *arrays((3, 4)))


def test_writes_into_complex_numbers_seen_in_real_ones() -> None:
    def turn(library, x):
        y = x * 2
        library.view_as_complex(y[:, 1:])[0].mul_(1j)
        return y * y, y[0], library.view_as_complex(y)

    def through_flat_memory(library, x):
        y = x * 2
        library.view_as_complex(y.view(3, 2, 2)).mul_(2 - 1j)
        return y * y

    check(turn, *arrays((3, 4, 2)))
    check(through_flat_memory, *arrays((12,)))


INPUTS = [0, 1, 1j, -0.5 - 2j, float("nan"), complex(0, float("nan"))]


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize(
    "dtypes", list(itertools.product(["complex64", "float64", "bool"], repeat=2))
)
def test_logic_of_complex_numbers(name, dtypes) -> None:
    def f(library):
        a, b = (
            library.tensor(
                INPUTS if d == "complex64" else [0, 1, 0, 2, 0, 3], dtype=getattr(library, d)
            )
            for d in dtypes
        )
        return getattr(library, name)(a[:, None], b).tolist(), library.logical_not(a).tolist()

    assert f(torch) == f(pytorch)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("tracks", [False, True])
def test_instance_norm(dims, affine, tracks) -> None:
    shape = (2, 3, 4, 2, 3)[: dims + 2]

    def f(library, x, weight, bias):
        layer = getattr(library.nn, f"InstanceNorm{dims}d")
        layer = layer(3, affine=affine, track_running_stats=tracks, momentum=0.3).double()
        if affine:
            with library.no_grad():
                layer.weight.copy_(weight)
                layer.bias.copy_(bias)
        trained = [layer(x), layer(x * x), layer(x[0])]
        running = [layer.running_mean, layer.running_var] if tracks else []
        return [*trained, layer.eval()(x + 1), *running]

    check(f, *arrays(shape, (3,), (3,)))


def test_instance_norm_is_shown_and_saved_as_pytorch_does() -> None:
    options = {"affine": True, "track_running_stats": True}
    ours, theirs = (library.nn.InstanceNorm2d(3, **options) for library in (torch, pytorch))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, float("inf")])
def test_norms_of_many_tensors(order) -> None:
    check(lambda library, *t: library._foreach_norm(list(t), order), *arrays((3, 4), (5,), (2, 2)))


@pytest.mark.parametrize("order", [1, 2, float("inf")])
def test_clipped_gradients(order) -> None:
    def f(library, a, b):
        params = [library.nn.Parameter(t.detach()) for t in (a, b)]
        for param in params:
            param.grad = param.detach() * 5
        total = library.nn.utils.clip_grad_norm_(params, 2.0, order)
        return total, *(p.grad for p in params), a * b.sum()

    check(f, *arrays((3, 4), (5,)))


def test_output_nr() -> None:
    def f(library):
        x = library.tensor([[3.0, 1.0], [2.0, 4.0]]).requires_grad_()
        values, indices = x.max(1)
        parts = x.unbind(0)
        written = x * 2
        written[0].mul_(2)
        found = [x, x * 2, values, indices, *parts, *x.split(1), *library.var_mean(x), written]
        return [t.output_nr for t in (*found, *x.detach().unbind(0))]

    assert f(torch) == f(pytorch)
