"""torch.nested: batches of tensors that differ in size, without padding.

There are two layouts. torch.jagged has one ragged dim, and is what most ops work on at once;
torch.strided has parts of any sizes. _tensor.py has their classes, _dispatch.py and the table in
_rules.py what ops do with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._layout import jagged, strided
from rushlight.nested._ragged import Ragged
from rushlight.nested._tensor import Nested, jagged_of, strided_of

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def nested_tensor(
    tensor_list: Sequence[Any] | Tensor,
    *,
    dtype: rl.dtype | None = None,
    layout: rl.layout | None = None,
    device: rl.device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Returns a nested tensor with copies of the parts, without their history.

    Args:
        tensor_list: the parts: tensors with equally many dims, or lists of numbers.
        dtype: of the result; that of the first part if None.
        layout: torch.strided, which it is if None, or torch.jagged, where the parts differ along
            one dim only.
        device: where to put it; where the first part is if None.
        requires_grad: whether the result is a leaf that collects a gradient.
        pin_memory: whether to put it in pinned memory.

    Raises:
        RuntimeError: if the parts have different numbers of dims, or do not suit the layout.

    Example:
        >>> parts = [torch.ones(2, 4), torch.ones(3, 4)]
        >>> x = torch.nested.nested_tensor(parts, layout=torch.jagged)
        >>> x.offsets()
        tensor([0, 2, 5])
        >>> [part.sum().item() for part in x.unbind()]
        [8.0, 12.0]
    """
    if isinstance(tensor_list, Nested):
        parts: list[Any] = list(tensor_list.unbind())
    elif isinstance(tensor_list, Tensor) and layout is jagged:
        parts = list(tensor_list.unbind())
    elif isinstance(tensor_list, (list, tuple)):
        parts = list(tensor_list)
    else:
        raise TypeError(
            "nested_tensor: Only lists of tensors, or of lists of numbers, are accepted, got "
            f"{type(tensor_list).__name__}."
        )
    tensors = [part.detach() if isinstance(part, Tensor) else rl.tensor(part) for part in parts]
    made = _nested("nested_tensor", tensors, dtype, device, layout)
    if pin_memory:
        made = made.pin_memory()
    return made.requires_grad_(requires_grad)


def as_nested_tensor(
    ts: Tensor | Sequence[Tensor],
    dtype: rl.dtype | None = None,
    device: rl.device | str | None = None,
    layout: rl.layout | None = None,
) -> Tensor:
    """Returns a nested tensor of parts, to which gradients flow back.

    Args:
        ts: the parts, or a tensor of which they are the samples, whose memory is shared; a nested
            tensor comes back as it is.
        dtype: of the result; that of the first part if None.
        device: where to put it; where the first part is if None.
        layout: torch.strided, which it is if None, or torch.jagged.

    Raises:
        TypeError: if ts is anything else.
        RuntimeError: if the parts have different numbers of dims, or do not suit the layout.

    Example:
        >>> a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
        >>> x = torch.nested.as_nested_tensor([a, b], layout=torch.jagged)
        >>> (x * x).sum().backward()
        >>> b.grad
        tensor([2., 2., 2.])
    """
    if isinstance(ts, Nested):
        if ts.layout is not (layout or ts.layout):
            raise RuntimeError(
                f"as_nested_tensor: cannot convert from {ts.layout} to {layout}. Make a new one of "
                "unbind()."
            )
        return ts.to(device=device, dtype=dtype)
    if isinstance(ts, Tensor):
        if ts.dim() < 2:
            raise RuntimeError(
                "as_nested_tensor(): Expected tensor argument to have dim() > 1, the batch and "
                f"another, got {ts.dim()}."
            )
        moved = ts.to(device=device, dtype=dtype).contiguous()
        if layout is jagged:
            ragged = Ragged.of_sizes([moved.shape[1]] * moved.shape[0], moved.device)
            return jagged_of(moved.flatten(0, 1), ragged, 1)
        return strided_of(moved.flatten(), [moved.shape[1:]] * moved.shape[0])
    if not isinstance(ts, (list, tuple)) or not all(isinstance(t, Tensor) for t in ts):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of "
            f"tensors, got {type(ts).__name__}."
        )
    return _nested("as_nested_tensor", list(ts), dtype, device, layout)


def _nested(
    name: str,
    parts: list[Tensor],
    dtype: rl.dtype | None,
    device: Any,
    layout: rl.layout | None,
) -> Nested:
    """The nested tensor of copies of the parts."""
    if layout not in (None, strided, jagged):
        raise RuntimeError(f"{name}: layout must be torch.strided or torch.jagged, got {layout}.")
    if layout is not jagged and not parts:
        return strided_of(rl.empty(0, dtype=dtype, device=device), [])
    if not parts:
        raise RuntimeError(f"{name}: Cannot construct a nested tensor from an empty tensor list.")
    if len({part.dim() for part in parts}) > 1:
        raise RuntimeError(
            f"{name}: When constructing a nested tensor, all tensors in list must have the same "
            f"dim, got {sorted({part.dim() for part in parts})}."
        )
    if len({part.dtype for part in parts}) > 1 and layout is jagged and dtype is None:
        raise RuntimeError(
            f"{name}: When constructing a nested tensor, all tensors in list must have the same "
            f"dtype, got {sorted({str(part.dtype) for part in parts})}. Pass dtype."
        )
    dtype, device = dtype or parts[0].dtype, parts[0].device if device is None else device
    parts = [part.to(device=device, dtype=dtype) for part in parts]
    if layout is not jagged:
        buffer = rl.cat([part.reshape(-1) for part in parts])
        return strided_of(buffer, [part.shape for part in parts])
    if not parts[0].dim():
        raise RuntimeError(
            f"{name}: Cannot construct a nested tensor from a list of zero-dim tensors."
        )
    differs = [
        dim
        for dim, sizes in enumerate(zip(*(p.shape for p in parts), strict=True))
        if len(set(sizes)) > 1
    ]
    if len(differs) > 1:
        raise RuntimeError(
            f"{name}: Cannot represent given tensor list as a nested tensor with the jagged layout"
            f": the parts differ along dims {differs}, but the jagged layout only allows for a "
            "single ragged dimension. Use layout=torch.strided."
        )
    ragged_idx = 1 + (differs[0] if differs else 0)
    sizes = [part.shape[ragged_idx - 1] for part in parts]
    ragged = Ragged.of_sizes(sizes, parts[0].device)
    return jagged_of(rl.cat(parts, ragged_idx - 1), ragged, ragged_idx)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """Returns the nested tensor in layout jagged of values, on the same memory.

    Tensors made from the same offsets have the same ragged size, so that ops take them together.

    Args:
        values: all rows, (rows, ...), or with the rows at another dim.
        offsets: integers (parts + 1): where each part begins, and where the last one ends.
        lengths: integers (parts): the size of each part, if there are rows between them. Alone, of
            parts that lie side by side.
        jagged_dim: the ragged dim of the result; 1 if None.
        min_seqlen: has no effect; sizes are read from offsets.
        max_seqlen: has no effect.

    Raises:
        RuntimeError: without offsets and lengths, or if they do not fit values.

    Example:
        >>> values, offsets = torch.arange(5), torch.tensor([0, 2, 5])
        >>> x = torch.nested.nested_tensor_from_jagged(values, offsets)
        >>> x.unbind()
        (tensor([0, 1]), tensor([2, 3, 4]))
    """
    if not isinstance(values, Tensor) or isinstance(values, Nested):
        raise TypeError(
            "nested_tensor_from_jagged(): argument 'values' must be a plain Tensor, not "
            f"{type(values).__name__}."
        )
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        offsets, lengths = rl.cat([lengths.new_zeros(1), lengths.cumsum(0)]), None
    jagged_dim = 1 if jagged_dim is None else jagged_dim
    if not 1 <= jagged_dim <= values.dim():
        raise RuntimeError(
            f"nested_tensor_from_jagged: jagged_dim is {jagged_dim}, but must be from 1 to "
            f"{values.dim()} for values with {values.dim()} dims."
        )
    ragged = Ragged.of(offsets, lengths)
    ragged.check(values.shape[jagged_dim - 1])
    return jagged_of(values, ragged, jagged_dim)


def narrow(
    tensor: Tensor,
    dim: int,
    start: int | Tensor,
    length: int | Tensor,
    layout: rl.layout = strided,
) -> Tensor:
    """Returns a nested tensor of what lies in an interval of each sample along a dim.

    Args:
        tensor: (parts, ...), a plain tensor.
        dim: along which; 1 for layout jagged.
        start: where the interval begins: a number, or integers (parts) for layout jagged.
        length: how long it is, likewise.
        layout: of the result. In layout jagged it shares the memory of tensor.

    Raises:
        RuntimeError: if start or length does not suit the layout.

    Example:
        >>> x, length = torch.arange(6).view(2, 3), torch.tensor([1, 2])
        >>> torch.nested.narrow(x, 1, 0, length, layout=torch.jagged).unbind()
        (tensor([0]), tensor([3, 4]))
    """
    if layout is strided or layout is None:
        if not isinstance(start, int) or not isinstance(length, int):
            raise RuntimeError(
                "narrow: start and length must be integers for the strided layout. Use "
                "layout=torch.jagged."
            )
        return as_nested_tensor(tensor.narrow(dim, start, length))
    if layout is not jagged:
        raise RuntimeError(f"narrow: layout must be torch.strided or torch.jagged, got {layout}.")
    if dim != 1:
        raise RuntimeError(f"narrow: layout jagged only supports dim=1, got {dim}.")
    batch, size = tensor.shape[:2]
    starts, lengths = (
        rl.as_tensor(given, device=tensor.device).expand(batch) for given in (start, length)
    )
    starts = starts + size * rl.arange(batch, device=tensor.device)
    offsets = rl.cat([starts, starts[-1:] + lengths[-1:]])
    return nested_tensor_from_jagged(tensor.flatten(0, 1), offsets, lengths)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """Returns the elements of each row that a mask selects, as a nested tensor in layout jagged.

    Args:
        tensor: (..., size), rows in any dims.
        mask: bool, broadcast to the same shape.

    Raises:
        RuntimeError: if the shapes do not fit.

    Example:
        >>> x, mask = torch.arange(4).view(2, 2), torch.tensor([[True, False], [True, True]])
        >>> torch.nested.masked_select(x, mask).unbind()
        (tensor([0]), tensor([2, 3]))
    """
    mask = mask.broadcast_to(tensor.shape)
    lengths = mask.sum(-1).reshape(-1)
    offsets = rl.nn.functional.pad(lengths.cumsum(0), (1, 0))
    return nested_tensor_from_jagged(tensor.masked_select(mask), offsets)


def to_padded_tensor(
    input: Tensor,
    padding: float,
    output_size: Sequence[int] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the parts of a nested tensor in a plain one, each filled up to the largest size.

    Args:
        input: a nested tensor.
        padding: what fills up.
        output_size: the shape of the result; as small as the parts allow if None.
        out: must be None.

    Raises:
        RuntimeError: if input is not nested, or its parts do not fit output_size.

    Example:
        >>> x = torch.nested.nested_tensor([[1.0], [2.0, 3.0]])
        >>> torch.nested.to_padded_tensor(x, 0.0)
        tensor([[1., 0.],
                [2., 3.]])
    """
    return input.to_padded_tensor(padding, output_size, out)
