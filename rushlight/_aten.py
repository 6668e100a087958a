"""torch.ops.aten: the functions of this package by the names of PyTorch's operators.

torch.ops.aten.mm and torch.ops.aten.mm.default compute with torch.mm, whatever an overload is
called.
"""

from __future__ import annotations

from functools import cache

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._aten_backward import BACKWARDS
from rushlight._dispatch.kernels import Kernel, kernel_of
from rushlight._op_overload import OpOverloadPacket
from rushlight.nn._reduction import NAMES as REDUCTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_PREFIXES = ("fft", "linalg", "special")


def packet_of(name: str) -> OpOverloadPacket | None:
    """The operator of a name, None if there is none."""
    function = _OTHERS.get(name) or _public(name)
    return None if function is None else OpOverloadPacket("aten", name, function)


def _public(name: str) -> Callable[..., Any] | None:
    prefix, _, rest = name.partition("_")
    homes: list[Any] = [rl, rl.nn.functional, Tensor]
    if name.endswith("_"):
        homes = [Tensor, rl.nn.functional]
    elif prefix in _PREFIXES:
        homes, name = [getattr(rl, prefix)], rest
    for home in homes:
        found = getattr(home, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None


def _index(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return input[tuple(slice(None) if index is None else index for index in indices)]


def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    dim %= input.dim()
    return input[(*[slice(None)] * dim, slice(start, end, step))]


def _to_copy(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    options = {"memory_format": memory_format} if memory_format is not None else {}
    return input.to(device, dtype, non_blocking, copy=True, **options)


def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return rl.softmax(input.float() if half_to_float else input, dim)


def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return rl.log_softmax(input.float() if half_to_float else input, dim)


@cache
def _kernel(name: str) -> Kernel:
    """An op of the core, for what its public function does not return."""
    index = next(i for i, row in enumerate(_C._op_table()) if row["name"] == name)
    return kernel_of(name, index)


def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """layer_norm with the mean and the reciprocal of the standard deviation."""
    kernel, dims = _kernel("_layer_norm"), len(normalized_shape)
    is_shape = list(input.shape[input.dim() - dims :]) == list(normalized_shape)
    if is_shape and kernel.knows(input, dims, weight, bias, eps):
        return kernel(input, dims, weight, bias, eps)
    output = rl.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)
    over = list(range(input.dim() - dims, input.dim()))
    var, mean = rl.var_mean(input, over, correction=0, keepdim=True)
    return output, mean, (var + eps).rsqrt()


def _fused_rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    """rms_norm with what it multiplies by."""
    step = rl.finfo(rl.float64 if input.dtype == rl.float64 else rl.float32).eps
    eps = step if eps is None else eps
    kernel, dims = _kernel("_rms_norm"), len(normalized_shape)
    is_shape = list(input.shape[input.dim() - dims :]) == list(normalized_shape)
    if is_shape and kernel.knows(input, dims, weight, eps):
        return kernel(input, dims, weight, eps)
    output = rl.nn.functional.rms_norm(input, normalized_shape, weight, eps)
    over = list(range(input.dim() - dims, input.dim()))
    return output, (input.square().mean(over, keepdim=True) + eps).rsqrt()


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """group_norm with the mean and the reciprocal of the standard deviation of each group."""
    kernel = _kernel("_group_norm")
    if kernel.knows(input, group, weight, bias, eps):
        return kernel(input, group, weight, bias, eps)
    output = rl.nn.functional.group_norm(input, group, weight, bias, eps)
    var, mean = rl.var_mean(input.reshape(N, group, -1), -1, correction=0)
    return output, mean, (var + eps).rsqrt()


def nll_loss_forward(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """nll_loss with the sum of the weights of the targets."""
    kernel = _kernel("_nll_loss")
    if kernel.knows(input, target, weight, ignore_index, reduction):
        return kernel(input, target, weight, ignore_index, reduction)
    kind = REDUCTIONS[reduction]
    loss = rl.nn.functional.nll_loss(
        input, target, weight, ignore_index=ignore_index, reduction=kind
    )
    counted = target[target != ignore_index]
    total = input.new_tensor(float(counted.numel())) if weight is None else weight[counted].sum()
    return loss, total


def _padding(mode: str) -> Callable[[Tensor, Sequence[int]], Tensor]:
    return lambda input, padding: rl.nn.functional.pad(input, padding, mode)


def _upsample(mode: str, dims: int) -> Callable[..., Tensor]:
    """upsample_bilinear2d and its like: with a scale for each dim, or a list of them (vec)."""
    has_corners = mode in ("linear", "bilinear", "bicubic", "trilinear")

    def upsample(
        input: Tensor,
        output_size: Sequence[int] | None,
        *options: Any,
        align_corners: bool | None = None,
        scale_factors: Sequence[float] | None = None,
    ) -> Tensor:
        rest = list(options)
        if has_corners and rest:
            align_corners = rest.pop(0)
        scales = rest[0] if len(rest) == 1 and not isinstance(rest[0], (int, float)) else rest
        scales = scale_factors or (scales if scales and None not in scales else None)
        if output_size is not None:
            scales = None
        elif scales is not None and len(scales) != dims:
            raise RuntimeError(f"upsample: {dims} scales are needed, not {len(scales)}.")
        return rl.nn.functional.interpolate(input, output_size, scales, mode, align_corners)

    return upsample


def _asked(name: str) -> Callable[..., Any]:
    """What asks a tensor for a size or the like; sizes are known numbers here."""

    def ask(input: Tensor, dim: int | None = None) -> Any:
        method = getattr(input, name)
        return method() if dim is None else method(dim)

    return ask


# The operators that Python has other words for.
_OTHERS: dict[str, Callable[..., Any]] = {
    "_fused_rms_norm": _fused_rms_norm,
    "_local_scalar_dense": Tensor.item,
    "_log_softmax": _log_softmax,
    "_pin_memory": Tensor.pin_memory,
    "_softmax": _softmax,
    "_sparse_addmm": rl.sparse.addmm,
    "_to_copy": _to_copy,
    "_unsafe_view": Tensor.view,
    "alias": lambda input: input.view_as(input),
    "col2im": rl.nn.functional.fold,
    "im2col": rl.nn.functional.unfold,
    "index": _index,
    "lift_fresh": _C._lift_fresh,
    "lift_fresh_copy": Tensor.clone,
    "native_batch_norm": _C._batch_norm,
    "native_group_norm": native_group_norm,
    "native_layer_norm": native_layer_norm,
    "nll_loss_forward": nll_loss_forward,
    "slice": _slice,
    **{f"sym_{name}": _asked(name) for name in ("numel", "size", "storage_offset", "stride")},
    "unfold": Tensor.unfold,
    "_adaptive_avg_pool2d": rl.nn.functional.adaptive_avg_pool2d,
    "_adaptive_avg_pool3d": rl.nn.functional.adaptive_avg_pool3d,
    "hardswish_": lambda input: rl.nn.functional.hardswish(input, inplace=True),
    **{f"reflection_pad{dims}d": _padding("reflect") for dims in (1, 2, 3)},
    **{f"replication_pad{dims}d": _padding("replicate") for dims in (1, 2, 3)},
    **{
        f"{name}{dims}d": _upsample(mode, dims)
        for name, mode, all_dims in (
            ("upsample_nearest", "nearest", (1, 2, 3)),
            ("_upsample_nearest_exact", "nearest-exact", (1, 2, 3)),
            ("upsample_linear", "linear", (1,)),
            ("upsample_bilinear", "bilinear", (2,)),
            ("upsample_bicubic", "bicubic", (2,)),
            ("upsample_trilinear", "trilinear", (3,)),
        )
        for dims in all_dims
    },
    **BACKWARDS,
}
