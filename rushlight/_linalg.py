"""Linear algebra that is not an op: decompositions of low rank, and what PyTorch has removed."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


@overridable
def lu(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    out: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, ...]:
    """Returns the compact LU factorization of matrices: see linalg.lu_factor.

    Args:
        A: (*, m, n).
        pivot: must be True.
        get_infos: adds the info of linalg.lu_factor_ex instead of raising an error.
        out: tensors to write the results to.

    Raises:
        RuntimeError: if U has a zero on its diagonal.

    Example:
        >>> LU, pivots = torch.lu(torch.tensor([[2.0, 1.0], [4.0, 4.0]]))
        >>> pivots
        tensor([2, 2], dtype=torch.int32)
    """
    if get_infos:
        return tuple(rl.linalg.lu_factor_ex(A, pivot=pivot, out=out))
    return tuple(rl.linalg.lu_factor(A, pivot=pivot, out=out))


# Low rank


@overridable
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns U, S, V of a singular value decomposition of rank q, nearly the best one.

    A random matrix and its products with A find the space of the largest singular values (Halko,
    Martinsson and Tropp 2009, algorithms 4.4 and 5.1).

    Args:
        A: (*, m, n).
        q: a little more than the rank of A.
        niter: how often the space is improved.
        M: (*, m, n) or (*, 1, n), taken from A first.

    Returns:
        U (*, m, q), S (*, q), V (*, n, q).

    Example:
        >>> A = torch.ones(5, 3)
        >>> U, S, V = torch.svd_lowrank(A, q=1)
        >>> torch.allclose(U @ torch.diag(S) @ V.mT, A, atol=1e-5)
        True
    """
    q = 6 if q is None else q
    if M is not None:
        A = A - M
    is_wide = A.shape[-2] < A.shape[-1]
    if is_wide:
        A = A.mH
    space = rl.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    Q = rl.linalg.qr(A @ space).Q
    for _ in range(2 if niter is None else niter):
        Q = rl.linalg.qr(A.mH @ Q).Q
        Q = rl.linalg.qr(A @ Q).Q
    U, S, Vh = rl.linalg.svd(Q.mH @ A, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if is_wide else (U, S, V)


@overridable
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns U, S, V of the principal components of the rows of a matrix: see svd_lowrank.

    Args:
        A: (*, m, n): m samples of n features.
        q: how many components; at most 6 unless given.
        center: takes the mean of each feature from A first.
        niter: how often the space of the components is improved.

    Raises:
        ValueError: if q is larger than m or n, or q or niter is negative.
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    if not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter)
    is_dense = A.layout is rl.strided
    return svd_lowrank(A, q, niter, A.mean(-2, True) if is_dense else A.sum(0).to_dense()[None] / m)


# The largest or smallest eigenvalues


@overridable
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[Any], None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns the k largest (or smallest) eigenvalues of A x = e B x, and their eigenvectors.

    LOBPCG: a Rayleigh-Ritz step in the space of the vectors, their residuals and the last
    directions, again and again (Knyazev 2001, algorithm 4.1). Where a gradient is wanted, the dense
    linalg.eigh takes its place.

    Args:
        A: (*, m, m), symmetric.
        k: how many eigenvalues; the columns of X, or 1, unless given.
        B: (*, m, m), symmetric positive-definite; the identity when None.
        X: (*, m, n), where to begin, with n at least k; random unless given.
        n: the columns of a random X; k unless given.
        iK: (*, m, m), a preconditioner of the residuals.
        niter: the most iterations; None is 1000, a negative number no limit.
        tol: residuals up to tol times the scale of the problem end it.
        largest: whether the largest are wanted, as when None, or the smallest.
        method: "basic" or "ortho", which are the same here.
        tracker: not used, as the parameters of "ortho".

    Raises:
        ValueError: if m is less than 3 n, for which linalg.eigh is the better function.
    """
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', but is {method!r}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than "
            f"3 x the number of requested eigenpairs (={n})"
        )
    take_largest = largest is None or largest
    wants_grad = A.requires_grad or (B is not None and B.requires_grad)
    if wants_grad and rl.is_grad_enabled():
        return _dense_eigenpairs(A, B, k, take_largest)
    if X is None:
        X = rl.randn(*A.shape[:-2], m, n, dtype=A.dtype, device=A.device)
    limit = 1000 if niter is None else niter
    accuracy = rl.finfo(A.dtype).eps ** 0.5 if tol is None else tol
    batch = A.shape[:-2]

    def matrices(t: Tensor | None) -> Any:
        if t is None:
            return [None] * math.prod(batch)
        if not batch and t.dim() == 2:  # which may be sparse
            return [t]
        return t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]).unbind(0)

    with rl.no_grad():
        found = [
            _lobpcg(a, b, x, ik, k, limit, accuracy, take_largest)
            for a, b, x, ik in zip(*map(matrices, (A, B, X, iK)), strict=True)
        ]
    values, vectors = (rl.stack(parts) for parts in zip(*found, strict=True))
    return values.reshape(*batch, k), vectors.reshape(*batch, m, k)


def _dense_eigenpairs(A: Tensor, B: Tensor | None, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    A = (A + A.mH) / 2  # eigh reads one triangle
    if B is None:
        values, vectors = rl.linalg.eigh(A)
    else:  # L^-1 A L^-H y = e y with B = L L^H and y = L^H x
        L = rl.linalg.cholesky(B)
        half = rl.linalg.solve_triangular(L, A, upper=False)
        whole = rl.linalg.solve_triangular(L.mH, half, upper=True, left=False)
        values, vectors = rl.linalg.eigh(whole)
        vectors = rl.linalg.solve_triangular(L.mH, vectors, upper=True)
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :k], vectors[..., :k]


def _lobpcg(
    A: Tensor,
    B: Tensor | None,
    X: Tensor,
    iK: Tensor | None,
    k: int,
    limit: int,
    tol: float,
    largest: bool,
) -> tuple[Tensor, Tensor]:
    """One matrix."""

    def b_times(x: Tensor) -> Tensor:
        return x if B is None else B @ x

    def basis(S: Tensor) -> Tensor:
        """B-orthonormal columns with the span of S, without what rounding leaves of others."""
        S = S / S.norm(dim=0).clamp_min(rl.finfo(S.dtype).tiny)
        values, vectors = rl.linalg.eigh(S.mH @ b_times(S))
        kept = values > values[-1] * rl.finfo(S.dtype).eps * S.shape[-1]
        return S @ (vectors[:, kept] / values[kept].sqrt())

    def ritz(S: Tensor) -> tuple[Tensor, Tensor]:
        """The best values and vectors in the span of S."""
        Q = basis(S)
        values, vectors = rl.linalg.eigh(Q.mH @ (A @ Q))
        if largest:
            values, vectors = values.flip(-1), vectors.flip(-1)
        return values[:n], Q @ vectors[:, :n]

    n = X.shape[-1]
    values, X = ritz(X)
    P = None
    done = 0
    while limit < 0 or done < limit:
        residual = A @ X - b_times(X) * values
        scale = A.norm() + values.abs() * (1.0 if B is None else B.norm())
        if bool((residual.norm(dim=0) <= tol * scale * X.norm(dim=0))[:k].all()):
            break
        W = residual if iK is None else iK @ residual
        before = X
        values, X = ritz(rl.cat([X, W] if P is None else [X, W, P], dim=1))
        P = X - before @ (before.mH @ b_times(X))
        done += 1
    return values[:k], X[:, :k]


# Removed

_REPLACEMENTS = {
    "eig": "L, V = torch.linalg.eig(A), which are complex",
    "symeig": "L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')",
    "solve": "X = torch.linalg.solve(A, B), whose arguments are in the other order",
    "lstsq": "X = torch.linalg.lstsq(A, B).solution, whose arguments are in the other order",
    "matrix_rank": "torch.linalg.matrix_rank(A, hermitian=symmetric)",
}


def _removed(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"{name}: This function was deprecated since version 1.9 and is now removed. "
            f"Use {_REPLACEMENTS[name]}."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises a RuntimeError: use {_REPLACEMENTS[name]}."
    return function


eig = _removed("eig")
symeig = _removed("symeig")
solve = _removed("solve")
lstsq = _removed("lstsq")
matrix_rank = _removed("matrix_rank")
