"""Kullback-Leibler divergences: the registry, and the divergence of two distributions.

The formulas are in _kl_same_family.py and _kl_mixed.py, which register themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight import Tensor
from rushlight.distributions.distribution import Distribution

Divergence = Callable[[Any, Any], Tensor]

__all__ = ["register_kl", "kl_divergence"]

_KL_REGISTRY: dict[tuple[type, type], Divergence] = {}
_KL_MEMOIZE: dict[tuple[type, type], Divergence] = {}  # what pairs of classes came to


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Returns a decorator that makes a function the divergence of two classes.

    It also serves their subclasses, for which the registered pair that is nearest is taken: by the
    class of p first.

    Args:
        type_p: the class of p.
        type_q: the class of q.

    Raises:
        TypeError: one is not a class. It need not be one of distributions: bases count, too.

    Example:
        >>> D = torch.distributions
        >>> class Mine(D.Normal):
        ...     pass
        >>> @D.register_kl(Mine, Mine)
        ... def kl_mine_mine(p, q):
        ...     return torch.zeros(())
        >>> D.kl_divergence(Mine(0.0, 1.0), Mine(1.0, 1.0))
        tensor(0.)
    """
    for name, cls in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(cls, type):
            raise TypeError(f"register_kl: expected {name} to be a class but got {cls!r}")

    def register(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return register


def _dispatch_kl(type_p: type, type_q: type) -> Divergence:
    """Returns the function of the nearest registered pair of base classes."""
    p_bases, q_bases = type_p.__mro__, type_q.__mro__
    distances = [
        (p_bases.index(p), q_bases.index(q), function)
        for (p, q), function in _KL_REGISTRY.items()
        if p in p_bases and q in q_bases
    ]
    if not distances:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type_p.__name__} and q type "
            f"{type_q.__name__}"
        )
    by_p = min(distances, key=lambda d: (d[0], d[1]))
    by_q = min(distances, key=lambda d: (d[1], d[0]))
    if by_p[2] is not by_q[2]:
        named = [f"{p_bases[i].__name__}, {q_bases[j].__name__}" for i, j, _ in (by_p, by_q)]
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({named[0]}), which is taken, or register_kl({named[1]}) for them.",
            RuntimeWarning,
            stacklevel=3,
        )
    return by_p[2]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Returns KL(p || q), the mean under p of log p(x) - log q(x).

    Args:
        p: a distribution.
        q: another one; the batch shapes broadcast.

    Raises:
        NotImplementedError: no divergence is registered for their classes.

    Example:
        >>> D = torch.distributions
        >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
        tensor(0.5000)
    """
    pair = type(p), type(q)
    function = _KL_MEMOIZE.get(pair)
    if function is None:
        function = _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    return function(p, q)
