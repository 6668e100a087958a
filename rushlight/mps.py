"""Questions about Apple's GPUs, which are not supported."""


def is_available() -> bool:
    """Returns False."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0
