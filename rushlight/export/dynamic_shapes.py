"""Dim: sizes that may change from call to call, and which sizes of which inputs they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rushlight import Tensor, nn
from rushlight.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

if TYPE_CHECKING:
    from rushlight.export.exported_program import ExportedProgram

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]


@dataclass(frozen=True)
class _DimHint:
    """What a size may be without a name."""

    kind: str
    min: int | None = None
    max: int | None = None
    has_range: bool = False

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        """Returns the same for sizes in a range."""
        if self.has_range:
            raise TypeError(f"Dim.{self.kind}: its range is given already, {self}.")
        _check_range(min, max)
        return _DimHint(self.kind, min, max, has_range=True)

    def __repr__(self) -> str:
        limits = (("min", self.min), ("max", self.max))
        given = [f"{name}={value}" for name, value in limits if value is not None]
        return f"DimHint({', '.join([self.kind, *given])})"


def _check_range(min: int | None, max: int | None) -> None:
    for name, value in (("min", min), ("max", max)):
        if value is not None and value < 0:
            raise AssertionError(f"{name} must be non-negative, got {value}")
    if min is not None and max is not None and min > max:
        raise AssertionError(f"min must be <= max, got min={min}, max={max}")


class Dim:
    """A size that may change from call to call.

    Inputs that use the same Dim, or two that are equal, have the same size there. 2 * dim + 1 is a
    size that follows it.

    Args:
        name: a Python name.
        min: its smallest value.
        max: its largest value; None for no limit.

    Attributes:
        DYNAMIC: in place of a Dim: a size without a name, in a range by DYNAMIC(min=2, max=64).
            Sizes of several inputs, in the same dimension and equal in the example, are taken for
            the same.
        AUTO: the same, or a size that does not change if the program does not let it.
        STATIC: a size that does not change, like None.

    Raises:
        AssertionError: if the name is no Python name, or min is above max.

    Example:
        >>> batch = torch.export.Dim("batch", max=64)
        >>> batch, 2 * batch
        (Dim('batch', min=0, max=64), Dim('2*batch'))
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low, high = 0 if min is None else min, math.inf if max is None else max
        if low > high:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not isinstance(name, str) or not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.min = low
        self.max = high
        self.root = self
        self.scale = 1
        self.offset = 0

    def _derived(self, scale: int, offset: int) -> Dim:
        if not (isinstance(scale, int) and isinstance(offset, int) and scale > 0):
            raise NotImplementedError(
                f"Dim: {scale} * {self.root.__name__} + {offset} is no size. A derived Dim is a "
                "positive integer times a Dim, plus an integer."
            )
        made = Dim(self.root.__name__)
        made.root, made.scale, made.offset = self.root, scale, offset
        multiple = self.root.__name__ if scale == 1 else f"{scale}*{self.root.__name__}"
        made.__name__ = f"{multiple} {'-' if offset < 0 else '+'} {abs(offset)}"
        if not offset:
            made.__name__ = multiple
        return made

    def __mul__(self, other: int) -> Dim:
        return self._derived(self.scale * other, self.offset * other)

    __rmul__ = __mul__

    def __add__(self, other: int) -> Dim:
        return self._derived(self.scale, self.offset + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        return self + -other

    def at(self, size: int) -> int:
        """Returns this size where the Dim that it follows has some size."""
        return self.scale * size + self.offset

    def root_at(self, size: int) -> int | None:
        """Returns the size of the Dim that it follows; None where there is none."""
        root, rest = divmod(size - self.offset, self.scale)
        return root if rest == 0 and self.root.min <= root <= self.root.max else None

    def _definition(self) -> tuple[Any, ...]:
        return self.root.__name__, self.root.min, self.root.max, self.scale, self.offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self._definition() == other._definition()

    def __hash__(self) -> int:
        return hash(self._definition())

    def __repr__(self) -> str:
        if self.root is not self:
            return f"Dim({self.__name__!r})"
        return f"Dim({self.__name__!r}, min={self.min}, max={self.max})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Returns a Dim for each name.

    Args:
        names: their names.
        min: the smallest value of each.
        max: the largest.

    Example:
        >>> torch.export.dims("height", "width", min=32)
        (Dim('height', min=32, max=inf), Dim('width', min=32, max=inf))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Which sizes may change, said of the tensors of the example instead of their names.

    Example:
        >>> x = torch.ones(2, 3)
        >>> shapes = torch.export.ShapesCollection()
        >>> shapes[x] = {0: torch.export.Dim("batch")}
        >>> program = torch.export.export(torch.nn.Linear(3, 1), (x,), dynamic_shapes=shapes)
        >>> program.module()(torch.ones(7, 3)).shape
        torch.Size([7, 1])
    """

    def __init__(self) -> None:
        self._said: dict[int, tuple[Tensor, Any]] = {}

    def __setitem__(self, t: Tensor, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"ShapesCollection: {t!r} is no tensor. Others have no sizes.")
        if self._said.setdefault(id(t), (t, shape))[1] != shape:
            raise AssertionError(
                f"ShapesCollection: the tensor has {self[t]} already, which is not {shape}."
            )

    def __getitem__(self, t: Tensor) -> Any:
        return self._said[id(t)][1]

    def __len__(self) -> int:
        return len(self._said)

    def dynamic_shapes(
        self, m: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Returns the same by the names of the arguments of a module.

        Raises:
            ValueError: if one of the tensors is not among the arguments.
        """
        left = set(self._said)

        def said(value: Any) -> Any:
            left.discard(id(value))
            return self._said.get(id(value), (value, None))[1]

        found = _by_name(said, m, (args, kwargs))
        if left:
            raise ValueError(
                f"ShapesCollection: {len(left)} of its tensors are not among the arguments. "
                "Use the tensors of the example, not copies."
            )
        return found


class AdditionalInputs:
    """Examples from which export learns which sizes may change: those that are not all the same.

    Example:
        >>> more = torch.export.AdditionalInputs()
        >>> more.add((torch.ones(5, 3),))
        >>> example = (torch.ones(2, 3),)
        >>> program = torch.export.export(torch.nn.Linear(3, 1), example, dynamic_shapes=more)
        >>> program.module()(torch.ones(7, 3)).shape
        torch.Size([7, 1])
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], Mapping[str, Any] | None]] = []

    def add(self, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> None:
        """Adds an example."""
        if not isinstance(args, tuple):
            raise AssertionError(f"AdditionalInputs: args is {args!r}. It must be a tuple.")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise AssertionError(f"AdditionalInputs: kwargs is {kwargs!r}. It must be a dict.")
        self._examples.append((args, kwargs))

    def dynamic_shapes(
        self, m: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Returns which sizes may change, by the names of the arguments of a module.

        Raises:
            ValueError: if an example differs in more than in sizes.
        """

        def differing(value: Any, *others: Any) -> Any:
            if not isinstance(value, Tensor):
                if any(other != value for other in others):
                    raise ValueError(
                        f"AdditionalInputs: {value!r} has another value in an example. Only sizes "
                        "of tensors may differ."
                    )
                return None
            shapes = [tensor.shape for tensor in (value, *others)]
            return tuple(
                None if len({*sizes}) == 1 else Dim.DYNAMIC for sizes in zip(*shapes, strict=True)
            )

        return _by_name(differing, m, (args, kwargs), *self._examples)

    def verify(self, ep: ExportedProgram) -> None:
        """Runs a program on all examples, which raises an error where it does not take one."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **(kwargs or {}))


def _by_name(
    say: Callable[..., Any],
    module: nn.Module,
    *examples: tuple[tuple[Any, ...], Mapping[str, Any] | None],
) -> dict[str, Any]:
    """What is said of each leaf of some examples, by the names of a module's arguments."""
    from rushlight.export._program import bind

    bound = [bind(module, args, kwargs or {}) for args, kwargs in examples]
    return {
        name.lstrip("*"): tree_map(say, *values)
        for name, *values in zip(
            bound[0], *(arguments.values() for arguments in bound), strict=True
        )
    }


def resolve(
    arguments: dict[str, Any], dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None
) -> list[dict[int, Dim]]:
    """Which sizes of the leaves of some arguments are which Dims.

    Args:
        arguments: the example, by the names of the parameters of forward.
        dynamic_shapes: what the user said, by name or in the order of the arguments.

    Raises:
        TypeError, ValueError: if it does not fit the arguments.
    """
    if dynamic_shapes is None:
        return [{} for _ in tree_leaves(arguments)]
    if isinstance(dynamic_shapes, dict):
        arguments = {name.lstrip("*"): value for name, value in arguments.items()}
        if dynamic_shapes.keys() - arguments.keys():
            raise ValueError(
                "export: When `dynamic_shapes` is specified as a dict, its top-level keys must be "
                f"the arg names {list(arguments)} of `inputs`, but here they are "
                f"{list(dynamic_shapes)}."
            )
        given = [dynamic_shapes.get(name) for name in arguments]
    elif not isinstance(dynamic_shapes, (list, tuple)):
        raise TypeError(
            f"export: dynamic_shapes is {dynamic_shapes!r}. Give a dict by the arguments' names, "
            "or a list or tuple in their order."
        )
    else:
        given = list(dynamic_shapes)
        if len(given) != len(arguments):
            raise ValueError(
                f"export: dynamic_shapes has {len(given)} items for {len(arguments)} arguments. "
                "Give one for each, None for those whose sizes do not change."
            )
    found: list[dict[int, Dim]] = []
    unnamed: dict[tuple[int, int], Dim] = {}
    for (name, value), said in zip(arguments.items(), given, strict=True):
        _walk(value, said, name, found, unnamed)
    roots: dict[str, Dim] = {}
    for dim in (dim for dims in found for dim in dims.values()):
        other = roots.setdefault(dim.root.__name__, dim.root)
        if other != dim.root:
            raise ValueError(
                f"export: Found different definitions {other!r} and {dim.root!r} for the same "
                "symbolic dimension. Give one of them another name, or both the same range."
            )
    return found


def without_auto(dynamic_shapes: Any) -> Any:
    """Returns what is said of sizes with those fixed that are AUTO; None where none is."""
    leaves, spec = tree_flatten(dynamic_shapes)
    fixed = [None if isinstance(x, _DimHint) and x.kind == "AUTO" else x for x in leaves]
    return None if fixed == leaves else tree_unflatten(fixed, spec)


def _walk(
    value: Any,
    said: Any,
    path: str,
    found: list[dict[int, Dim]],
    unnamed: dict[tuple[int, int], Dim],
) -> None:
    """Adds what is said about the leaves of a value."""
    if isinstance(value, Tensor):
        found.append(_of_tensor(value, said, path, unnamed))
        return
    inside = list(value.items()) if isinstance(value, dict) else None
    if inside is None and isinstance(value, (list, tuple)):
        inside = list(enumerate(value))
    if said is None or inside is None:
        if said is not None:
            raise ValueError(f"export: dynamic_shapes says {said!r} of {path}, which is no tensor.")
        found.extend({} for _ in tree_leaves(value))
        return
    for place, (key, item) in enumerate(inside):
        if isinstance(said, dict):
            part = said.get(key)
        elif isinstance(said, (list, tuple)) and len(said) == len(inside):
            part = said[place]
        else:
            raise ValueError(
                f"export: dynamic_shapes says {said!r} of {path}, which has {len(inside)} items. "
                "Say it of each, None for those whose sizes do not change."
            )
        _walk(item, part, f"{path}[{key!r}]", found, unnamed)


def _of_tensor(
    tensor: Tensor, said: Any, path: str, unnamed: dict[tuple[int, int], Dim]
) -> dict[int, Dim]:
    """The Dims of one tensor by dimension."""
    pairs: list[tuple[int, Any]] = []
    if isinstance(said, dict):
        pairs = list(said.items())
    elif isinstance(said, (list, tuple)):
        if len(said) != tensor.dim():
            raise ValueError(
                f"export: dynamic_shapes has {len(said)} sizes for {path}, which has "
                f"{tensor.dim()} dimensions."
            )
        pairs = list(enumerate(said))
    elif said is not None:
        raise ValueError(
            f"export: dynamic_shapes says {said!r} of the tensor {path}. Say it by dimension: "
            "{0: Dim('batch')}."
        )
    dims: dict[int, Dim] = {}
    for place, meant in pairs:
        if not isinstance(place, int) or not -tensor.dim() <= place < tensor.dim():
            raise ValueError(
                f"export: dynamic_shapes names dimension {place!r} of {path}, which has "
                f"{tensor.dim()} dimensions."
            )
        place %= tensor.dim()
        size = tensor.shape[place]
        if isinstance(meant, _DimHint):
            if meant.kind == "STATIC":
                continue
            dim = unnamed.setdefault((place, size), Dim(f"s{len(unnamed)}"))
            dim.min = max(dim.min, meant.min or 0)
            dim.max = min(dim.max, math.inf if meant.max is None else meant.max)
            meant = dim
        if isinstance(meant, Dim):
            if meant.root_at(size) is None:
                raise ValueError(
                    f"export: dimension {place} of {path} is {size} in the example, which is no "
                    f"value of {meant!r}."
                )
            dims[place] = meant
        elif isinstance(meant, int) and meant != size:
            raise ValueError(
                f"export: dynamic_shapes says that dimension {place} of {path} is {meant}, but it "
                f"is {size} in the example."
            )
        elif meant is not None and not isinstance(meant, int):
            raise ValueError(
                f"export: dynamic_shapes says {meant!r} of dimension {place} of {path}. Use a Dim, "
                "or None for a size that does not change."
            )
    return dims
