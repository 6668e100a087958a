"""Forward-mode differentiation by dual tensors: a value that carries its derivative along."""

from __future__ import annotations

from typing import NamedTuple

from rushlight import _C, Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_current_level = -1  # outside of a level; libraries read it


def _open_level(level: int | None, what: str) -> int:
    chosen = _current_level if level is None else level
    if chosen < 0:
        raise RuntimeError(
            f"{what} outside of a level is not possible. Use `with forward_ad.dual_level():`."
        )
    return chosen


def enter_dual_level() -> int:
    """Opens a level, in which tensors can carry tangents. Prefer dual_level().

    Returns:
        The level, for exit_dual_level.

    Raises:
        RuntimeError: if one is open: levels do not nest here, but func.jvp does.
    """
    global _current_level
    if _current_level >= 0:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment. Use torch.func.jvp, which "
            "nests."
        )
    level = _current_level = _C._open_dual_level()
    return level


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes the level; dual tensors made in it are their values from now on.

    Raises:
        RuntimeError: if no level is open, or another one.
    """
    global _current_level
    if _current_level < 0 or (level is not None and level != _current_level):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one created.")
    _C._close_level(_current_level)
    _current_level = -1


class dual_level:
    """The scope in which dual tensors live.

    Example:
        >>> import rushlight.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0))
        ...     fwAD.unpack_dual(x**3).tangent
        tensor(12.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc_info: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor of the same value that carries a tangent.

    Args:
        tensor: the value, real or complex floating-point.
        tangent: its derivative, of its shape; converted to its dtype.
        level: the open level unless given.

    Raises:
        RuntimeError: outside of a level, or if the tangent is dual itself.
        ValueError: if the value is of integers.
    """
    chosen = _open_level(level, "Trying to create a dual tensor for forward AD")
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(
            f"Expected primal to be floating point or complex, but got: {tensor.dtype}"
        )
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(
            f"Expected tangent to be floating point or complex, but got: {tangent.dtype}"
        )
    if _C._unlift_dual(tangent, chosen)[1] is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level is not "
            "supported. Give its value, forward_ad.unpack_dual(tangent).primal, as the tangent."
        )
    return _C._lift_dual(tensor, tangent.to(tensor.dtype), chosen)


class UnpackedDualTensor(NamedTuple):
    """What unpack_dual returns: the value, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; the tangent is None where it carries none.

    Args:
        tensor: dual or not.
        level: the open level unless given.
    """
    chosen = _current_level if level is None else level
    if chosen < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unlift_dual(tensor, chosen))
