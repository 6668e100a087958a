"""Dims as functions take them, counted from the end where they are negative."""


def wrapped_dim(dim: int, ndim: int) -> int:
    """Returns a dim counted from the first.

    Raises:
        IndexError: if there is none of that number.
    """
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim
