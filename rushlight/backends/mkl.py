"""Questions about MKL, which is not used: OpenBLAS computes what it would."""

from rushlight.backends._verbosity import Verbosity

VERBOSE_OFF = 0
VERBOSE_ON = 1

verbose = Verbosity


def is_available() -> bool:
    """Returns False."""
    return False
