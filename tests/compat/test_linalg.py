"""Linear algebra gives what PyTorch gives: values, gradients, names of results, errors."""

import numpy as np
import pytest
from compat.libraries import IS_LATER
from compat.test_ops import check, run

import rushlight as torch

pytorch = pytest.importorskip("torch")

rng = np.random.default_rng(5)


def normal(*shape):
    return rng.normal(size=shape)


def complex_normal(*shape):
    return normal(*shape) + 1j * normal(*shape)


def adjoint(x):
    return x.transpose(-2, -1).conj()


def definite(library, x):
    return x @ adjoint(x) + library.eye(x.shape[-1], dtype=x.dtype)


def spaces(U, S, Vh):
    """What of a singular value decomposition is unique."""
    k = S.shape[-1]
    U, Vh = U[..., :k], Vh[..., :k, :]
    return S, U @ adjoint(U), adjoint(Vh) @ Vh, (U * (S**3)[..., None, :]) @ Vh


CASES = {
    "inv": (lambda lib, a: lib.linalg.inv(a), [(2, 4, 4)]),
    "inv_ex": (lambda lib, a: lib.linalg.inv_ex(a).inverse, [(4, 4)]),
    "solve": (lambda lib, a, b: lib.linalg.solve(a, b), [(2, 1, 4, 4), (3, 4, 2)]),
    "solve_vector": (lambda lib, a, b: lib.linalg.solve(a, b), [(2, 4, 4), (2, 4)]),
    "solve_right": (
        lambda lib, a, b: lib.linalg.solve(a * 1, b * 1, left=False),
        [(4, 4), (2, 3, 4)],
    ),
    "solve_ex": (lambda lib, a, b: lib.linalg.solve_ex(a, b).result, [(4, 4), (4,)]),
    "cholesky": (lambda lib, x: lib.linalg.cholesky(definite(lib, x)), [(2, 4, 4)]),
    "cholesky_upper": (
        lambda lib, x: lib.linalg.cholesky(definite(lib, x), upper=True),
        [(3, 3)],
    ),
    "cholesky_solve": (
        lambda lib, b, x: lib.cholesky_solve(b, lib.linalg.cholesky(definite(lib, x))),
        [(2, 4, 2), (2, 4, 4)],
    ),
    "cholesky_inverse": (
        lambda lib, x: lib.cholesky_inverse(lib.linalg.cholesky(definite(lib, x))),
        [(4, 4)],
    ),
    "qr": (lambda lib, a: lib.linalg.qr(a), [(2, 5, 3)]),
    "qr_wide": (lambda lib, a: lib.linalg.qr(a), [(3, 5)]),
    "qr_complete": (lambda lib, a: lib.linalg.qr(a, mode="complete"), [(3, 4)]),
    "qr_R": (lambda lib, a: lib.linalg.qr(a).R, [(3, 3)]),
    "svd": (lambda lib, a: spaces(*lib.linalg.svd(a, full_matrices=False)), [(2, 4, 3)]),
    "svd_full": (lambda lib, a: spaces(*lib.linalg.svd(a))[3], [(3, 5)]),
    "svdvals": (lambda lib, a: lib.linalg.svdvals(a), [(2, 3, 4)]),
    "eigh": (
        lambda lib, a: (lambda L, V: (L, (V * (L**2)[..., None, :]) @ adjoint(V)))(
            *lib.linalg.eigh(a + adjoint(a))
        ),
        [(2, 4, 4)],
    ),
    "eigvalsh": (lambda lib, a: lib.linalg.eigvalsh(a + adjoint(a), "U"), [(4, 4)]),
    "eigvalsh_one_triangle": (lambda lib, a: lib.linalg.eigvalsh(a), [(4, 4)]),
    "eig": (
        lambda lib, a: (lambda L, V: (V * (L**2)[..., None, :]) @ lib.linalg.inv(V))(
            *lib.linalg.eig(a)
        ),
        [(2, 4, 4)],
    ),
    "eigvals": (lambda lib, a: (lib.linalg.eigvals(a) ** 3).sum(-1), [(2, 4, 4)]),
    "lu": (lambda lib, a: lib.linalg.lu(a)[1:], [(2, 4, 4)]),
    "lu_tall": (lambda lib, a: lib.linalg.lu(a)[1:], [(5, 3)]),
    "lu_wide": (lambda lib, a: lib.linalg.lu(a)[1:], [(2, 3, 5)]),
    "lu_factor": (lambda lib, a: lib.linalg.lu_factor(a).LU, [(2, 4, 4)]),
    "lu_solve": (
        lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b),
        [(4, 4), (2, 4, 3)],
    ),
    "lu_solve_adjoint": (
        lambda lib, a, b: (
            lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b, left=False, adjoint=True) * 1
        ),
        [(2, 4, 4), (3, 4)],
    ),
    "solve_triangular": (
        lambda lib, a, b: lib.linalg.solve_triangular(a, b, upper=True),
        [(2, 4, 4), (4, 2)],
    ),
    "solve_triangular_unit": (
        lambda lib, a, b: lib.linalg.solve_triangular(
            a, b, upper=False, left=False, unitriangular=True
        ),
        [(4, 4), (2, 4)],
    ),
    "triangular_solve": (
        lambda lib, b, a: lib.triangular_solve(b, a, upper=False, transpose=True).solution,
        [(4, 2), (4, 4)],
    ),
    "det": (lambda lib, a: lib.linalg.det(a), [(2, 4, 4)]),
    "slogdet": (lambda lib, a: lib.linalg.slogdet(a), [(2, 4, 4)]),
    "logdet": (lambda lib, a: lib.logdet(definite(lib, a)), [(2, 4, 4)]),
    "pinv": (lambda lib, a: lib.linalg.pinv(a), [(2, 4, 3)]),
    "pinv_hermitian": (
        lambda lib, a: lib.linalg.pinv(a + adjoint(a), hermitian=True),
        [(4, 4)],
    ),
    "lstsq": (lambda lib, a, b: lib.linalg.lstsq(a, b).solution, [(2, 5, 3), (2, 5, 2)]),
    "lstsq_gels": (
        lambda lib, a, b: lib.linalg.lstsq(a, b, driver="gels")[:2],
        [(5, 3), (5, 2)],
    ),
    "lstsq_wide": (lambda lib, a, b: lib.linalg.lstsq(a, b)[0], [(3, 5), (3, 1)]),
    "matrix_exp": (lambda lib, a: lib.linalg.matrix_exp(a), [(2, 4, 4)]),
    "matrix_sqrth": (lambda lib, a: lib.linalg.matrix_sqrth(definite(lib, a)), [(2, 4, 4)]),
    "matrix_sqrth_one_triangle": (
        lambda lib, a: lib.linalg.matrix_sqrth(definite(lib, a).tril()),
        [(4, 4)],
    ),
    "polar": (lambda lib, a: lib.linalg.polar(a), [(2, 4, 4)]),
    "polar_tall": (lambda lib, a: lib.linalg.polar(a), [(5, 3)]),
    "polar_U": (lambda lib, a: lib.linalg.polar(a).U, [(2, 4, 2)]),
    "polar_H": (lambda lib, a: lib.linalg.polar(a).H, [(4, 3)]),
    "matrix_power": (lambda lib, a: lib.linalg.matrix_power(a, -3), [(2, 3, 3)]),
    "matrix_norm": (
        lambda lib, a: [lib.linalg.matrix_norm(a, p) for p in (1, -1, 2, -2, "fro", "nuc")],
        [(2, 3, 4)],
    ),
    "norm": (
        lambda lib, a: [
            lib.linalg.norm(a),
            lib.linalg.norm(a, 2, dim=1),
            lib.linalg.norm(a, "nuc", (0, 2)),
        ],
        [(3, 2, 4)],
    ),
    "cond": (
        lambda lib, a: [lib.linalg.cond(a, p) for p in (None, 2, -2)],
        [(2, 4, 4)],
    ),
    "householder_product": (
        lambda lib, a, t: lib.linalg.householder_product(a, t),
        [(2, 5, 3), (2, 3)],
    ),
    "ormqr": (
        lambda lib, a, t, c: lib.ormqr(a, t, c, left=False, transpose=True),
        [(4, 3), (3,), (2, 4)],
    ),
    "multi_dot": (
        lambda lib, *m: lib.linalg.multi_dot(m),
        [(4,), (4, 3), (3, 5), (5, 2)],
    ),
    "tensorsolve": (
        lambda lib, a, b: lib.linalg.tensorsolve(a, b, dims=(0, 2)),
        [(3, 6, 2), (6,)],
    ),
    "tensorinv": (lambda lib, a: lib.linalg.tensorinv(a, ind=1), [(6, 2, 3)]),
    "cross": (lambda lib, a, b: lib.linalg.cross(a, b), [(4, 1, 3), (1, 2, 3)]),
    "vander": (lambda lib, x: lib.linalg.vander(x, N=4), [(2, 3)]),
    "vecdot": (lambda lib, x, y: lib.linalg.vecdot(x * 1, y * 1, dim=0), [(3, 2), (3, 2)]),
    "norm_except_dim": (lambda lib, v: lib.norm_except_dim(v, 2, 1), [(2, 3, 4)]),
}
REAL_ONLY = {"norm_except_dim", "solve_right"}  # NumPy cannot read PyTorch's conjugate views
if not IS_LATER:
    CASES = {n: case for n, case in CASES.items() if not n.startswith(("polar", "matrix_sqrth"))}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [normal, complex_normal])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, make) -> None:
    f, shapes = CASES[name]
    if make is complex_normal and name in REAL_ONLY:
        pytest.skip("real numbers only")
    check(f, *(make(*shape) for shape in shapes))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", CASES)
def test_values_in_single_precision(name, dtype) -> None:
    f, shapes = CASES[name]
    if dtype == "complex64" and name in REAL_ONLY:
        pytest.skip("real numbers only")
    inputs = [
        (complex_normal if dtype == "complex64" else normal)(*s).astype(dtype) for s in shapes
    ]
    ours, theirs = run(torch, f, inputs), run(pytorch, f, inputs)
    for mine, expected in zip(ours, theirs, strict=True):
        assert mine.dtype == expected.dtype
        np.testing.assert_allclose(mine, expected, rtol=2e-2, atol=2e-2 * np.abs(expected).max())


@pytest.mark.parametrize("n", [17, 40, 130])
def test_large_systems(n) -> None:
    regular = normal(n, n) + 2 * n**0.5 * np.eye(n)
    check(lambda lib, a, b: lib.linalg.solve(a, b), regular, normal(n, 5))
    check(lambda lib, a: lib.linalg.lu_factor(a).LU, regular)
    check(lambda lib, a: lib.linalg.cholesky(definite(lib, a)), normal(n, n))


RESULTS = {
    "linalg.svd": [(3, 3)], "linalg.eigh": [(3, 3)], "linalg.eig": [(3, 3)],
    "linalg.qr": [(3, 3)], "linalg.lu": [(3, 3)], "linalg.lu_factor": [(3, 3)],
    "linalg.lu_factor_ex": [(3, 3)], "linalg.slogdet": [(3, 3)], "linalg.inv_ex": [(3, 3)],
    "linalg.ldl_factor": [(3, 3)], "linalg.ldl_factor_ex": [(3, 3)],
    "linalg.lstsq": [(3, 3), (3, 1)], "linalg.solve_ex": [(3, 3), (3, 1)],
    "linalg.cholesky_ex": [(3, 3)], "svd": [(3, 3)], "qr": [(3, 3)], "geqrf": [(3, 3)],
    "slogdet": [(3, 3)], "triangular_solve": [(3, 1), (3, 3)],
}  # fmt: skip


if IS_LATER:
    RESULTS["linalg.polar"] = [(3, 3)]
    del RESULTS["qr"]


def function(library, name):
    home, _, name = name.rpartition(".")
    return getattr(getattr(library, home) if home else library, name)


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.filterwarnings("ignore")
def test_results_have_pytorchs_names(name) -> None:
    arrays = [np.eye(*s) * 2 for s in RESULTS[name]]
    mine = function(torch, name)(*map(torch.tensor, arrays))
    theirs = function(pytorch, name)(*map(pytorch.tensor, arrays))
    fields = [f for f in dir(theirs) if not f.startswith("_") and f not in dir(())]
    assert type(mine).__name__ == type(theirs).__name__
    for field in set(fields) - {"n_fields", "n_sequence_fields", "n_unnamed_fields"}:
        ours, expected = getattr(mine, field), getattr(theirs, field)
        assert str(ours.dtype) == str(expected.dtype)
        assert tuple(ours.shape) == tuple(expected.shape)
        assert [f is ours for f in mine].index(True) == [f is expected for f in theirs].index(True)


SHAPES = [(2, 3, 4), (4, 3), (3, 0), (0, 3), (2, 0, 0), (0, 3, 3), (1, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "name",
    ["svd", "qr", "lu", "lu_factor", "pinv", "svdvals", "matrix_rank", "matrix_norm", "norm"],
)
def test_shapes_without_elements(name, shape) -> None:
    array = rng.normal(size=shape)
    mine = getattr(torch.linalg, name)(torch.tensor(array))
    theirs = getattr(pytorch.linalg, name)(pytorch.tensor(array))
    as_list = lambda r: list(r) if isinstance(r, tuple) else [r]  # noqa: E731
    for a, b in zip(as_list(mine), as_list(theirs), strict=True):
        assert (tuple(a.shape), str(a.dtype)) == (tuple(b.shape), str(b.dtype))
        if a.numel():
            np.testing.assert_allclose(np.abs(a.numpy()), np.abs(b.numpy()), atol=1e-12)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shapes", [[(5, 3), (5, 2)], [(2, 3, 3), (2, 3)], [(3, 5), (3, 1)]])
def test_least_squares(driver, shapes) -> None:
    arrays = [normal(*s) for s in shapes]
    mine = torch.linalg.lstsq(*map(torch.tensor, arrays), driver=driver)
    theirs = pytorch.linalg.lstsq(*map(pytorch.tensor, arrays), driver=driver)
    for a, b in zip(mine, theirs, strict=True):
        assert (tuple(a.shape), str(a.dtype)) == (tuple(b.shape), str(b.dtype))
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-10)


def test_least_squares_of_a_lower_rank() -> None:
    A, B = normal(5, 3), np.ones((5, 1))
    A[:, 2] = A[:, 0]
    for driver in ("gelsy", "gelsd", "gelss"):
        mine, theirs = (
            lib.linalg.lstsq(lib.tensor(A), lib.tensor(B), 1e-10, driver=driver)
            for lib in (torch, pytorch)
        )
        assert mine.rank.item() == 2
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-10)


@pytest.mark.parametrize("p", [1, -1, float("inf"), -float("inf"), "fro", "nuc"])
def test_conditions(p) -> None:
    for A in (normal(2, 3, 3), complex_normal(3, 3), np.zeros((3, 3)), np.zeros((2, 0, 0))):
        if p == "nuc" and A.shape == (3, 3) and not A.any():
            continue  # where PyTorch has NaN
        mine, theirs = (lib.linalg.cond(lib.tensor(A), p) for lib in (torch, pytorch))
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-9)


def zeros_in_a_batch(library):
    matrices = library.eye(3).repeat(3, 1, 1)
    matrices[1] = 0
    return matrices


WRONG = {
    "singular": lambda lib: lib.linalg.inv(lib.zeros(3, 3)),
    "singular in a batch": lambda lib: lib.linalg.inv(zeros_in_a_batch(lib)),
    "singular system": lambda lib: lib.linalg.solve(zeros_in_a_batch(lib), lib.ones(3, 3)),
    "checked": lambda lib: lib.linalg.inv_ex(lib.zeros(2, 2), check_errors=True),
    "not definite": lambda lib: lib.linalg.cholesky(-zeros_in_a_batch(lib)),
    "zero pivot": lambda lib: lib.linalg.lu_factor(lib.zeros(2, 2)),
    "not square": lambda lib: lib.linalg.inv(lib.ones(2, 3)),
    "not square det": lambda lib: lib.linalg.det(lib.ones(2, 3)),
    "vector": lambda lib: lib.linalg.svd(lib.ones(3)),
    "number": lambda lib: lib.linalg.qr(lib.ones(())),
    "integers": lambda lib: lib.linalg.inv(lib.ones(3, 3, dtype=lib.int64)),
    "half": lambda lib: lib.linalg.inv(lib.ones(3, 3, dtype=lib.float16)),
    "shapes": lambda lib: lib.linalg.solve(lib.ones(3, 3), lib.ones(4, 2)),
    "dtypes": lambda lib: lib.linalg.solve(lib.ones(3, 3), lib.ones(3, 2).double()),
    "mode": lambda lib: lib.linalg.qr(lib.ones(3, 3), mode="x"),
    "driver": lambda lib: lib.linalg.svd(lib.ones(3, 3), driver="gesvd"),
    "lstsq driver": lambda lib: lib.linalg.lstsq(lib.ones(3, 2), lib.ones(3, 1), driver="x"),
    "uplo": lambda lib: lib.linalg.eigh(lib.eye(3), "x"),
    "order": lambda lib: lib.linalg.matrix_norm(lib.ones(2, 3), 3),
    "named order": lambda lib: lib.linalg.matrix_norm(lib.ones(2, 3), "x"),
    "norm of a vector": lambda lib: lib.linalg.matrix_norm(lib.ones(3)),
    "norm of three dims": lambda lib: lib.linalg.norm(lib.ones(2, 3, 4), ord=2),
    "cross": lambda lib: lib.linalg.cross(lib.ones(2, 4), lib.ones(2, 4)),
    "root cross": lambda lib: lib.cross(lib.ones(2, 4), lib.ones(2, 4)),
    "one matrix": lambda lib: lib.linalg.multi_dot([lib.ones(2, 2)]),
    "chain": lambda lib: lib.linalg.multi_dot([lib.ones(2, 3), lib.ones(2, 3)]),
    "tensorinv": lambda lib: lib.linalg.tensorinv(lib.ones(4, 6, 8, 4), ind=2),
    "vander": lambda lib: lib.linalg.vander(lib.ones(3), N=1),
    "nan in svd": lambda lib: lib.linalg.svd(lib.full((3, 3), float("nan"))),
    "nan in eigh": lambda lib: lib.linalg.eigh(lib.full((3, 3), float("nan"))),
    "nan in eig": lambda lib: lib.linalg.eig(lib.full((3, 3), float("nan"))),
    "no gradient of r": lambda lib: lib.linalg.qr(
        lib.eye(3, requires_grad=True), mode="r"
    ).R.sum().backward(),
    "phases": lambda lib: lib.linalg.svd(
        lib.eye(3, dtype=lib.complex64) * lib.arange(1, 4)
        + lib.ones(3, 3, dtype=lib.complex64, requires_grad=True) * 1j
    ).U[0, 0].imag.backward(),
    "removed": lambda lib: lib.symeig(lib.eye(2)),
    "lobpcg": lambda lib: lib.lobpcg(lib.eye(5), k=2),
    "pca": lambda lib: lib.pca_lowrank(lib.ones(3, 2), q=3),
}  # fmt: skip


def error_of(library, f):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        f(library)
    error = caught.value
    is_linalg = isinstance(error, library.linalg.LinAlgError)
    known = [c for c in (IndexError, ValueError, TypeError, RuntimeError) if isinstance(error, c)]
    return known[0], is_linalg, str(error)


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.filterwarnings("ignore")
def test_errors_have_pytorchs_classes(what) -> None:
    mine, theirs = error_of(torch, WRONG[what]), error_of(pytorch, WRONG[what])
    assert mine[:2] == theirs[:2], f"{mine[2]} | {theirs[2]}"


@pytest.mark.parametrize("what", ["singular in a batch", "singular system", "not definite"])
def test_errors_name_the_matrix(what) -> None:
    for library in (torch, pytorch):
        matrix = 0 if what == "not definite" else 1
        assert f"(Batch element {matrix})" in error_of(library, WRONG[what])[2]


def test_second_gradients() -> None:
    def slopes(library, f, *inputs):
        tensors = [library.tensor(a).requires_grad_() for a in inputs]
        grads = library.autograd.grad(f(library, *tensors).abs().sum(), tensors, create_graph=True)
        total = sum((g.abs() ** 2).sum() for g in grads)
        return [g.numpy() for g in library.autograd.grad(total, tensors)]

    for name in ("inv", "solve", "cholesky", "det", "svdvals", "pinv", "matrix_exp", "lu_factor"):
        f, shapes = CASES[name]
        for make in (normal, complex_normal):
            inputs = [make(*s) for s in shapes]
            for mine, theirs in zip(
                slopes(torch, f, *inputs), slopes(pytorch, f, *inputs), strict=True
            ):
                np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f", [
    lambda lib, x: x.inverse(),
    lambda lib, x: x.det(),
    lambda lib, x: x.matrix_power(2),
    lambda lib, x: x.matrix_exp(),
    lambda lib, x: x.pinverse(),
    lambda lib, x: x.logdet().nan_to_num(),
    lambda lib, x: x.cross(x.T, dim=0),
    lambda lib, x: lib.linalg.pinv(x, 1e-3),
    lambda lib, x: lib.linalg.matrix_rank(x, 0.5) * x.sum(),
    lambda lib, x: lib.linalg.matrix_rank(x, atol=0.1, rtol=0.2) * x.sum(),
    lambda lib, x: lib.linalg.diagonal(x, offset=1),
    lambda lib, x: lib.linalg.matmul(x, x),
    lambda lib, x: lib.norm(x, p="nuc"),
    lambda lib, x: lib.norm(x, p="nuc", dim=(0, 1)),
    lambda lib, x: lib.chain_matmul(x, x, x),
    lambda lib, x: x.svd(compute_uv=False).S,
    lambda lib, x: x.mH @ x,
    lambda lib, x: x.lu()[0],
    lambda lib, x: lib.linalg.norm(x, dtype=lib.float64),
    lambda lib, x: lib.linalg.matrix_norm(x, 1, dtype=lib.float64),
    lambda lib, x: x.cholesky_solve(lib.linalg.cholesky(x @ x.mT)),
])  # fmt: skip
def test_other_ways_to_call(f) -> None:
    check(f, normal(3, 3))


@pytest.mark.parametrize("name", ["svd", "qr", "eigh", "slogdet", "lu", "inv_ex"])
def test_out_of_several_results(name) -> None:
    A = normal(3, 3)
    expected = getattr(torch.linalg, name)(torch.tensor(A))
    out = tuple(torch.empty(0, dtype=e.dtype) for e in expected)
    result = getattr(torch.linalg, name)(torch.tensor(A), out=out)
    assert type(result) is type(expected)
    for given, mine, theirs in zip(out, result, expected, strict=True):
        assert mine is given
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


@pytest.mark.parametrize("name", ["inv", "det", "pinv", "cholesky", "eigvalsh", "svdvals", "cond"])
def test_out_of_one_result(name) -> None:
    A = normal(3, 3)
    A = A @ A.T + np.eye(3)
    out = torch.empty(0, dtype=torch.float64)
    assert getattr(torch.linalg, name)(torch.tensor(A), out=out) is out
    np.testing.assert_allclose(
        out.numpy(), getattr(pytorch.linalg, name)(pytorch.tensor(A)).numpy(), atol=1e-10
    )
