"""What optimizers of other libraries ask before they call torch._foreach_*.

Rushlight's own optimizers do not need it: their steps take tensors of any device and dtype.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor, nn

_foreach_supported_types = [Tensor, nn.Parameter]
TensorListList = list[list[Tensor | None]]
Indices = list[int]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Returns the kinds of devices where lists of tensors are worth it."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Returns the kinds of devices where optimizers have a fused step."""
    return ["cpu", "cuda"]


def _device_has_foreach_support(device: rl.device) -> bool:
    return device.type in ("cpu", "cuda")


def _has_foreach_support(tensors: list[Tensor], device: rl.device) -> bool:
    known = all(x is None or type(x) in _foreach_supported_types for x in tensors)
    return known and _device_has_foreach_support(device)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[rl.device, rl.dtype], tuple[TensorListList, Indices]]:
    """Divides lists of tensors alike: by the device and dtype of those of the first list.

    Returns:
        For each device and dtype the parts of the lists, and where they stood if with_indices.
    """
    groups: dict[tuple[rl.device, rl.dtype], tuple[TensorListList, Indices]] = {}
    for i, first in enumerate(tensorlistlist[0]):
        assert first is not None
        key = first.device, first.dtype
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for part, whole in zip(lists, tensorlistlist, strict=True):
            if whole:
                part.append(whole[i])
        if with_indices:
            indices.append(i)
    return groups
