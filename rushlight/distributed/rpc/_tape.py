"""The tape across processes: contexts, in which tensors of calls keep their history.

A tensor that a call takes to another process ends in a _Sent node here, and begins there with a
_Received node, which returns its gradient. Backward is one walk in each process that the context
has come to. All begin at once, and a _Sent node waits for the gradient that it goes on with.

Note [Waiting for gradients]
A walk must not wait while there is something to do that others wait for. So _Sent nodes run after
all that are ready, and those of a context are a chain, in which the last one sent is first. Then
some process always goes on. Of all nodes anywhere that have yet to run take the one made last: what
its gradient comes from was made later, and has run. So an ordinary node or a _Received one is
ready, and a walk takes it before it waits; to a _Sent one the gradient is on its way, and its walk
waits for no other, because that would be of one made later.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, autograd
from rushlight.distributed.errors import DistNetworkError
from rushlight.distributed.rpc._agent import _is_current_rpc_agent_set as _has_agent
from rushlight.distributed.rpc._agent import agent
from rushlight.distributed.rpc._pickling import thread
from rushlight.distributed.rpc.functions import async_execution
from rushlight.futures import Future

__all__ = ["Context", "context_of", "end_context", "forget_contexts", "new_context"]

_RANK_BITS = 48  # of the number of a context: above them is the rank of the process that began it

_lock = threading.Lock()
_contexts: dict[int, Context] = {}
_numbers = itertools.count()


class _Sent(autograd.Function):
    """Keeps the place of a tensor on the tape. Its result and first input make the chain."""

    @staticmethod
    def forward(ctx: Any, before: Tensor, tensor: Tensor, wait: Callable[[], Tensor | None]) -> Any:
        ctx.wait = wait
        return before.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0], ctx.wait(), None


class _Received(autograd.Function):
    """Gives a tensor the history of what it is a copy of. The anchor brings walks here."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, tensor: Tensor, give: Callable[..., None]) -> Any:
        ctx.give = give
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(anchor)
        return tensor.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        _ = ctx.saved_tensors  # raises where the tape is gone, and nobody waits for the gradient
        ctx.give(grads[0])
        return None, None, None


class Context:
    """What one process has of the tape that calls in a context make, and its gradients.

    Attributes:
        number: the same in all processes.
        grads: of the leaves of this process.

    Args:
        number: see above.
        walks: how many there were before this process heard of the context.
    """

    def __init__(self, number: int, walks: int) -> None:
        self.number = number
        self.grads: dict[Tensor, Tensor] = {}
        self._workers: set[int] = set()  # ranks that this one has sent to or received from
        self._changed = threading.Condition()
        self._arrived: dict[int, Tensor | None] = {}  # gradients, by the number of what was sent
        self._failure: str | None = None
        self._walks = walks  # the number of the last one
        self._anchor = rl.zeros(0, requires_grad=True)
        self._chain = self._anchor
        self._received: list[tuple[Any, Callable[..., None]]] = []  # nodes, and how to answer

    # Calls

    def scope(self, to: int) -> _Scope:
        """See Tape."""
        self.meet(to)
        return _Scope(self.number, agent().me.id, self._walks)

    def meet(self, rank: int) -> None:
        """Notes that a process has to do with this context."""
        with self._changed:
            if rank != agent().me.id:
                self._workers.add(rank)

    def sent(self, tensor: Tensor, to: int) -> Any:
        """See Tape."""
        number = next(_numbers)
        with self._changed, rl.enable_grad():
            self.meet(to)
            self._chain = _Sent.apply(self._chain, tensor, lambda: self._wait_for(number, to))
            self._chain.grad_fn._run_last()
            return _receive, (tensor.detach(), self.number, agent().me.id, number, self._walks)

    def received(self, tensor: Tensor, sender: int, number: int, walks: int) -> Tensor:
        """Returns a tensor with the history that it has in another process.

        Args:
            tensor: what arrived.
            sender, number: the process, and the number of the tensor there.
            walks: how many there had been when it was sent.
        """

        def give(grad: Tensor | None) -> None:
            agent().notify_now(sender, _take_gradient, self.number, number, grad)

        with self._changed, rl.enable_grad():
            self.meet(sender)
            tensor = _Received.apply(self._anchor, tensor, give)
            self._received.append((tensor.grad_fn, give))
            is_late = walks < self._walks
        if is_late:  # for the walk that waits for its gradient
            agent().notify(sender, _take_gradient, self.number, number, None)
        return tensor

    # Backward

    def _wait_for(self, number: int, to: int) -> Tensor | None:
        """Waits for the gradient of what was sent; None if nothing depends on it."""
        with self._changed:
            while number not in self._arrived:
                if self._failure is not None:
                    raise RuntimeError(self._failure)
                if (loss := agent().loss_of(to)) is not None:
                    raise DistNetworkError(loss)
                self._changed.wait(1.0)
            return self._arrived.pop(number)

    def take(self, number: int, grad: Tensor | None) -> None:
        """Takes the gradient of what was sent."""
        with self._changed:
            self._arrived[number] = grad
            self._changed.notify_all()

    def fail(self, walk: int, reason: str) -> None:
        """Ends a walk in all processes with an error."""
        with self._changed:
            if walk != self._walks or self._failure is not None:
                return
            self._failure = reason
            self._changed.notify_all()
        self._tell_others(_fail, walk, reason)

    def _tell_others(self, func: Callable[..., None], *args: Any) -> None:
        for rank in tuple(self._workers):
            agent().notify(rank, func, self.number, *args)

    def walk(self, roots: Sequence[Tensor], retain_graph: bool, number: int = 0) -> None:
        """Goes through this process's part of the tape, while the others go through theirs.

        Args:
            roots: where backward begins in this process, beside what it has sent.
            retain_graph: whether the tape is kept.
            number: of the walk, which begins here by default; one that was here does nothing.
        """
        with self._changed:
            if 0 < number <= self._walks:
                return
            number = number or self._walks + 1
            self._walks, self._failure = number, None
            chain, received = self._chain, self._received
            if not retain_graph:
                self._chain, self._received = self._anchor, []
        tape, thread.tape = thread.tape, None
        current, failure = agent(), None
        others = [
            current.call(current.worker(rank), _walk, (self.number, retain_graph, number), {}, 0)
            for rank in tuple(self._workers)
        ]
        for other in others:
            other.add_done_callback(lambda done: self._note_failure(number, done))
        try:
            self._differentiate([*roots, chain], received, retain_graph)
        except BaseException as error:
            failure = error
            self.fail(number, f"backward in {current.me.name}: {type(error).__name__}: {error}")
        for other in others:  # also after a failure: none shall go on meanwhile
            try:
                other.wait()
            except Exception as error:
                failure = failure or error
        thread.tape = tape
        if failure is not None:
            raise failure

    def _note_failure(self, walk: int, other: Future) -> None:
        try:
            other.value()
        except Exception as error:
            self.fail(walk, f"backward: {error}")

    def _differentiate(
        self,
        roots: Sequence[Tensor],
        received: Sequence[tuple[Any, Callable[..., None]]],
        retain_graph: bool,
    ) -> None:
        nodes = _reachable(roots)
        for node, give in received:
            if node not in nodes:
                give(None)
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        grads = autograd.grad(
            roots,
            leaves,
            [rl.ones_like(root) for root in roots],
            retain_graph=retain_graph,
            allow_unused=True,
        )
        for leaf, grad in zip(leaves, grads, strict=True):
            if grad is not None and leaf is not self._anchor:
                before = self.grads.get(leaf)
                self.grads[leaf] = grad if before is None else before + grad

    def end(self) -> None:
        """Lets go of the tape, in all processes."""
        self._tell_others(end_context)
        self._chain, self._received = self._anchor, []


def _reachable(roots: Sequence[Tensor]) -> set[Any]:
    """The nodes that a walk from the roots comes by."""
    found: set[Any] = set()
    left = [autograd.graph.get_gradient_edge(root).node for root in roots]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += [following for following, _ in node.next_functions if following is not None]
    return found


# What other processes call


class _Scope:
    """The context of a call, in the process that answers it."""

    def __init__(self, number: int, caller: int, walks: int) -> None:
        self._number, self._caller, self._walks = number, caller, walks

    def __reduce__(self) -> Any:
        return _Scope, (self._number, self._caller, self._walks)

    def __enter__(self) -> None:
        context = _met(self._number, self._walks)
        context.meet(self._caller)
        self._before, thread.tape = thread.tape, context

    def __exit__(self, *error: object) -> None:
        thread.tape = self._before


def _met(number: int, walks: int = 0) -> Context:
    """The part of this process, which may hear of the context for the first time."""
    with _lock:
        if number not in _contexts:
            _contexts[number] = Context(number, walks)
        return _contexts[number]


def _receive(tensor: Tensor, number: int, sender: int, sent: int, walks: int) -> Tensor:
    return _met(number, walks).received(tensor, sender, sent, walks)


def _take_gradient(number: int, sent: int, grad: Tensor | None) -> None:
    if number in _contexts:
        _contexts[number].take(sent, grad)


def _fail(number: int, walk: int, reason: str) -> None:
    if number in _contexts:
        _contexts[number].fail(walk, reason)


@async_execution
def _walk(number: int, retain_graph: bool, walk: int) -> Future:
    """Goes through this process's part, in a thread of its own: calls have only so many."""
    done = Future()

    def go() -> None:
        try:
            _met(number).walk([], retain_graph, walk)  # what arrives afterwards is too late for it
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=go, name="backward", daemon=True).start()
    return done


# The contexts of this process


def new_context() -> Context:
    """Returns the context of a new number."""
    return _met(agent().me.id << _RANK_BITS | next(_numbers))


def context_of(number: int) -> Context:
    """Returns what this process has of a context.

    Raises:
        RuntimeError: if it has nothing.
    """
    try:
        return _contexts[number]
    except KeyError:
        raise RuntimeError(
            f"Could not find autograd context with id: {number}. It lasts to the end of its with "
            "block."
        ) from None


def end_context(number: int) -> None:
    """Ends a context in all processes that know it from this one."""
    with _lock:
        context = _contexts.pop(number, None)
    if context is not None and _has_agent():
        context.end()


def forget_contexts() -> None:
    """Lets go of all contexts."""
    _contexts.clear()
