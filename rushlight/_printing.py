"""The text of a tensor, in PyTorch's layout.

Owns repr and its options. Numbers are read as Python values, of a tensor cut to what is shown.
Invariant: all numbers of a tensor are written in one notation and one width.
"""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


class _Options:
    precision: int
    threshold: float
    edgeitems: int
    linewidth: int
    sci_mode: bool | None = None


_options = _Options()
vars(_options).update(_PROFILES["default"])


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed; what is None stays, but for sci_mode.

    Args:
        precision: digits after the point; 4 at first.
        threshold: number of elements above which the middle is left out; 1000 at first.
        edgeitems: elements shown at each end of a dim whose middle is left out; 3 at first.
        linewidth: characters on a line; 80 at first.
        profile: "default", "short" or "full" sets all of these, before the others count.
        sci_mode: whether to write 1.0e+00; None decides it by the numbers.

    Example:
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([1.12345])
        tensor([1.12])
        >>> torch.set_printoptions(profile="default")
        >>> torch.tensor([1.12345])
        tensor([1.1235])
    """
    values = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    vars(_options).update(_PROFILES.get(profile or "", {}))
    vars(_options).update({name: value for name, value in values.items() if value is not None})
    _options.sci_mode = sci_mode


def tensor_repr(tensor: Tensor) -> str:
    """Returns the text of a tensor: its numbers, and of its type what is not usual."""
    text = _plain_repr(tensor)
    return f"Parameter({text})" if getattr(tensor, "_is_param", False) else text


def _plain_repr(tensor: Tensor) -> str:
    if lift := rl._C._lift_of(tensor):
        kind, _, value, tangent = lift
        return _lifted_repr(kind, value, tangent)
    if rl._C._is_wrapper(tensor):
        return _wrapper_repr(tensor)
    if tensor.layout is not rl.strided:
        return _sparse_repr(tensor)
    prefix = f"{_class_name(tensor)}("
    default = rl.get_default_dtype()
    notes = []
    if tensor.device.type != "cpu":
        notes.append(f"device='{tensor.device}'")
    if tensor.device.type == "meta":
        body = "..."
        notes.append(f"size={tuple(tensor.shape)}")
        usual = (default,)
    elif tensor.numel() == 0:
        body = "[]"
        if tensor.dim() != 1:
            notes.append(f"size={tuple(tensor.shape)}")
        # No element tells the dtype, so that even int64 is written.
        usual = (default,)
    else:
        body = _body(tensor.detach(), len(prefix))
        if not _options.edgeitems:
            notes.append(f"size={tuple(tensor.shape)}")
        usual = (default, _default_complex(default), rl.int64, rl.bool)
    if tensor.dtype not in usual:
        notes.append(f"dtype={tensor.dtype}")
    return _with_notes(prefix + body, notes + _history(tensor), len(prefix))


def quantized_repr(tensor: Any) -> str:
    """Returns the text of a quantized tensor: the numbers it stands for, and how it does."""
    body = _body(tensor.dequantize(), len("tensor(")) if tensor.numel() else "[]"
    scheme = tensor.qscheme()
    notes = [
        f"size={tuple(tensor.shape)}",
        f"dtype={tensor.dtype}",
        f"quantization_scheme={scheme}",
    ]
    if scheme is rl.per_tensor_affine:
        notes += [f"scale={tensor.q_scale()}", f"zero_point={tensor.q_zero_point()}"]
    else:
        notes += [
            f"scale={tensor.q_per_channel_scales()}",
            f"zero_point={tensor.q_per_channel_zero_points()}",
            f"axis={tensor.q_per_channel_axis()}",
        ]
    return _with_notes(f"tensor({body}", notes, len("tensor("))


def _default_complex(default: rl.dtype) -> rl.dtype:
    return rl.complex128 if default is rl.float64 else rl.complex64


def _history(tensor: Tensor) -> list[str]:
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view whose base was written when it must not be
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{node.name()}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


# By layout, the methods that give the indices, and whether what follows the values stands on a line
# of its own.
_SPARSE_PARTS = {
    rl.sparse_coo: (("_indices",), True),
    rl.sparse_csr: (("crow_indices", "col_indices"), False),
    rl.sparse_csc: (("ccol_indices", "row_indices"), False),
    rl.sparse_bsr: (("crow_indices", "col_indices"), False),
    rl.sparse_bsc: (("ccol_indices", "row_indices"), False),
}


def _wrapper_repr(tensor: Tensor) -> str:
    """A tensor without elements, by what it looks like from outside."""
    prefix = f"{_class_name(tensor)}("
    notes = [f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype}"]
    if tensor.device.type != "cpu":
        notes.insert(0, f"device='{tensor.device}'")
    return _with_notes(prefix + "...", notes + _history(tensor), len(prefix))


def _lifted_repr(kind: str, value: Tensor, tangent: Tensor | None) -> str:
    """A batch of vmap with all its samples, or a value with its tangent."""
    if kind == "batch":
        return f"vmap(samples={tensor_repr(value)})"
    assert tangent is not None
    return _with_notes(tensor_repr(value)[:-1], [f"tangent={tensor_repr(tangent)}"], 0)


def _sparse_repr(tensor: Tensor) -> str:
    prefix = f"{_class_name(tensor)}("
    methods, breaks = _SPARSE_PARTS[tensor.layout]
    values = tensor._values() if tensor.is_sparse else tensor.detach().values()
    parts = [(name.removeprefix("_"), getattr(tensor, name)()) for name in methods]
    lines = []
    for name, part in [*parts, ("values", values)]:
        indent = len(prefix) + len(name) + len("=tensor(")
        text = _body(part, indent) if part.numel() else f"[], size={tuple(part.shape)}"
        lines.append(f"{name}=tensor({text})")
    notes = [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
    default = rl.get_default_dtype()
    usual = (default, _default_complex(default), rl.int64, rl.bool)
    if values.dtype not in usual:
        notes.append(f"dtype={values.dtype}")
    notes += [f"layout={tensor.layout}", *_history(tensor)]
    text = prefix + (",\n" + " " * len(prefix)).join(lines)
    return _with_notes(text, notes, len(prefix), breaks)


def nested_repr(tensor: Tensor, contents: Tensor | Sequence[Tensor]) -> str:
    """Returns the text of a nested tensor: its parts, or sizes and offsets of layout jagged."""
    if isinstance(contents, Tensor):
        grad = [f", {note}" for note in _history(tensor)]
        return (
            f"NestedTensor(size={tuple(tensor.shape)}, offsets={contents!r}{''.join(grad)}, "
            f"contiguous={tensor.is_contiguous()})"
        )
    lines = [line for part in contents for line in f"{part.detach()!r},".split("\n")]
    body = "\n".join(f"  {line}" for line in lines).removesuffix(",")
    return _with_notes(f"nested_tensor([\n{body}\n]", _history(tensor), 0)


def _class_name(tensor: Tensor) -> str:
    if type(tensor) is Tensor:
        return "tensor"
    from rushlight.nn.parameter import Buffer, Parameter

    return "tensor" if type(tensor) in (Buffer, Parameter) else type(tensor).__name__


def _with_notes(text: str, notes: list[str], indent: int, breaks: bool = False) -> str:
    """Adds notes and the closing parenthesis, with a new line before a note that does not fit.

    With `breaks` the first note begins a line in any case.
    """
    column = len(text) - text.rfind("\n") + 1
    for note in notes:
        if breaks or column + len(note) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + note
            column = indent + len(note)
            breaks = False
        else:
            text += ", " + note
            column += len(note) + 2
    return text + ")"


def _body(tensor: Tensor, indent: int) -> str:
    edge = _options.edgeitems
    gaps = [tensor.numel() > _options.threshold and size > 2 * edge for size in tensor.shape]
    for dim, has_gap in enumerate(gaps):
        if has_gap:
            start = tensor.narrow(dim, 0, edge)
            end = tensor.narrow(dim, tensor.size(dim) - edge, edge)
            tensor = rl.cat([start, end], dim)
    write, width = _writer(tensor)
    values = tensor.tolist()
    if not gaps:
        return write(values)
    return _brackets(values, gaps, write, width, indent)


def _brackets(
    values: list[Any], gaps: list[bool], write: Callable[[Any], str], width: int, indent: int
) -> str:
    """Writes nested lists; `gaps` tells for each level whether its middle was left out."""
    if len(gaps) > 1:
        rows = [_brackets(row, gaps[1:], write, width, indent + 1) for row in values]
        if gaps[0]:
            rows.insert(_options.edgeitems, "...")
        return "[" + ("," + "\n" * (len(gaps) - 1) + " " * (indent + 1)).join(rows) + "]"
    items = [write(value) for value in values]
    if gaps[0]:
        items.insert(_options.edgeitems, " ..." if items else "...")
    count = max(1, (_options.linewidth - indent) // (width + 2))
    lines = [", ".join(items[i : i + count]) for i in range(0, len(items), count)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _writer(tensor: Tensor) -> tuple[Callable[[Any], str], int]:
    """Returns a function that writes an element of the tensor, and the width of what it writes."""
    values = tensor.reshape(-1).tolist()
    if tensor.dtype.is_complex:
        real, real_width = _float_writer([value.real for value in values])
        imag, imag_width = _float_writer([value.imag for value in values])

        def write_complex(value: complex) -> str:
            text = imag(value.imag).lstrip()
            return real(value.real) + ("" if text[0] == "-" else "+") + text + "j"

        return write_complex, real_width + imag_width + 1
    if tensor.dtype.is_floating_point:
        return _float_writer(values)
    width = max((len(str(value)) for value in values), default=1)
    return lambda value: str(value).rjust(width), width


def _float_writer(values: Sequence[float]) -> tuple[Callable[[float], str], int]:
    """Chooses the notation by the finite numbers other than zero, which also set the width."""
    numbers = [value for value in values if value and math.isfinite(value)]
    are_whole = all(value.is_integer() for value in numbers)
    is_scientific = False
    if numbers:
        low, high = min(map(abs, numbers)), max(map(abs, numbers))
        is_scientific = high / low > 1000 or high > 1e8 or low < 1e-4
        if _options.sci_mode is not None:
            is_scientific = _options.sci_mode
    if is_scientific:
        layout = f".{_options.precision}e"
    else:
        layout = ".0f" if are_whole else f".{_options.precision}f"
    has_point = are_whole and not is_scientific

    def text(value: float) -> str:
        return format(value, layout) + ("." if has_point and math.isfinite(value) else "")

    width = max((len(text(value)) for value in numbers), default=1)
    return lambda value: text(value).rjust(width), width
