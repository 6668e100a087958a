"""What was measured of PyTorch's kernels for blocks of sparse matrices; there are none here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["get_meta", "minimize", "update"]


def get_meta(op: str, key: Any, *args: Any, **kwargs: Any) -> None:
    """Returns None: nothing was measured for any op."""


def minimize(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuses to measure.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("sparse: there are no kernels of Triton here to tune.")


update = minimize
