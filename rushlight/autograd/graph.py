"""The recorded graph: its nodes and edges, and what happens to the tensors that it saves."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Literal, NamedTuple
from weakref import WeakSet

from rushlight import _C, Tensor
from rushlight._C import Node
from rushlight._grad_mode import no_grad
from rushlight._storage import memory_of
from rushlight.utils.hooks import RemovableHandle

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_warn_on_accumulate_grad_stream_mismatch",
]

_MODES = ("all", "any")
_KEPT_WALKS = 100  # more than backward calls that run at the same time


class GradientEdge(NamedTuple):
    """Where a gradient goes: result output_nr of a node.

    torch.autograd.grad and backward take one in the place of a tensor, so that the tensor need not
    be kept.

    Args:
        node: the node that made the tensor, or that collects the gradient of a leaf.
        output_nr: which of its results.
        ownership_token: kept alive with the edge; for other edges than those made here.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> edge = torch.autograd.graph.get_gradient_edge(x * 3)
        >>> torch.autograd.grad(edge, x, torch.ones(2))
        (tensor([3., 3.]),)
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Returns where the gradient of a tensor goes.

    Args:
        tensor: a tensor that requires grad.

    Raises:
        RuntimeError: if it does not.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.autograd.graph.get_gradient_edge(x.exp()).node.name()
        'ExpBackward0'
    """
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Notes that memory was written in place, for writes that torch knows nothing of.

    Backward then refuses to use what was saved of the tensor before.

    Args:
        tensor: what was written, or several of them.

    Example:
        >>> x = torch.zeros(2)
        >>> torch.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    for written in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._increment_version(written)


class saved_tensors_hooks:
    """Sends the tensors that ops save for backward through functions, in the scope of a `with`.

    pack_hook(tensor) is called when an op saves a tensor, and what it returns is kept in place of
    it; unpack_hook(packed) is called when backward needs it and gives back a tensor with the same
    values, shape, dtype and device. Of nested scopes only the innermost counts. Hooks are of one
    thread.

    Args:
        pack_hook: takes a tensor, which it must not write, and returns any object. It sees inputs
            of ops as they are, results without history.
        unpack_hook: takes that object and returns a tensor.

    Raises:
        TypeError: in backward, if unpack_hook does not return a tensor.

    Example:
        >>> def pack(tensor):
        ...     print("saving", tensor.tolist())
        ...     return tensor.numpy()
        >>> x = torch.tensor([2.0], requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
        ...     y = x.exp()
        saving [7.389056205749512]
        >>> y.backward()
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saving_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc_info: object) -> None:
        _C._pop_saving_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Moves the tensors that ops save for backward to the CPU's memory until they are needed.

    Args:
        pin_memory: whether to keep them in pinned memory, from where copies to the GPU do not wait.
        device_type: the kind of device whose presence lets memory be pinned.

    Example:
        >>> x = torch.tensor([2.0], requires_grad=True)
        >>> with torch.autograd.graph.save_on_cpu():
        ...     y = x * x
        >>> y.backward()
        >>> x.grad
        tensor([4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            copy = tensor.cpu()
            return tensor.device, copy.pin_memory() if pin_memory else copy

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, copy = packed
            return copy.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)
        self.device_type = device_type


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Generator[None, None, None]:
    """Makes saved_tensors_hooks raise in the scope of a `with`.

    Args:
        error_message: what the error says.

    Raises:
        RuntimeError: if hooks are active already.

    Example:
        >>> with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        ...     try:
        ...         with torch.autograd.graph.save_on_cpu():
        ...             pass
        ...     except RuntimeError as error:
        ...         print(error)
        not here.
    """
    before = _C._refuse_saving_hooks(error_message)
    try:
        yield
    finally:
        _C._refuse_saving_hooks(before)


class _Handles(RemovableHandle):
    """Removes several hooks."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        super().__init__({})
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


class _WalkTable(dict[int, "_GradList"]):
    """What was collected so far, by the number of the backward; backwards that failed drop out."""

    def __missing__(self, walk: int) -> _GradList:
        if len(self) >= _KEPT_WALKS:
            del self[min(self)]
        found = self[walk] = _GradList()
        return found


class _GradList:
    """The gradients that one backward brought, by position, and how many there will be."""

    def __init__(self) -> None:
        self.grads: dict[int, Tensor] = {}
        self.expected = -1


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> RemovableHandle:
    """Calls a function when the gradients of several tensors are known.

    Args:
        tensors: tensors that require grad.
        fn: with mode "all", called as fn(grads) once in a backward, when it has computed the
            gradients of all those tensors that it passes; None stands for the others. With mode
            "any", called as fn(grad) with the first gradient.
        mode: "all" or "any".

    Returns:
        A handle whose remove() undoes the registration.

    Raises:
        ValueError: if mode is something else.

    Example:
        >>> x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> handle = torch.autograd.graph.register_multi_grad_hook([x, y], print)
        >>> (2 * x + 3 * y).backward()
        [tensor([2.]), tensor([3.])]
    """
    if mode not in _MODES:
        raise ValueError(f"Expects mode to be one of {_MODES} but got {mode}")
    lock = threading.Lock()
    walks = _WalkTable()
    count = len(tensors)  # the hooks must not keep the tensors
    hooks: list[Callable[[Tensor], None]] = []

    def collect(position: int, grad: Tensor) -> None:
        walk = _C._current_walk()
        with lock:
            found = walks[walk]
            found.grads[position] = grad
            if mode == "any":
                complete = len(found.grads) == 1
            else:
                if found.expected < 0:
                    found.expected = _C._count_running(hooks)
                complete = len(found.grads) == found.expected
                if complete:
                    del walks[walk]
        if complete and mode == "any":
            fn(grad)  # pyright: ignore[reportArgumentType]
        elif complete:
            fn([found.grads.get(i) for i in range(count)])  # pyright: ignore[reportArgumentType]

    for position in range(count):
        hooks.append(lambda grad, position=position: collect(position, grad))
    return _Handles([t.register_hook(hook) for t, hook in zip(tensors, hooks, strict=True)])


class _Saved:
    """A saved tensor that is copied before its memory is written."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class _AllowMutationOnSavedContext:
    """The tensors that were saved in a scope and still are as they were saved, by storage."""

    def __init__(self) -> None:
        self._saved: dict[int, WeakSet[_Saved]] = {}
        self._open = True

    def pack(self, tensor: Tensor) -> _Saved:
        saved = _Saved(tensor)
        self._saved.setdefault(memory_of(tensor), WeakSet()).add(saved)
        return saved

    def unpack(self, saved: _Saved) -> Tensor:
        if not self._open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context "
                "in which the graph was originally recorded."
            )
        return saved.tensor

    def before_write(self, tensor: Tensor) -> None:
        written = self._saved.pop(memory_of(tensor), ())
        with no_grad():
            for saved in written:
                saved.tensor = saved.tensor.clone()

    def clear(self) -> None:
        """Forgets all tensors."""
        self._open = False
        self._saved.clear()


_mutation_is_allowed = threading.local()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Generator[_AllowMutationOnSavedContext, None, None]:
    """Lets tensors be written in place that backward still needs: they are copied first.

    Forward and backward must both be in the scope of the `with`.

    Returns:
        What keeps the copies.

    Raises:
        RuntimeError: if such a scope is open already.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.clone()
        ...     z = (y**2).sum()
        ...     y.zero_()
        ...     z.backward()
        tensor([0., 0.], grad_fn=<ZeroBackward0>)
        >>> x.grad
        tensor([2., 2.])
    """
    if getattr(_mutation_is_allowed, "now", False):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    _C._push_saving_hooks(context.pack, context.unpack, context.before_write)
    _mutation_is_allowed.now = True
    try:
        yield context
    finally:
        _mutation_is_allowed.now = False
        _C._pop_saving_hooks()
        context.clear()


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Has no effect: gradients that come on other streams are waited for, and nothing warns."""
