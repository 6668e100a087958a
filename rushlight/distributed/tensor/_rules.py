"""What each op may keep apart: the table of rules.

A rule gives every dim of an op's tensors a label. Dims with the same label are cut alike: if a rank
has a part of one, its parts of the others are what belongs to it. None is for dims that the op must
see whole. A label that the result does not have is one that the op sums over, so the ranks' results
are addends. _dispatch.py chooses among the labels; ops without a rule see whole tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight._elementwise import elementwise_ops
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec
from rushlight.distributed.tensor._random import RANDOM

if TYPE_CHECKING:
    from rushlight.distributed.tensor._api import DTensor
    from rushlight.distributed.tensor._dispatch import Call

Labels = tuple[Hashable, ...]
Rule = Callable[["Call"], "Signature | None"]

__all__ = ["LOSSES", "Signature", "rule_for"]


@dataclass
class Signature:
    """What a rule says of a call.

    Args:
        inputs: the labels of each tensor's dims.
        output: those of every result.
        sums: whether labels that output lacks are summed over.
        linear: "all" if the op of addends gives addends of the result, "each" if it does when one
            of the tensors is addends; "first" when the first is.
        added: which tensors are added to the result, and must be divided among addends.
        shape: of the result, where it is known without running the op.
        local: runs in place of the op with (args, kwargs, this rank's shape of the result, the
            layouts of the tensors).
    """

    inputs: Sequence[Labels]
    output: Labels
    sums: bool = False
    linear: str = ""
    added: tuple[int, ...] = ()
    shape: rl.Size | None = None
    local: Callable[[Any, Any, rl.Size, list[DTensorSpec]], Any] | None = None


# Element by element

# With reduction="none".
LOSSES = frozenset(
    {
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "huber_loss",
        "l1_loss",
        "mse_loss",
        "smooth_l1_loss",
    }
)
# Of addends they give addends.
_LINEAR = {
    "_cast",
    "_to",
    "alias",
    "clone",
    "contiguous",
    "detach",
    "neg",
    "negative",
    "zeros_like",
}
_SUMS = {"add", "sub", "subtract"}
_PRODUCTS = {"mul", "multiply", "div", "divide", "true_divide"}


@lru_cache(None)
def _elementwise() -> frozenset[str]:
    """The ops, and losses, that compute each element by itself."""
    return (elementwise_ops() | LOSSES) - RANDOM


def _aligned(tensor: DTensor, shape: rl.Size) -> Labels:
    """Labels counted from the last dim, None for dims that are repeated."""
    count = tensor.dim()
    return tuple(
        None if tensor.shape[i] != shape[len(shape) - count + i] else i - count
        for i in range(count)
    )


def _by_elements(call: Call) -> Signature | None:
    if call.name == "where" and len(call.tensors) == 1 and len(call.args) == 1:
        return None  # the places where it is true
    if call.name in LOSSES and call.kwargs.get("reduction") != "none":
        return None
    shape = rl.broadcast_shapes(*(tensor.shape for tensor in call.tensors))
    if call.in_place and shape != call.tensors[0].shape:
        return None
    inputs = [_aligned(tensor, shape) for tensor in call.tensors]
    name, linear = call.name.rstrip("_"), ""
    if name in _LINEAR:
        dtypes = [x for x in (*call.args, *call.kwargs.values()) if isinstance(x, rl.dtype)]
        linear = "all" if all(d.is_floating_point or d.is_complex for d in dtypes) else ""
    elif name in _SUMS and len(call.tensors) == 2:
        linear = "all"
    elif name in _PRODUCTS and "rounding_mode" not in call.kwargs:
        linear = "each" if name.startswith("mul") else "first"
    return Signature(inputs, tuple(range(-len(shape), 0)), linear=linear, shape=shape)


# Products


def _batch_dims(a: Sequence[int], b: Sequence[int]) -> tuple[Labels, Labels, Labels]:
    """The labels of the dims before the matrices of two tensors and of their product."""
    count = max(len(a), len(b))
    padded = [(1,) * (count - len(x)) + tuple(x) for x in (a, b)]
    labels = [("batch", i) for i in range(count)]

    def of(mine: Sequence[int], other: Sequence[int], length: int) -> Labels:
        found = [
            None if size == 1 and its != 1 else label
            for size, its, label in zip(mine, other, labels, strict=True)
        ]
        return tuple(found[count - length :])

    return of(padded[0], padded[1], len(a)), of(padded[1], padded[0], len(b)), tuple(labels)


def _matmul(call: Call) -> Signature | None:
    a, b = call.tensors[:2]
    if a.dim() < 2 or b.dim() < 2 or len(call.tensors) > 2:
        return None
    first, second, both = _batch_dims(a.shape[:-2], b.shape[:-2])
    inputs = [(*first, "row", "inner"), (*second, "inner", "column")]
    return Signature(inputs, (*both, "row", "column"), sums=True, linear="each")


def _linear(call: Call) -> Signature | None:
    x, weight, *bias = call.tensors
    if weight.dim() != 2 or x.dim() < 1 or any(b.dim() != 1 for b in bias):
        return None
    rest = tuple(range(x.dim() - 1))
    inputs = [(*rest, "inner"), ("column", "inner"), *(("column",) for _ in bias)]
    return Signature(
        inputs, (*rest, "column"), sums=True, linear="each", added=(2,) if bias else ()
    )


def _attention(call: Call) -> Signature | None:
    query, key, value, *mask = call.tensors
    leading = query.shape[:-2]
    if call.argument(4, "dropout_p", 0.0) or any(
        x.shape[:-2] != leading for x in (query, key, value)
    ):
        return None
    leading_labels = range(-query.dim(), -2)
    shape = rl.Size((*leading, 0, 0))
    inputs = [
        tuple(label if label in leading_labels else None for label in _aligned(x, shape))
        for x in (query, key, value, *mask)
    ]
    return Signature(inputs, (*leading_labels, None, None))


def _embedding(call: Call) -> Signature | None:
    indices, weight = call.tensors
    if call.argument(3, "max_norm", None) is not None or weight.dim() != 2:
        return None
    if call.argument(5, "scale_grad_by_freq", False) or call.argument(6, "sparse", False):
        return None
    padding = call.argument(2, "padding_idx", None)
    rest = tuple(range(indices.dim()))
    rows = weight.shape[0]

    def local(args: Any, kwargs: Any, shape: rl.Size, specs: list[DTensorSpec]) -> Any:
        """Rows that are not here are zeros."""
        indices, weight = args[:2]
        start = specs[1].offset(0)
        if bool(((indices < 0) | (indices >= rows)).any()):
            raise IndexError(f"embedding: indices must be in [0, {rows}), the rows of weight.")
        here = (indices >= start) & (indices < start + len(weight))
        if not len(weight):
            return weight.sum(0).expand(shape)  # zeros, that all ranks differentiate
        own = None
        if padding is not None and start <= padding % rows < start + len(weight):
            own = padding % rows - start
        found = rl.nn.functional.embedding(rl.where(here, indices - start, 0), weight, own)
        return found * here.unsqueeze(-1)

    is_cut = any(p.is_shard(0) for p in weight.placements)
    return Signature(
        [rest, ("row", "column")], (*rest, "column"), sums=True, local=local if is_cut else None
    )


# Reductions, and what works along some dims


def _dims(value: Any, count: int) -> set[int]:
    """Dims as an op names them: one, several, or all."""
    if value is None or value == () or value == []:
        return set(range(count))
    return {d % count for d in ([value] if isinstance(value, int) else value)} if count else set()


def _reduction(call: Call) -> Signature | None:
    x = call.tensors[0]
    dim, keep = call.argument(1, "dim", None), call.argument(2, "keepdim", False)
    if call.name in ("max", "min") and not isinstance(dim, int):
        return None
    if isinstance(dim, bool) or (call.name in ("var", "std") and len(call.args) > 2):
        return None  # unbiased by its place
    gone = _dims(dim, x.dim())
    labels = tuple(range(x.dim()))
    output = tuple(None if d in gone else d for d in labels if keep or d not in gone)
    if call.name not in ("sum", "mean"):
        return Signature([labels], output)
    count = 1
    for d in gone:
        count *= x.shape[d]

    def local(args: Any, kwargs: Any, shape: rl.Size, specs: list[DTensorSpec]) -> Any:
        dtype = kwargs.get("dtype")
        return rl.sum(args[0], sorted(gone), bool(keep), dtype=dtype) / count

    is_mean = call.name == "mean" and x.dtype.is_floating_point
    if call.name == "mean" and not is_mean:
        return None
    return Signature([labels], output, sums=True, linear="all", local=local if is_mean else None)


def _along(*dims: int, first: int = 1, name: str = "dim", default: Any = None) -> Rule:
    """The rule of ops that keep the shape and see some dims whole: these, or the one they name."""

    def rule(call: Call) -> Signature | None:
        x = call.tensors[0]
        named = dims or call.argument(first, name, default)
        if named is None or x.dim() == 0 or len(call.tensors) > 1:
            return None
        whole = _dims(named, x.dim())
        labels = tuple(None if d in whole else d for d in range(x.dim()))
        return Signature([labels], labels)

    return rule


def _layer_norm(call: Call) -> Signature | None:
    x, *parameters = call.tensors
    shape = call.argument(1, "normalized_shape", ())
    kept = x.dim() - (1 if isinstance(shape, int) else len(shape))
    labels = (*range(kept), *(None,) * (x.dim() - kept))
    return Signature([labels, *((None,) * p.dim() for p in parameters)], labels)


def _batched(ndim: int) -> Rule:
    """The rule of ops on pictures, of so many dims with the batch: each is seen whole."""

    def rule(call: Call) -> Signature | None:
        x, *others = call.tensors
        if x.dim() != ndim:
            return None
        rest = (None,) * (ndim - 1)
        return Signature([("batch", *rest), *((None,) * t.dim() for t in others)], ("batch", *rest))

    return rule


def _cross_entropy(call: Call) -> Signature | None:
    if len(call.tensors) != 2 or call.tensors[0].dim() < 2:
        return None
    if call.kwargs.get("reduction") != "none":  # _cross_entropy.py does the others
        return None
    logits, target = call.tensors
    if target.dim() != logits.dim() - 1:
        return None
    rest = tuple(range(1, target.dim()))
    return Signature([("batch", None, *rest), ("batch", *rest)], ("batch", *rest))


# Views


def _as_shape(args: Any, kwargs: Any, shape: rl.Size, specs: list[DTensorSpec]) -> Any:
    return args[0].reshape(shape)


def _from_dims(order: Callable[[Any, int], list[int | None]]) -> Rule:
    """The rule of views: which dim of the tensor each dim of the result is, None for others."""

    def rule(call: Call) -> Signature | None:
        x = call.tensors[0]
        output = tuple(order(call, x.dim()))
        if len(call.tensors) > 1:
            return None
        return Signature([tuple(range(x.dim()))], output, linear="all")

    return rule


def _permuted(call: Call, count: int) -> list[int | None]:
    dims = call.args[1:] or call.kwargs["dims"]
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    return [d % count for d in dims]


def _transposed(call: Call, count: int) -> list[int | None]:
    order: list[int | None] = list(range(count))
    if call.name == "t":
        return order[::-1]
    a = call.argument(1, "dim0", call.kwargs.get("axis0", 0))
    b = call.argument(2, "dim1", call.kwargs.get("axis1", 1))
    order[a], order[b] = order[b], order[a]
    return order


def _unsqueezed(call: Call, count: int) -> list[int | None]:
    order: list[int | None] = list(range(count))
    order.insert(call.argument(1, "dim", 0) % (count + 1), None)
    return order


def _squeezed(call: Call) -> Signature | None:
    """Not by the op: a part may have one element along a dim that the whole has more of."""
    x = call.tensors[0]
    gone = _dims(call.argument(1, "dim", None), x.dim())
    kept = tuple(d for d in range(x.dim()) if d not in gone or x.shape[d] != 1)
    shape = rl.Size(x.shape[d] for d in kept)
    labels = tuple(d if d in kept else None for d in range(x.dim()))
    return Signature([labels], kept, linear="all", shape=shape, local=_as_shape)


def _picked(call: Call, count: int) -> list[int | None]:
    """Of x[...]: dims that are taken as they are."""
    index = call.args[1] if isinstance(call.args[1], tuple) else (call.args[1],)
    used = sum(item is not None and item is not Ellipsis for item in index)
    order: list[int | None] = []
    at = 0
    for item in index:
        if item is None:
            order.append(None)
        elif item is Ellipsis:
            order += range(at, at + count - used)
            at += count - used
        else:
            if isinstance(item, slice):
                order.append(at if item == slice(None) else None)
            at += 1
    return [*order, *range(at, count)]


def _getitem(call: Call) -> Signature | None:
    index = call.args[1] if isinstance(call.args[1], tuple) else (call.args[1],)
    plain = (slice, type(None), type(Ellipsis))
    if any(isinstance(i, bool) or not isinstance(i, (int, *plain)) for i in index):
        return None
    signature = _from_dims(_picked)(call)
    return None if signature is None else _whole_unless_kept(signature)


def _whole_unless_kept(signature: Signature) -> Signature:
    """Dims that the result does not have are seen whole."""
    kept = set(signature.output)
    signature.inputs = [
        tuple(label if label in kept else None for label in labels) for labels in signature.inputs
    ]
    return signature


def _cut(position: int = 2, default: int = 0, drops: bool = False) -> Rule:
    """The rule of ops that take something out of one dim, which drops it or leaves it whole."""

    def rule(call: Call) -> Signature | None:
        x = call.tensors[0]
        at = call.argument(position, "dim", default) % max(x.dim(), 1)
        labels = tuple(None if d == at else d for d in range(x.dim()))
        output = tuple(d for d in labels if not drops or d is not None)
        inputs = [labels, *((None,) * t.dim() for t in call.tensors[1:])]
        return Signature(inputs, output, linear="all" if len(inputs) == 1 else "")

    return rule


def _joined(call: Call) -> Signature | None:
    """Of cat and stack."""
    count = call.tensors[0].dim()
    if any(t.dim() != count for t in call.tensors):
        return None
    at = call.argument(1, "dim", 0)
    labels: list[Hashable] = list(range(count))
    if call.name == "stack":
        output = list(labels)
        output.insert(at % (count + 1), None)
    else:
        labels[at] = None
        output = labels
    return Signature([tuple(labels)] * len(call.tensors), tuple(output), linear="all")


def _reshaped(call: Call) -> Signature | None:
    """Of view, reshape and their kin: dims that stay, and the first of those that are joined."""
    x = call.tensors[0]
    if any(isinstance(value, rl.dtype) for value in (*call.args, *call.kwargs.values())):
        return None
    shape = call.result_shape()
    inputs: list[Hashable] = [None] * x.dim()
    output: list[Hashable] = [None] * len(shape)
    i = j = 0
    while i < x.dim() and j < len(shape):
        start, begin = i, j
        left, right = x.shape[i], shape[j]
        while left != right and (i + 1 < x.dim() or j + 1 < len(shape)):
            if left < right and i + 1 < x.dim():
                i += 1
                left *= x.shape[i]
            elif j + 1 < len(shape):
                j += 1
                right *= shape[j]
            else:
                break
        parts = 1
        for m, placement in enumerate(x.placements):
            if placement.is_shard(start):
                parts *= x.device_mesh.size(m)
        stays = (start, begin) == (i, j)
        if stays or (x.shape[start] % parts == 0 and shape[begin] % parts == 0):
            inputs[start] = output[begin] = start
        i, j = i + 1, j + 1

    return Signature([tuple(inputs)], tuple(output), linear="all", shape=shape, local=_as_shape)


def _expanded(call: Call) -> Signature | None:
    x = call.tensors[0]
    shape = call.result_shape()

    def local(args: Any, kwargs: Any, shape: rl.Size, specs: list[DTensorSpec]) -> Any:
        return args[0].expand(shape)

    labels = _aligned(x, shape)
    output = (*(None,) * (len(shape) - x.dim()), *labels)
    return Signature([labels], output, linear="all", shape=shape, local=local)


_RULES: dict[Rule, tuple[str, ...]] = {
    _matmul: ("matmul", "mm", "bmm", "__matmul__"),
    _linear: ("linear",),
    _attention: ("scaled_dot_product_attention",),
    _embedding: ("embedding",),
    _reduction: (
        *("sum", "mean", "amax", "amin", "prod", "any", "all", "argmax", "argmin"),
        *("logsumexp", "max", "min", "var", "std"),
    ),
    _along(default=None): (*("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp"),),
    _along(default=-1): ("sort", "argsort"),
    _along(-1, -2): ("tril", "triu"),
    _layer_norm: ("layer_norm", "rms_norm"),
    _batched(3): ("conv1d", "max_pool1d", "avg_pool1d", "adaptive_avg_pool1d"),
    _batched(4): ("conv2d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"),
    _batched(5): ("conv3d", "max_pool3d", "avg_pool3d", "adaptive_avg_pool3d"),
    _cross_entropy: ("cross_entropy",),
    _from_dims(_permuted): ("permute",),
    _from_dims(_transposed): ("t", "transpose", "swapaxes", "swapdims"),
    _from_dims(_unsqueezed): ("unsqueeze",),
    _squeezed: ("squeeze",),
    _getitem: ("__getitem__",),
    _cut(): ("split", "chunk", "split_with_sizes", "tensor_split"),
    _cut(1): ("narrow", "index_select"),
    _cut(1, drops=True): ("unbind", "select"),
    _joined: ("cat", "concat", "stack"),
    _reshaped: ("reshape", "view", "flatten", "unflatten", "ravel", "reshape_as", "view_as"),
    _expanded: ("expand", "expand_as", "broadcast_to"),
}
_BY_NAME = {name: rule for rule, names in _RULES.items() for name in names}


def rule_for(name: str) -> Rule | None:
    """Returns the rule of an op; None if it has none."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    known = _elementwise()
    return _by_elements if name in known or name.removesuffix("_") in known else None
