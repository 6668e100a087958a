"""Maps that parameters are computed with: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._dims import wrapped_dim
from rushlight.nn import functional as F
from rushlight.nn.modules.conv import _ConvTransposeNd
from rushlight.nn.modules.module import Module
from rushlight.nn.utils import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def normalized(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """g * v / |v|, the norm over all dims but one, or over all for dim = -1 (weight norm)."""
    return v * (g / rl.norm_except_dim(v, 2, dim))


def output_dim(module: Module) -> int:
    """The dim of a layer's weight that its outputs are along."""
    return 1 if isinstance(module, _ConvTransposeNd) else 0


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix with one row for each index of a dim."""
    return weight.movedim(dim, 0).flatten(1)


def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float) -> None:
    """Brings u and v, in place, closer to the first singular vectors: v from u, then u from v.

    In place, because both are buffers that replicas of a module and its state dict share.
    """
    with rl.no_grad():
        for _ in range(steps):
            v.copy_(F.normalize(matrix.mH.mv(u), dim=0, eps=eps))
            u.copy_(F.normalize(matrix.mv(v), dim=0, eps=eps))


def random_direction(like: Tensor, size: int, eps: float) -> Tensor:
    """A random vector of length 1."""
    return F.normalize(like.new_empty(size).normal_(0, 1), dim=0, eps=eps)


def check_steps(n_power_iterations: int) -> None:
    """Refuses a number of power iterations that is not positive."""
    if n_power_iterations <= 0:
        raise ValueError(
            "Expected n_power_iterations to be positive, but got "
            f"n_power_iterations={n_power_iterations}"
        )


def _tensor_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# Weight norm


class _WeightNorm(Module):
    """g * v / |v| as a map from (g, v)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return normalized(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return rl.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits a parameter into its magnitude and its direction: weight = g v / |v|.

    Source: Salimans and Kingma, "Weight Normalization" (2016). The magnitude g becomes
    parametrizations.weight.original0, the direction v parametrizations.weight.original1. Files of
    the old weight_norm, with weight_g and weight_v, are read too.

    Args:
        module: the layer.
        name: its parameter.
        dim: dim along which magnitudes are kept apart; None for one magnitude.

    Returns:
        module.

    Raises:
        ValueError: if there is no such parameter.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> {key: tuple(t.shape) for key, t in layer.parametrizations.weight.state_dict().items()}
        {'original0': (3, 1), 'original1': (3, 2)}
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state: dict[str, Any], prefix: str, *rest: Any) -> None:
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state for key in old):
            for i, key in enumerate(old):
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# Spectral norm


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, which power iterations estimate."""

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        self.dim = wrapped_dim(dim, weight.ndim)
        check_steps(n_power_iterations)
        self.eps = eps
        if weight.ndim == 1:
            return  # the norm of a vector needs no estimate
        self.n_power_iterations = n_power_iterations
        matrix = as_matrix(weight.detach(), self.dim)
        self.register_buffer("_u", random_direction(matrix, matrix.shape[0], eps))
        self.register_buffer("_v", random_direction(matrix, matrix.shape[1], eps))
        self._iterate(matrix, 15)

    def _iterate(self, matrix: Tensor, steps: int) -> None:
        # u from v first, as PyTorch does here: power_iteration of the transpose
        power_iteration(matrix.mH, self._v, self._u, steps, self.eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # Clones, because the next forward changes the buffers before this one's backward.
        u, v = self._u.clone(), self._v.clone()
        return weight / rl.vdot(u, matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a parameter by its largest singular value, its spectral norm.

    Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks" (2018). The
    first singular vectors are buffers; each use in training mode improves them by power iterations.

    Args:
        module: the layer.
        name: its parameter; with more than two dims it is taken as a matrix of dim by the rest.
        n_power_iterations: number of power iterations for each use.
        eps: lower bound of lengths that are divided by.
        dim: dim of the outputs; None is 1 for transposed convolutions, otherwise 0.

    Returns:
        module.

    Raises:
        ValueError: if there is no such parameter, or n_power_iterations is not positive.
        IndexError: if the parameter has no such dim.

    Example:
        >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(20, 40)).eval()
        >>> 0.9 < torch.linalg.matrix_norm(layer.weight, 2).item() < 1.2
        True
    """
    weight = _tensor_of(module, name)
    dim = output_dim(module) if dim is None else dim
    norm = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, norm)


# Orthogonal matrices

_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """Matrices with orthonormal columns, or rows if wider than tall, from any matrices.

    With a base B (use_trivialization) it is B times what the map makes, so that the map works near
    the identity (Lezcano-Casado 2019, "Trivializations for gradient-based optimization").
    """

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool) -> None:
        super().__init__()
        # n (n - 1) real numbers, as complex reflectors have, do not reach all unitary matrices.
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        is_wide = X.shape[-2] < X.shape[-1]
        tall = X.mT if is_wide else X  # (..., n, k)
        Q = _reflected(tall) if self.orthogonal_map == "householder" else self._rotated(tall)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if is_wide else Q

    def _rotated(self, X: Tensor) -> Tensor:
        """The first columns of exp(A) or of Cayley's (I - A/2)^-1 (I + A/2), A skew-Hermitian."""
        n, k = X.shape[-2:]
        lower = X.tril()
        if n != k:
            lower = rl.cat([lower, X.new_zeros(*X.shape[:-1], n - k)], dim=-1)  # (..., n, n)
        A = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            Q = rl.matrix_exp(A)
        else:
            eye = rl.eye(n, dtype=A.dtype, device=A.device)
            Q = rl.linalg.solve(eye - 0.5 * A, eye + 0.5 * A)
        return Q[..., :k] if n != k else Q

    @rl.no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        is_wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if is_wide else Q
        if hasattr(self, "base"):
            self.base = _completed(tall)
            # Where the maps give the identity; -1, because Householder's reads signs off it.
            start = rl.zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        A, tau = rl.geqrf(tall)
        # Q R has many forms; the one with a positive diagonal of R has these signs. LAPACK returns
        # tau = 0 exactly for a reflection that it leaves out, whose sign then is the opposite.
        signs = A.diagonal(dim1=-2, dim2=-1)
        signs.copy_(rl.where(tau == 0, -signs.sign(), signs.sign()))
        return A.mT if is_wide else A


def _reflected(X: Tensor) -> Tensor:
    """The product of the Householder reflections below the diagonal, with the diagonal's signs."""
    reflectors = X.tril(diagonal=-1)
    tau = 2.0 / (1.0 + (reflectors * reflectors).sum(dim=-2))
    Q = rl.linalg.householder_product(reflectors, tau)
    signs = X.diagonal(dim1=-2, dim2=-1).detach().trunc()
    return Q * signs.unsqueeze(-2)


def _completed(Q: Tensor) -> Tensor:
    """A square orthogonal matrix whose first columns are Q, if these are orthonormal, or near."""
    n, k = Q.shape[-2:]
    if n == k and _is_orthogonal(Q):
        return Q.clone()
    if n != k:
        more = rl.randn(*Q.shape[:-1], n - k, dtype=Q.dtype, device=Q.device)
        Q = rl.cat([Q, more], dim=-1)
    R, tau = rl.geqrf(Q)
    signs = R.diagonal(dim1=-2, dim2=-1).sgn()
    return rl.linalg.householder_product(R, tau) * signs.unsqueeze(-2)


def _is_orthogonal(Q: Tensor) -> bool:
    n, k = Q.shape[-2:]
    eye = rl.eye(k, dtype=Q.dtype, device=Q.device)
    return rl.allclose(Q.mH @ Q, eye, atol=10.0 * n * rl.finfo(Q.dtype).eps)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a matrix orthogonal, or unitary: columns orthonormal, or rows if it is wider than tall.

    Source: Lezcano-Casado and Martínez-Rubio, "Cheap Orthogonal Constraints in Neural Networks"
    (2019). The maps are exp(A) and Cayley's transform of a skew-Hermitian A, and products of
    Householder reflections.

    Args:
        module: the layer.
        name: its parameter, a matrix or a batch of them.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; None is "matrix_exp" for square or
            complex matrices, otherwise "householder".
        use_trivialization: whether the map starts at the value that the parameter has now; it
            needs one more matrix, and lets values be assigned.

    Returns:
        module.

    Raises:
        ValueError: if there is no such parameter, it is no matrix, or the map is unknown.

    Example:
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(4, 4))
        >>> torch.allclose(layer.weight @ layer.weight.mT, torch.eye(4), atol=1e-5)
        True
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        is_square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if is_square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    maps = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, maps, unsafe=True)
