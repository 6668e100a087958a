"""Linear algebra beyond the samples: results that are not unique, errors, layouts, threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from ops.matrix import directional_check, tensor_of

import rushlight as torch

DTYPES = ["float32", "float64", "complex64", "complex128"]


def normal(*shape: int, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def adjoint(x: Any) -> Any:
    return x.swapaxes(-1, -2).conj()


def close(actual: Any, expected: Any) -> None:
    actual = np.asarray(actual)
    single = actual.dtype in (np.float32, np.complex64)
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(actual, expected, atol=scale * (1e-3 if single else 1e-10))


SHAPES = [(4, 4), (5, 3), (2, 3, 5), (70, 40), (2, 40, 70), (0, 3), (3, 0), (0, 2, 2)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors_are_orthonormal_and_give_the_matrix(shape, dtype, full) -> None:
    A = normal(*shape, dtype=dtype)
    U, S, Vh = torch.linalg.svd(tensor_of(A), full_matrices=full)
    k = min(shape[-2:])
    assert U.shape[-1] == (shape[-2] if full else k)
    assert Vh.shape[-2] == (shape[-1] if full else k)
    close(U.mH @ U, np.broadcast_to(np.eye(U.shape[-1]), (U.mH @ U).shape))
    close(Vh @ Vh.mH, np.broadcast_to(np.eye(Vh.shape[-2]), (Vh @ Vh.mH).shape))
    close((U[..., :k] * S[..., None, :]) @ Vh[..., :k, :], A)
    assert bool((S[..., :-1] >= S[..., 1:]).all())
    assert S.dtype is {"float32": torch.float32, "complex64": torch.float32}.get(
        dtype, torch.float64
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 5, 60])
def test_eigenvectors_give_the_matrix(n, dtype) -> None:
    A = normal(2, n, n, dtype=dtype)
    H = A + adjoint(A)
    L, V = torch.linalg.eigh(tensor_of(H))
    close((V * L[..., None, :]) @ V.mH, H)
    L, V = torch.linalg.eig(tensor_of(A))
    close(tensor_of(A).to(V.dtype) @ V, (V * L[..., None, :]).numpy())
    close((V.abs() ** 2).sum(-2), np.ones((2, n)))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_gradient_of_eigenvectors_is_hermitian(dtype) -> None:
    A = normal(3, 3, dtype=dtype)
    x = tensor_of(A + adjoint(A)).requires_grad_()
    q = torch.linalg.eigh(x).eigenvectors[:, 0]
    (tensor_of(normal(3, 3, seed=1)) * q[:, None] * q.conj()).real.sum().backward()
    assert x.grad is not None
    close(x.grad, adjoint(x.grad.numpy()))


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_only_one_triangle_is_read(uplo) -> None:
    A = normal(3, 3)
    triangle = np.tril(A) if uplo == "L" else np.triu(A)
    whole = triangle + adjoint(triangle) - np.diag(np.diag(A))
    read = np.where(triangle == 0, np.nan, A)
    expected = torch.linalg.eigvalsh(tensor_of(whole))
    close(torch.linalg.eigvalsh(tensor_of(read), uplo), expected.numpy())
    definite = whole @ whole + np.eye(3)
    triangle = np.tril(definite) if uplo == "L" else np.triu(definite)
    read = np.where(triangle == 0, np.nan, definite)
    factor = torch.linalg.cholesky(tensor_of(read), upper=uplo == "U")
    close(factor.mH @ factor if uplo == "U" else factor @ factor.mH, definite)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("n", [1, 4, 40])
def test_ldl_solves(n, hermitian, dtype) -> None:
    A = normal(2, n, n, dtype=dtype)
    A = A + (adjoint(A) if hermitian else A.swapaxes(-1, -2))
    B = normal(2, n, 3, dtype=dtype, seed=1)
    LD, pivots, info = torch.linalg.ldl_factor_ex(tensor_of(A), hermitian=hermitian)
    assert pivots.dtype is torch.int32 and info.tolist() == [0, 0]
    X = torch.linalg.ldl_solve(LD, pivots, tensor_of(B), hermitian=hermitian)
    close(tensor_of(A) @ X, B)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 4, 8, 9, 15, 16, 17, 33, 300])
def test_sizes_around_small_loops_and_large_panels(n, dtype) -> None:
    A = normal(n, n, dtype=dtype) + 2 * n**0.5 * np.eye(n)
    A = A.astype(dtype)
    B = normal(n, 2 * n, dtype=dtype, seed=1)
    a, b = tensor_of(A), tensor_of(B)
    close(a @ torch.linalg.solve(a, b), B)
    close(b.mH @ torch.linalg.inv(a), (torch.linalg.solve(a, b.mH, left=False)).numpy())
    P, L, U = torch.linalg.lu(a)
    close(P @ L @ U, A)
    factor = torch.linalg.cholesky(a @ a.mH)
    close(factor @ factor.mH, (a @ a.mH).numpy())
    Q, R = torch.linalg.qr(b.mH)
    close(Q @ R, adjoint(B))
    Q, R = torch.linalg.qr(b.mH[:, : n // 2 + 1], mode="complete")
    close(Q @ R, adjoint(B)[:, : n // 2 + 1])
    close(Q.mH @ Q, np.eye(2 * n))
    Q, R = torch.linalg.qr(b, mode="complete")
    close(Q @ R, B)
    wide = torch.linalg.lu(b)
    close(wide.P @ wide.L @ wide.U, B)
    tall = torch.linalg.lu(b.mH)
    close(tall.P @ tall.L @ tall.U, adjoint(B))
    for upper in (False, True):
        triangle = torch.triu(a) if upper else torch.tril(a)
        close(triangle @ torch.linalg.solve_triangular(a, b, upper=upper), B)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    a, b = tensor_of(normal(300, 300)), tensor_of(normal(300, 200, seed=1))
    small = tensor_of(normal(500, 4, 4))
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(
                [torch.linalg.solve(a, b), torch.linalg.inv(small), torch.linalg.svdvals(small)]
            )
    finally:
        torch.set_num_threads(before)
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), atol=1e-8)


def test_callers_in_several_threads() -> None:
    A = normal(40, 40)
    found: list[Any] = [None] * 4

    def work(i: int) -> None:
        for _ in range(10):
            found[i] = torch.linalg.svdvals(tensor_of(A))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for values in found:
        close(values, np.linalg.svd(A, compute_uv=False))


# Gradients


@pytest.mark.parametrize("n", [1, 2, 4])
def test_gradient_of_a_singular_determinant_is_its_cofactors(n) -> None:
    A = normal(2, n, n)
    A[0, -1] = 0
    A[1] = 0
    a = tensor_of(A).requires_grad_()
    torch.linalg.det(a).sum().backward()
    cofactors = np.zeros((2, n, n))
    for b, i, j in np.ndindex(2, n, n):
        minor = np.delete(np.delete(A[b], i, 0), j, 1)
        cofactors[b, i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    np.testing.assert_allclose(a.grad.numpy(), cofactors, atol=1e-12)


def test_second_gradient_of_a_singular_determinant() -> None:
    A = normal(3, 3)
    A[-1] = 0

    def slope(points: list[Any]) -> Any:
        with torch.enable_grad():
            a = points[0] if points[0].requires_grad else points[0].detach().requires_grad_()
            (grad,) = torch.autograd.grad(torch.linalg.det(a), [a], create_graph=True)
            return (grad * tensor_of(normal(3, 3, seed=4))).sum()

    directional_check(slope, [tensor_of(A)], 1e-5)


def test_gradient_of_full_singular_vectors_of_the_singular_values() -> None:
    def f(points: list[Any]) -> Any:
        U, S, Vh = torch.linalg.svd(points[0])
        return ((U[..., :2] * S[..., None, :] ** 2) @ Vh).sum()

    directional_check(f, [tensor_of(normal(4, 2))], 1e-5)


@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
def test_loss_that_depends_on_phases_is_refused(name) -> None:
    A = normal(3, 3, dtype="complex128")
    a = tensor_of(A + adjoint(A)).requires_grad_()
    vectors = {"svd": 0, "eigh": 1, "eig": 1}[name]
    loss = getattr(torch.linalg, name)(a)[vectors].real.sum()
    with pytest.raises(RuntimeError, match="specified up to multiplication by e"):
        loss.backward()


def test_complete_qr_of_tall_matrices_has_no_gradient() -> None:
    a = tensor_of(normal(4, 2)).requires_grad_()
    Q, R = torch.linalg.qr(a, mode="complete")
    assert Q.shape == (4, 4) and R.shape == (4, 2)
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete'"):
        R.sum().backward()


def test_logarithm_of_a_negative_determinant_is_nan() -> None:
    assert torch.logdet(torch.tensor([[-1.0]])).isnan().item()
    assert torch.logdet(torch.zeros(2, 2)).item() == -np.inf
    assert torch.logdet(torch.tensor([[-1.0 + 0j]])).item() == pytest.approx(np.pi * 1j)


# Errors


def in_batch(matrix: np.ndarray) -> Any:
    return tensor_of(np.stack([np.eye(3), np.eye(3), matrix]))


ZERO = np.diag([1.0, 1.0, 0.0])
INDEFINITE = np.diag([1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (torch.linalg.inv, r"inv: \(Batch element 2\): The diagonal element 3 is zero"),
        (torch.inverse, r"inverse: \(Batch element 2\): The diagonal element 3 is zero"),
        (
            lambda a: torch.linalg.solve(a, torch.ones(3, 3).double()),
            r"solve: \(Batch element 2\): The solver failed because the input matrix is singular",
        ),
        (
            lambda a: torch.linalg.inv_ex(a, check_errors=True),
            r"inv_ex: \(Batch element 2\): The diagonal element 3 is zero",
        ),
    ],
)
def test_singular_matrices_are_named(f, message) -> None:
    with pytest.raises(torch.linalg.LinAlgError, match=message):
        f(in_batch(ZERO))


def test_factors_of_singular_matrices_have_no_inverse() -> None:
    with pytest.raises(torch.linalg.LinAlgError, match=r"\(Batch element 2\): A diagonal element"):
        torch.cholesky_inverse(in_batch(ZERO))


def test_the_leading_minor_is_named() -> None:
    message = (
        r"cholesky: \(Batch element 2\).*the leading minor of order 2 is not positive-definite"
    )
    with pytest.raises(torch.linalg.LinAlgError, match=message):
        torch.linalg.cholesky(in_batch(INDEFINITE))
    assert torch.linalg.cholesky_ex(in_batch(INDEFINITE)).info.tolist() == [0, 0, 2]
    with pytest.raises(torch.linalg.LinAlgError, match="cholesky: The factorization could not"):
        torch.linalg.cholesky(tensor_of(INDEFINITE))


def test_zero_pivots_are_named() -> None:
    with pytest.raises(RuntimeError, match=r"lu_factor: \(Batch element 2\): U\[3,3\] is zero"):
        torch.linalg.lu_factor(in_batch(ZERO))
    assert torch.linalg.lu_factor_ex(in_batch(ZERO)).info.tolist() == [0, 0, 3]
    P, L, U = torch.linalg.lu(in_batch(ZERO))
    close(P @ L @ U, in_batch(ZERO).numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("n", [2, 50])
def test_matrices_that_are_not_finite_end_in_an_error(n, value) -> None:
    A = normal(n, n)
    A[1, 0] = value
    a = tensor_of(A)
    for f in (
        torch.linalg.svd, torch.linalg.svdvals, torch.linalg.eigh, torch.linalg.eigvalsh,
        torch.linalg.pinv, torch.linalg.matrix_rank, torch.linalg.cond,
    ):  # fmt: skip
        with pytest.raises(torch.linalg.LinAlgError, match="non-finite"):
            f(a)
    for f in (torch.linalg.eig, torch.linalg.eigvals):
        with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
            f(a)
    for f in (torch.linalg.qr, torch.linalg.det, torch.linalg.matrix_exp, torch.linalg.lu):
        f(a)
    with pytest.raises(torch.linalg.LinAlgError, match="non-finite"):
        torch.linalg.lstsq(a, a)


def test_pivots_of_another_origin_are_refused() -> None:
    lu, b = torch.eye(3), torch.ones(3, 1)
    for pivots in ([0, 1, 2], [4, 4, 4], [-1, 2, 3], [2**31 - 1, 1, 1]):
        wrong = torch.tensor(pivots, dtype=torch.int32)
        for f in (
            lambda p: torch.linalg.lu_solve(lu, p, b),
            lambda p: torch.lu_unpack(lu, p),
            lambda p: torch.linalg.ldl_solve(lu, p, b),
        ):
            with pytest.raises(RuntimeError, match="pivot"):
                f(wrong)
    with pytest.raises(RuntimeError, match="pivot -2 at 2"):
        torch.linalg.ldl_solve(lu, torch.tensor([1, 2, -2], dtype=torch.int32), b)
    with pytest.raises(RuntimeError, match="int32"):
        torch.linalg.lu_solve(lu, torch.tensor([1, 2, 3]), b)
    with pytest.raises(RuntimeError, match="shape"):
        torch.linalg.lu_solve(lu, torch.tensor([1], dtype=torch.int32), b)


@pytest.mark.parametrize("name", ["eig", "symeig", "solve", "lstsq", "matrix_rank"])
def test_removed_functions_say_what_to_use(name) -> None:
    with pytest.raises(RuntimeError, match=f"{name}: .*is now removed.*torch.linalg"):
        getattr(torch, name)(torch.eye(2))
    if name != "matrix_rank":
        with pytest.raises(RuntimeError, match="is now removed"):
            getattr(torch.eye(2), name)()


# Results


def test_least_squares_by_singular_values() -> None:
    A = normal(2, 5, 3)
    B = normal(2, 5, 2, seed=1)
    for driver in ("gelsd", "gelss"):
        X, residuals, rank, values = torch.linalg.lstsq(tensor_of(A), tensor_of(B), driver=driver)
        close(X, np.linalg.pinv(A) @ B)
        close(values, np.linalg.svd(A, compute_uv=False))
        close(residuals, ((A @ X.numpy() - B) ** 2).sum(-2))
        assert rank.tolist() == [3, 3]
    A[:, :, 2] = A[:, :, 0]
    found = torch.linalg.lstsq(tensor_of(A), tensor_of(B), 1e-10, driver="gelsd")
    assert found.rank.tolist() == [2, 2] and found.residuals.numel() == 0


def test_the_smallest_solution_of_a_wide_system() -> None:
    A, B = normal(30, 50), normal(30, 2, seed=1)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        X = torch.linalg.lstsq(tensor_of(A), tensor_of(B), driver=driver).solution
        close(X, np.linalg.pinv(A) @ B)


def test_tolerances_may_be_tensors() -> None:
    A = np.stack([np.diag([1.0, 1e-3, 1e-6]), np.diag([1.0, 1e-3, 1e-6])])
    rtol = torch.tensor([1e-2, 1e-4], dtype=torch.float64)
    assert torch.linalg.matrix_rank(tensor_of(A), rtol=rtol).tolist() == [1, 2]
    inverse = torch.linalg.pinv(tensor_of(A), rtol=rtol)
    close(inverse, [np.diag([1.0, 0, 0]), np.diag([1.0, 1e3, 0])])
    assert torch.linalg.matrix_rank(tensor_of(A[0]), atol=1e-5).item() == 2
    assert torch.linalg.matrix_rank(tensor_of(A[0]), hermitian=True).item() == 3


@pytest.mark.parametrize("scale", [0, 1e-8, 1e-3, 0.3, 1, 10, 200])
@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials_of_all_sizes(scale, dtype) -> None:
    """Of rotations, which must stay rotations."""
    angle = scale
    generator = np.array([[0, -angle], [angle, 0]]).astype(dtype)
    expected = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    single = dtype in ("float32", "complex64")
    np.testing.assert_allclose(
        torch.linalg.matrix_exp(tensor_of(generator)).numpy(),
        expected,
        atol=(1e-5 if single else 1e-13) * max(1, scale),
    )


def test_exponential_of_what_overflows() -> None:
    assert torch.linalg.matrix_exp(torch.tensor([[1e30]])).item() == np.inf
    assert torch.linalg.matrix_exp(torch.tensor([[[np.nan]], [[0.0]]])).tolist()[1] == [[1.0]]


def test_matrices_of_low_rank() -> None:
    A = normal(2, 30, 4) @ normal(2, 4, 20, seed=1)
    for matrix in (A, adjoint(A)):
        U, S, V = torch.svd_lowrank(tensor_of(matrix), q=5)
        close((U * S[..., None, :]) @ V.mH, matrix)
    U, S, V = torch.pca_lowrank(tensor_of(A), q=4)
    centered = A - A.mean(-2, keepdims=True)
    close((U * S[..., None, :]) @ V.mH, centered)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("generalized", [True, False])
def test_lobpcg_finds_the_extreme_eigenvalues(generalized, largest) -> None:
    A = normal(2, 30, 30)
    A = A + adjoint(A)
    B = normal(30, 30, seed=1)
    B = B @ B.T + np.eye(30) * 5 if generalized else np.eye(30)
    L = np.linalg.cholesky(B)
    expected = np.linalg.eigvalsh(np.linalg.inv(L) @ A @ np.linalg.inv(L).T)
    expected = expected[:, ::-1][:, :3] if largest else expected[:, :3]
    torch.manual_seed(0)
    b = tensor_of(B) if generalized else None
    values, X = torch.lobpcg(tensor_of(A), k=3, B=b, largest=largest, tol=1e-10)
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-6)
    residual = tensor_of(A) @ X - tensor_of(B) @ X * values[:, None]
    assert residual.abs().max().item() < 1e-5
    dense, _ = torch.lobpcg(tensor_of(A).requires_grad_(), k=3, B=b, largest=largest)
    np.testing.assert_allclose(dense.detach().numpy(), expected, rtol=1e-9)
    assert dense.requires_grad


def test_lobpcg_has_gradients_for_both_triangles() -> None:
    A = normal(6, 6)
    A = tensor_of(A + A.T).requires_grad_()
    assert torch.autograd.gradcheck(lambda A: torch.lobpcg(A, k=2), A)
    torch.lobpcg(A, k=2)[0].sum().backward()
    assert torch.allclose(A.grad, A.grad.mT)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_lobpcg_of_a_sparse_matrix(layout: torch.layout) -> None:
    torch.manual_seed(0)
    A = torch.diag(torch.arange(1.0, 31, dtype=torch.float64)).to_sparse(layout=layout)
    values, X = torch.lobpcg(A, k=2, tol=1e-10)
    np.testing.assert_allclose(values.numpy(), [30, 29], rtol=1e-6)
    assert (A @ X - X * values).abs().max() < 1e-4


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_pca_of_a_sparse_matrix(layout: torch.layout) -> None:
    A = tensor_of(normal(20, 6)).relu()
    expected = torch.linalg.svdvals(A - A.mean(0))[:3]
    found = torch.pca_lowrank(A.to_sparse(layout=layout), q=6)[1][:3]
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


def test_norms_of_nothing_that_are_undefined() -> None:
    for norm in (torch.norm, torch.linalg.norm, torch.linalg.vector_norm):
        for order in (torch.inf, -torch.inf, -1):
            with pytest.raises(RuntimeError, match="non-zero size"):
                norm(torch.ones(0, 3), order, dim=0)
    with pytest.raises(IndexError, match="non-zero size"):
        torch.ones(0, 3).amax(0)


def test_roots_and_polar_decompositions_are_smooth_where_values_repeat() -> None:
    def check(f) -> None:
        x = torch.eye(3, dtype=torch.float64) * 2
        assert torch.autograd.gradcheck(f, x.requires_grad_())
        assert torch.autograd.gradgradcheck(f, x)

    check(lambda x: torch.linalg.matrix_sqrth((x + x.mT) / 2))
    check(torch.linalg.polar)
    check(lambda x: torch.linalg.polar(x[:, :2]))


def test_what_roots_and_polar_decompositions_refuse() -> None:
    with pytest.raises(RuntimeError, match=r"^polar: .* rows .* 2 by 3 matrices\. .* A\.mH"):
        torch.linalg.polar(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match=r"^matrix_sqrth: .* square .* 2 by 3"):
        torch.linalg.matrix_sqrth(torch.ones(2, 3))
    below_zero = torch.linalg.matrix_sqrth(torch.diag(torch.tensor([4.0, -1.0])))
    np.testing.assert_allclose(below_zero.numpy(), [[2, 0], [0, 0]])


def test_results_have_names() -> None:
    a = torch.eye(2)
    assert type(torch.linalg.svd(a)).__name__ == "linalg_svd"
    assert type(torch.svd(a)).__name__ == "svd"
    assert torch.svd(a).V.shape == torch.linalg.svd(a).Vh.shape
    assert torch.linalg.slogdet(a).logabsdet.item() == 0
    assert torch.linalg.eigh(a).eigenvectors.shape == (2, 2)


def test_inputs_of_any_layout() -> None:
    A = normal(6, 6) + 4 * np.eye(6)
    expected = np.linalg.inv(A)
    wide = tensor_of(np.repeat(np.repeat(A, 2, 0), 3, 1))[::2, ::3]
    for a in (tensor_of(A.T).T, wide, tensor_of(A[::-1].copy()).flip(0)):
        close(torch.linalg.inv(a), expected)
        close(torch.linalg.solve(a, torch.eye(6).double()), expected)
        close(torch.linalg.solve_triangular(a, a, upper=True), np.linalg.solve(np.triu(A), A))
    one = tensor_of(A[:1]).expand(6, 6)
    assert torch.linalg.matrix_rank(one).item() == 1


def test_the_zeroth_power_of_a_matrix_has_no_slope() -> None:
    x = torch.rand(2, 2, requires_grad=True)
    power = torch.linalg.matrix_power(x, 0)
    assert power.tolist() == [[1, 0], [0, 1]]
    power.sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0]]
