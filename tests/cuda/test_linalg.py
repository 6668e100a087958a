"""Linear algebra on CUDA by cuSOLVER: what the op matrix leaves out, compared with the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is neither GPU nor shim"
)

linalg = torch.linalg
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
# One matrix, batches that go together, one of large matrices, and those without elements.
SQUARE = [(4, 4), (2, 3, 5, 5), (70, 70), (2, 520, 520), (0, 3, 3), (2, 0, 0)]
ANY = [(5, 3), (3, 5), (2, 3, 6, 4), (2, 4, 6), (40, 60), (3, 0), (0, 3), (2, 0, 3), (0, 2, 3)]


def matrices(*shape: int, dtype: Any = torch.float64, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=dtype, generator=generator)


def definite(*shape: int, dtype: Any = torch.float64) -> Any:
    A = matrices(*shape, dtype=dtype)
    return A @ A.mH + shape[-1] * torch.eye(shape[-1], dtype=dtype)


def tensors(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def assert_same(on_cuda: Any, on_cpu: Any, tolerance: float | None = None) -> None:
    for mine, reference in zip(tensors(on_cuda), tensors(on_cpu), strict=True):
        assert mine.device.type == "cuda"
        assert mine.dtype is reference.dtype and mine.shape == reference.shape
        assert mine.numel() == 0 or mine.stride() == reference.stride()
        single = reference.dtype in (torch.float32, torch.complex64)
        limit = tolerance or (2e-4 if single else 1e-9)
        np.testing.assert_allclose(
            mine.cpu().resolve_conj().numpy(), reference.numpy(), rtol=limit, atol=limit
        )


UNIQUE: dict[str, Callable[[Any], Any]] = {
    "cholesky": linalg.cholesky,
    "cholesky, upper": lambda A: linalg.cholesky(A, upper=True),
    "cholesky_inverse": torch.cholesky_inverse,
    "cholesky_solve": lambda A: torch.cholesky_solve(A[..., :2], A),
    "lu_factor": linalg.lu_factor,
    "lu": linalg.lu,
    "lu_solve": lambda A: linalg.lu_solve(*linalg.lu_factor(A), A[..., :2]),
    "lu_solve, right": lambda A: linalg.lu_solve(*linalg.lu_factor(A), A[..., :2, :], left=False),
    "solve": lambda A: linalg.solve(A, A[..., :3]),
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": linalg.slogdet,
    "triangular": lambda A: linalg.solve_triangular(A, A[..., :2], upper=True),
    "triangular, right": lambda A: linalg.solve_triangular(A, A, upper=False, left=False),
    "triangular, unit": lambda A: linalg.solve_triangular(
        A / 100, A, upper=True, unitriangular=True
    ),
    "eigvalsh": linalg.eigvalsh,
    "svdvals": linalg.svdvals,
    "pinv": linalg.pinv,
    "rank": lambda A: linalg.matrix_rank(A) if A.numel() else A.sum((-2, -1)),
    "ldl": lambda A: linalg.ldl_solve(*linalg.ldl_factor(A, hermitian=True), A, hermitian=True),
}


@pytest.mark.parametrize("name", UNIQUE)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_square_matrices_give_what_the_cpu_gives(name: str, shape: tuple[int, ...]) -> None:
    if shape[-1] == 520 and name in ("svdvals", "eigvalsh", "pinv", "rank", "ldl"):
        pytest.skip("these go matrix by matrix at every size")
    A = definite(*shape)
    assert_same(UNIQUE[name](A.cuda()), UNIQUE[name](A))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", UNIQUE)
def test_all_dtypes_give_what_the_cpu_gives(name: str, dtype: Any) -> None:
    A = definite(2, 6, 6, dtype=dtype)
    assert_same(UNIQUE[name](A.cuda()), UNIQUE[name](A))


VIEWS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda A: A.mT,
    "sliced": lambda A: A[..., ::2, 1::2],
    "expanded": lambda A: A[0].expand(3, *A.shape[1:]),
    "conjugated": lambda A: A.mH,
    "batch dims exchanged": lambda A: A.reshape(2, 1, *A.shape[1:]).transpose(0, 1),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", UNIQUE)
def test_inputs_may_lie_in_any_order(name: str, view: str) -> None:
    A = definite(2, 8, 8, dtype=torch.complex128)
    f = UNIQUE[name]
    if view == "sliced":
        A = torch.kron(definite(2, 4, 4, dtype=torch.complex128), torch.ones(1, 2, 2))
    on_cuda = A.cuda()
    assert_same(f(VIEWS[view](on_cuda)), f(VIEWS[view](A)))
    assert torch.equal(on_cuda.cpu(), A)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", ANY, ids=str)
def test_decompositions_multiply_to_their_input(shape: tuple[int, ...], dtype: Any) -> None:
    A = matrices(*shape, dtype=dtype).cuda()
    limit = 1e-4 if dtype in (torch.float32, torch.complex64) else 1e-10

    def assert_close(x: Any, y: Any) -> None:
        assert x.device.type == "cuda" and x.shape == y.shape
        np.testing.assert_allclose(x.cpu().numpy(), y.cpu().numpy(), rtol=limit, atol=limit)

    for full in (False, True):
        U, S, Vh = linalg.svd(A, full_matrices=full)
        k = S.shape[-1]
        assert_close((U[..., :k] * S[..., None, :].to(dtype)) @ Vh[..., :k, :], A)
        for Q in (U, Vh.mH):
            one = torch.eye(Q.shape[-1], dtype=dtype, device="cuda")
            assert_close(Q.mH @ Q, one.expand(*A.shape[:-2], *one.shape))
    for mode in ("reduced", "complete"):
        Q, R = linalg.qr(A, mode)
        assert_close(Q @ R, A)
        assert_close(R, R.triu())
    assert_same(linalg.qr(A, "r").R, linalg.qr(A.cpu(), "r").R)
    P, L, U = linalg.lu(A)
    assert_close(P @ L @ U, A)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 5), (3, 4, 4), (2, 3, 33, 33), (1, 1), (0, 3, 3), (2, 0, 0)])
def test_eigenvectors_are_only_scaled(shape: tuple[int, ...], dtype: Any) -> None:
    limit = 2e-3 if dtype in (torch.float32, torch.complex64) else 1e-9
    A = matrices(*shape, dtype=dtype).cuda()
    values, V = linalg.eig(A)
    difference = A.to(V.dtype) @ V - V * values[..., None, :]
    assert difference.numel() == 0 or difference.abs().max().item() < limit
    lengths = linalg.vector_norm(V, dim=-2)
    np.testing.assert_allclose(lengths.cpu().numpy(), np.ones(lengths.shape), rtol=limit)
    found, expected = linalg.eigvals(A).cpu(), linalg.eigvals(A.cpu())
    for n in (1, 2, 3):  # power sums, which have no order
        np.testing.assert_allclose(
            (found**n).sum(-1).numpy(), (expected**n).sum(-1).numpy(), rtol=0.05, atol=100 * limit
        )
    H = A + A.mH
    for uplo in "LU":
        real, W = linalg.eigh(H, uplo)
        difference = H @ W - W * real[..., None, :].to(dtype)
        assert difference.numel() == 0 or difference.abs().max().item() < limit


@pytest.mark.parametrize("shape", [(3, 2, 2), (4, 32, 32), (2, 33, 33), (3, 20, 32), (3, 1, 4)])
def test_batches_of_small_and_of_larger_matrices(shape: tuple[int, ...]) -> None:
    A = matrices(*shape)
    assert_same(linalg.svdvals(A.cuda()), linalg.svdvals(A))
    U, S, Vh = linalg.svd(A.cuda(), full_matrices=False)
    assert_same((U * S[..., None, :]) @ Vh, (A * 2) / 2)
    H = A @ A.mT
    assert_same(linalg.eigvalsh(H.cuda()), linalg.eigvalsh(H))
    values, V = linalg.eigh(H.cuda())
    assert_same((V * values[..., None, :]) @ V.mT, H)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5, 5), (2, 4, 6), (6, 4), (2, 0, 0)])
def test_lu_without_exchanges_of_rows(shape: tuple[int, ...]) -> None:
    A = definite(*shape) if shape[-1] == shape[-2] else matrices(*shape)
    on_cuda = A.cuda()
    P, L, U = linalg.lu(on_cuda, pivot=False)
    assert P.numel() == 0
    np.testing.assert_allclose((L @ U).cpu().numpy(), A.numpy(), rtol=1e-9, atol=1e-9)
    LU, pivots = linalg.lu_factor(on_cuda, pivot=False)
    k = min(shape[-2:])
    assert torch.equal(pivots.cpu(), torch.arange(1, k + 1).int().expand(*shape[:-2], k))
    if shape[-1] == shape[-2]:
        assert_same(linalg.lu_solve(LU, pivots, on_cuda), linalg.solve(A, A))


def test_lu_without_exchanges_has_a_gradient() -> None:
    A = definite(3, 3)
    mine, theirs = A.cuda().requires_grad_(), A.clone().requires_grad_()
    LU, _ = linalg.lu_factor(mine, pivot=False)
    (LU.diagonal().log().sum()).backward()
    linalg.det(theirs).log().backward()
    assert_same(mine.grad, theirs.grad)


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 2, 5), (3, 40, 33), (2, 0)])
@pytest.mark.parametrize("driver", ["gesvdj", "gesvd"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_both_drivers_of_svd(shape: tuple[int, ...], driver: str, dtype: Any) -> None:
    A = matrices(*shape, dtype=dtype)
    assert_same(linalg.svdvals(A.cuda(), driver=driver), linalg.svdvals(A))
    for full in (False, True):
        U, S, Vh = linalg.svd(A.cuda(), full_matrices=full, driver=driver)
        expected = linalg.svd(A, full_matrices=full)
        assert (U.shape, Vh.shape) == (expected.U.shape, expected.Vh.shape)
        k = S.shape[-1]
        assert_same((U[..., :k] * S[..., None, :].to(dtype)) @ Vh[..., :k, :], A * 1)


@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3), (2, 40, 40)])
def test_qr_iterations_stand_in_for_jacobis_method(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUSHLIGHT_SHIM_JACOBI_FAILS", "1")
    A = matrices(*shape)
    U, S, Vh = linalg.svd(A.cuda(), full_matrices=False)
    assert_same(S, linalg.svdvals(A))
    assert_same((U * S[..., None, :]) @ Vh, A * 1)


def test_other_drivers_of_svd_are_refused() -> None:
    A = matrices(3, 2)
    with pytest.raises(NotImplementedError, match="^svd: driver 'gesvda' is not implemented"):
        linalg.svd(A.cuda(), driver="gesvda")
    with pytest.raises(RuntimeError, match="is only supported on CUDA inputs"):
        linalg.svd(A, driver="gesvdj")


def test_rotations_have_complex_eigenvalues() -> None:
    A = torch.block_diag(
        torch.tensor([[0.0, -2.0], [2.0, 0.0]]), torch.tensor([[3.0]]),
        torch.tensor([[1.0, 1.0], [-1.0, 1.0]]),
    ).double().cuda()  # fmt: skip
    values, V = linalg.eig(A)
    found = sorted(values.cpu().tolist(), key=lambda z: (z.real, z.imag))
    np.testing.assert_allclose(found, [-2j, 2j, 1 - 1j, 1 + 1j, 3], atol=1e-12)
    np.testing.assert_allclose(
        (A.to(V.dtype) @ V).cpu().numpy(), (V * values).cpu().numpy(), atol=1e-12
    )


@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (2, 5, 5), (2, 5, 2), (3, 2, 5), (4, 0), (0, 4)])
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_least_squares_by_all_drivers(shape: tuple[int, ...], driver: str, dtype: Any) -> None:
    A, B = matrices(*shape, dtype=dtype), matrices(*shape[:-1], 2, dtype=dtype, seed=1)
    found = linalg.lstsq(A.cuda(), B.cuda(), driver=driver)
    expected = linalg.lstsq(A, B, driver=driver)
    for name in ("solution", "residuals", "rank", "singular_values"):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert mine.shape == theirs.shape and mine.dtype is theirs.dtype, name
        np.testing.assert_allclose(mine.cpu().numpy(), theirs.numpy(), rtol=1e-9, atol=1e-9)


def test_least_squares_of_less_than_full_rank() -> None:
    A, B = matrices(2, 5, 3), matrices(2, 5, 2, seed=1)
    A[..., 2] = A[..., 0] * 2
    for driver in ("gelsy", "gelsd"):
        found = linalg.lstsq(A.cuda(), B.cuda(), 1e-10, driver=driver)
        expected = linalg.lstsq(A, B, 1e-10, driver=driver)
        assert found.rank.tolist() == expected.rank.tolist() == [2, 2]
        assert_same(found.solution, expected.solution)
        assert found.residuals.numel() == expected.residuals.numel() == 0


def test_least_squares_assume_full_rank_on_cuda_unless_told() -> None:
    A, B = matrices(5, 3), matrices(5, 2, seed=1)
    found, gels = linalg.lstsq(A.cuda(), B.cuda()), linalg.lstsq(A, B, driver="gels")
    assert_same(found.solution, gels.solution)
    assert_same(found.residuals, gels.residuals)
    assert found.rank.numel() == found.singular_values.numel() == 0


# What cannot be solved


def indefinite(n: int = 4) -> Any:
    A = definite(3, n, n)
    A[1, 2, 2] = -1.0
    return A


def singular(n: int = 4) -> Any:
    A = matrices(3, n, n)
    A[1, :, 2] = 0
    return A


def broken(value: float = float("nan")) -> Any:
    A = definite(3, 4, 4)
    A[2, 1, 0] = value
    return A


FAILURES: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "cholesky": (linalg.cholesky, indefinite),
    "cholesky, single": (lambda A: linalg.cholesky(A[1]), indefinite),
    "cholesky, large": (linalg.cholesky, lambda: -definite(20, 20)),
    "cholesky, NaN": (linalg.cholesky, broken),
    "cholesky_ex": (lambda A: linalg.cholesky_ex(A, check_errors=True), indefinite),
    "inv": (linalg.inv, singular),
    "inv, single": (lambda A: torch.inverse(A[1]), singular),
    "solve": (lambda A: linalg.solve(A, A), singular),
    "solve_ex": (lambda A: linalg.solve_ex(A, A, check_errors=True), singular),
    "lu_factor": (linalg.lu_factor, singular),
    "tensorinv": (lambda A: linalg.tensorinv(A[1].reshape(2, 2, 4)), singular),
    "svd, NaN": (linalg.svd, broken),
    "svd, infinity": (lambda A: linalg.svdvals(A[2]), lambda: broken(float("inf"))),
    "eigh, NaN": (linalg.eigh, broken),
    "eig, NaN": (linalg.eig, broken),
    "eigvals, infinity": (linalg.eigvals, lambda: broken(float("-inf"))),
    "pinv, NaN": (linalg.pinv, broken),
    "lstsq, NaN": (lambda A: linalg.lstsq(A, A, driver="gels"), broken),
    "lstsq, NaN, by svd": (lambda A: linalg.lstsq(A, A, driver="gelsd"), broken),
    "lstsq, rank": (lambda A: linalg.lstsq(A, A, driver="gels"), singular),
    "half": (linalg.svd, lambda: torch.ones(2, 2, dtype=torch.float16)),
    "ints": (linalg.inv, lambda: torch.eye(2, dtype=torch.int64)),
    "not square": (linalg.inv, lambda: torch.ones(2, 3)),
    "pivots": (
        lambda A: linalg.lu_solve(A, torch.full((2,), 7, dtype=torch.int32, device=A.device), A),
        lambda: torch.eye(2),
    ),
    "LDL pivots": (
        lambda A: linalg.ldl_solve(A, torch.zeros(2, dtype=torch.int32, device=A.device), A),
        lambda: torch.eye(2),
    ),
    "no driver": (lambda A: linalg.lstsq(A, A, driver="x"), lambda: torch.eye(2)),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_those_of_the_cpu(name: str) -> None:
    f, make = FAILURES[name]
    with pytest.raises(Exception) as on_cpu:  # noqa: PT011
        f(make())
    with pytest.raises(type(on_cpu.value)) as on_cuda:
        f(make().cuda())
    assert type(on_cuda.value) is type(on_cpu.value)
    assert str(on_cuda.value) == str(on_cpu.value)


def test_the_other_triangle_may_hold_anything() -> None:
    A = definite(2, 4, 4)
    upper = A.triu() + torch.full((4, 4), float("nan")).double().tril(-1)
    assert_same(linalg.eigvalsh(upper.cuda(), "U"), linalg.eigvalsh(A))
    assert_same(linalg.cholesky(upper.mT.cuda()), linalg.cholesky(A))
    assert_same(linalg.solve_triangular(upper.cuda(), A.cuda(), upper=True),
                linalg.solve_triangular(upper, A, upper=True))  # fmt: skip


@pytest.mark.parametrize(
    ("f", "make"),
    [
        (linalg.cholesky_ex, indefinite),
        (linalg.cholesky_ex, broken),
        (linalg.lu_factor_ex, singular),
        (linalg.inv_ex, singular),
        (lambda A: linalg.solve_ex(A, A), singular),
        (linalg.ldl_factor_ex, singular),
    ],
)
def test_numbers_in_place_of_errors(f: Callable[[Any], Any], make: Callable[[], Any]) -> None:
    assert f(make().cuda()).info.tolist() == f(make()).info.tolist()
    assert f(make()[1].cuda()).info.shape == ()


def test_the_gradient_of_the_determinant_of_a_singular_matrix() -> None:
    A = torch.diag(torch.tensor([2.0, 3.0, 0.0], dtype=torch.float64))
    mine, theirs = A.cuda().requires_grad_(), A.clone().requires_grad_()
    linalg.det(mine).backward()
    linalg.det(theirs).backward()
    assert_same(mine.grad, theirs.grad)


def test_work_goes_to_the_current_stream_and_device() -> None:
    A = definite(3, 5, 5)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert_same(linalg.solve(A.cuda(), A.cuda()), linalg.solve(A, A))
    if torch.cuda.device_count() > 1:
        on_second = A.to("cuda:1")
        inverse = linalg.inv(on_second)
        assert inverse.device == torch.device("cuda", 1)
        assert_same(inverse, linalg.inv(A))
        assert_same(linalg.svdvals(A.cuda()), linalg.svdvals(A))


# Without the library

FAILS = """
    import rushlight as torch
    A = torch.eye(2).cuda() * 2
    try:
        torch.linalg.cholesky(A)
    except RuntimeError as error:
        print(error)
    torch.linalg.cholesky(A.cpu())
    assert (A @ A).tolist() == [[4, 0], [0, 4]]
"""


def test_a_missing_library_is_told_with_the_command_that_helps(run_on_shim) -> None:
    assert run_on_shim(FAILS, RUSHLIGHT_CUSOLVER="/nowhere/libcusolver.so") == (
        "cholesky: cuSOLVER: /nowhere/libcusolver.so was not found. Looked in: the "
        "system's library path. Install it with: pip install rushlight[cuda].\n"
    )


def test_the_library_can_be_turned_off(run_on_shim) -> None:
    assert run_on_shim(FAILS, RUSHLIGHT_CUSOLVER="off") == (
        "cholesky: needs cuSOLVER, which RUSHLIGHT_CUSOLVER=off turns off. Unset the "
        "variable, or move the input with .cpu().\n"
    )


def test_an_older_library_is_named(run_on_shim) -> None:
    said = run_on_shim(
        """
        import ctypes.util
        import os
        import rushlight as torch
        os.environ["RUSHLIGHT_CUSOLVER"] = ctypes.util.find_library("m")
        try:
            torch.linalg.eigvals(torch.eye(2).cuda())
        except RuntimeError as error:
            print(error)
        """
    )
    assert "has no function cusolverDnXgeev_bufferSize. A newer version is needed: pip" in said


def test_the_cpu_needs_no_library(run_python) -> None:
    run_python(
        """
        import rushlight as torch
        torch.linalg.svd(torch.eye(2))
        torch.linalg.solve(torch.eye(2), torch.ones(2))
        assert "cusolver" not in open("/proc/self/maps").read()
        """,
        RUSHLIGHT_CUSOLVER="/nowhere/libcusolver.so",
    )
