"""Questions about Apple's GPUs, which are not supported."""


def is_available() -> bool:
    """Returns False."""
    return False


def is_built() -> bool:
    """Returns False."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Returns False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Returns False."""
    return False
