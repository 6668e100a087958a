"""The names of the back ends of torch.compile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rushlight._dynamo.exc import InvalidBackend

BackEnd = Callable[[Any, list[Any]], Callable[..., Any]]


def run_as_it_is(gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
    """Runs the graph as it is."""
    return gm.forward


_DEBUGGING = (
    *("eager", "eager_debug", "eager_noexcept", "pre_dispatch_eager"),
    *("aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner"),
)
# None stands for fusion, which needs no graph.
_back_ends: dict[str, BackEnd | None] = {
    "cudagraphs": None,
    "inductor": None,
    **dict.fromkeys(_DEBUGGING, run_as_it_is),
}
_tags: dict[str, tuple[str, ...]] = dict.fromkeys(_DEBUGGING, ("debug",))
_default: str | BackEnd = "inductor"


def register_backend(
    compiler_fn: Any = None, name: str | None = None, tags: Iterable[str] = ()
) -> Any:
    """Gives a back end a name for torch.compile; without a function, a decorator.

    Example:
        >>> @torch._dynamo.register_backend
        ... def printing(gm, example_inputs):
        ...     print([node.name for node in gm.graph.nodes])
        ...     return gm.forward
        >>> torch.compile(lambda x: torch.tanh(x) + 1, backend="printing")(torch.zeros(1))
        ['x', 'tanh', 'add', 'output']
        tensor([1.])
    """
    if compiler_fn is None:
        return lambda function: register_backend(function, name, tags)
    key: str = name or compiler_fn.__name__
    _back_ends[key] = compiler_fn
    _tags[key] = tuple(tags)
    return compiler_fn


def lookup_backend(backend: str | BackEnd) -> BackEnd | None:
    """Returns the function of a back end, None for fusion.

    Raises:
        InvalidBackend: if there is none of this name.
    """
    if not isinstance(backend, str):
        return backend
    if backend not in _back_ends:
        raise InvalidBackend(backend)
    return _back_ends[backend]


def set_default_backend(backend: str | BackEnd | None) -> None:
    """Sets what get_default_backend returns."""
    global _default
    lookup_backend(backend or "inductor")
    _default = backend or "inductor"


def get_default_backend() -> str | BackEnd:
    """Returns the back end of programs that name none."""
    return _default


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """Returns the names of back ends that have none of these tags."""
    excluded = set(exclude_tags or ())
    return sorted(name for name in _back_ends if not excluded & set(_tags.get(name, ())))
