"""Questions about KleidiAI, a library for Arm processors, which is not used."""


def is_available() -> bool:
    """Returns False."""
    return False
