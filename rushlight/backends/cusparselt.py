"""Questions about cuSPARSELt, which is not used."""


def is_available() -> bool:
    """Returns False."""
    return False


def version() -> int | None:
    """Returns None."""
    return None


def get_max_alg_id() -> int | None:
    """Returns None."""
    return None
