"""Finding the op whose backward raises or makes NaN."""

from __future__ import annotations

from typing import Self

from rushlight import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Turns the search for mistakes in backward on or off: at once, or for the scope of a `with`.

    While it is on, a gradient with NaN raises, and an error in backward also gives a warning with
    the line of the program that recorded the op. (Errors carry that line as a note in any case.)

    Args:
        mode: whether to search.
        check_nan: whether to look for NaN in every gradient.

    Example:
        >>> x = torch.tensor([-1.0], requires_grad=True)
        >>> with torch.autograd.set_detect_anomaly(True, check_nan=False):
        ...     torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
        (True, False)
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _C._anomaly_mode()
        _C._set_anomaly_mode(mode, check_nan)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C._set_anomaly_mode(*self._before)


class detect_anomaly:
    """Searches for mistakes in backward in the scope of a `with`; see set_detect_anomaly.

    Args:
        check_nan: whether to look for NaN in every gradient.

    Example:
        >>> x = torch.tensor([-1.0], requires_grad=True)
        >>> with torch.autograd.detect_anomaly():
        ...     try:
        ...         x.sqrt().sum().backward()
        ...     except RuntimeError as error:
        ...         print(str(error).split(".")[0])
        Function 'SqrtBackward0' returned nan values in its 0th output
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

    def __enter__(self) -> None:
        self._before = _C._anomaly_mode()
        _C._set_anomaly_mode(True, self.check_nan)

    def __exit__(self, *exc_info: object) -> None:
        _C._set_anomaly_mode(*self._before)
