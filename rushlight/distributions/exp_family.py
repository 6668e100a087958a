"""Exponential families: densities exp(<t(x), theta> - F(theta) + k(x))."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base of distributions whose density is exp(<t(x), theta> - F(theta) + k(x)).

    theta are the natural parameters, t the sufficient statistic, F the log normalizer and k the
    carrier measure. A subclass defines `_natural_params`, `_log_normalizer` and
    `_mean_carrier_measure`, the expectation of k; entropy follows from these.

    Example:
        >>> torch.distributions.ExponentialFamily.entropy(torch.distributions.Normal(0.0, 1.0))
        tensor(1.4189)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    if TYPE_CHECKING:
        _log_normalizer: Any
        _mean_carrier_measure: Any
    else:

        def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
            raise NotImplementedError

        @property
        def _mean_carrier_measure(self) -> float | Tensor:
            raise NotImplementedError

    def entropy(self) -> Tensor:
        """Returns F(theta) - <theta, F'(theta)> - E[k(x)], with F' by autograd.

        Source: Nielsen and Nock, Entropies and cross-entropies of exponential families, 2010.
        """
        with rl.enable_grad():
            natural = [
                p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params
            ]
            normalizer = self._log_normalizer(*natural)
            slopes = rl.autograd.grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for p, slope in zip(natural, slopes, strict=True):
            result = result - sum_rightmost(p * slope, p.dim() - len(self._batch_shape))
        needs_grad = any(p.requires_grad for p in self._natural_params)
        return result if needs_grad else result.detach()
