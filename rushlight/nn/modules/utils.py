"""Small conversions that several layers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """A function that turns one value into n equal ones and leaves a sequence as it is."""

    def expand(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    return expand


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The items from the last to the first, each n times; F.pad takes paddings so."""
    return tuple(item for item in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    """Sizes of the last dims, with those of `defaults`, which has more dims, where one is None."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size) :]
    return [d if size is None else size for size, d in zip(out_size, last, strict=True)]


def check_sizes(layer: Module, **sizes: Any) -> None:
    """Raises TypeError for sizes of a layer, ints or sequences of them, that are something else."""
    for name, size in sizes.items():
        for one in size if isinstance(size, tuple | list) else (size,):
            if not hasattr(one, "__index__"):  # which ints of NumPy and tensors have, too
                raise TypeError(
                    f"{type(layer).__name__}: {name} should be of type int, got: "
                    f"{type(one).__name__}."
                )


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Strips a prefix, such as that of DataParallel, from the keys of a state_dict, in place.

    Args:
        state_dict: what a module saved; keys without the prefix stay.
        prefix: what is stripped, with its dot.

    Example:
        >>> saved = {"module.weight": 1, "step": 2}
        >>> torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(saved, "module.")
        >>> saved
        {'step': 2, 'weight': 1}
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    versions = getattr(state_dict, "_metadata", {})  # by module: its own path has no dot at the end
    for path in list(versions):
        if path and f"{path}.".startswith(prefix):
            versions[f"{path}.".removeprefix(prefix).rstrip(".")] = versions.pop(path)


_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)
