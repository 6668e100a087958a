"""Reducer: averages the gradients of parameters over processes while backward goes on.

Gradients lie in buckets, one after another in one piece of memory. As soon as all gradients of a
bucket have arrived, they are copied there and a collective begins; when backward is done, the
results are copied back.
Invariant: all processes have the same buckets and reduce them in the order of the list.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight import distributed as dist
from rushlight.distributed.grad_bucket import GradBucket, lay_out
from rushlight.distributed.optim.apply_optimizer_in_backward import put_off, step
from rushlight.distributed.sparse_sum import sum_sparse
from rushlight.futures import Future
from rushlight.utils.hooks import RemovableHandle

__all__ = ["DelayedReduction", "Reducer"]

_DONE = Future()
_DONE.set_result(None)


def _remove_all(handles: list[RemovableHandle]) -> None:
    for handle in handles:
        handle.remove()


class Bucket:
    """Some parameters, and the memory that their gradients are reduced in."""

    def __init__(self, positions: Sequence[int], params: Sequence[Tensor], is_sparse: bool) -> None:
        self.positions = positions  # of the parameters in the reducer's list
        self.params = params
        self.is_sparse = is_sparse
        first = params[0]
        size = 0 if is_sparse else sum(param.numel() for param in params)
        self.flat = rl.zeros(size, dtype=first.dtype, device=first.device)
        self.views = [] if is_sparse else lay_out(self.flat, params)
        self.expected = 0  # parameters that get a gradient in a backward
        self.missing = 0  # those that have not got it
        self.pending: Any = None  # a Work or a Future

    def gather(self) -> None:
        """Copies the gradients into the memory of the bucket; zeros stand for absent ones."""
        targets, grads = [], []
        for param, view in zip(self.params, self.views, strict=True):
            grad = param.grad
            if grad is None:
                view.zero_()
            elif grad is not view:
                targets.append(view)
                grads.append(grad)
        _C._foreach_copy_(targets, grads)

    def hand_out(self, as_views: bool, is_used: Sequence[Any] | None) -> None:
        """Puts what the bucket holds into the gradients, but for parameters that nobody used."""
        grads, sources = [], []
        for position, param, view in zip(self.positions, self.params, self.views, strict=True):
            grad = param.grad
            if grad is view or (is_used is not None and not is_used[position]):
                continue
            if as_views:
                param.grad = view
            elif grad is None:
                param.grad = view.clone()
            else:
                grads.append(grad)
                sources.append(view)
        _C._foreach_copy_(grads, sources)


class Reducer:
    """Averages the gradients of parameters in each backward that was prepared for.

    Args:
        params: parameters that require grad, in the order of the module.
        names: their names, for errors.
        sparse: for each whether its gradient is sparse.
        group: the processes.
        limits: bytes of each bucket; the last one is for all others.
        find_unused: looks in each backward which parameters it leaves out.
        skips_unused: all processes leave out the same ones.
        static_graph: every backward is like the first, which is reduced when it is done.
        as_views: gradients become views of the buckets.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        names: Sequence[str],
        sparse: Sequence[bool],
        group: Any,
        limits: Sequence[int],
        *,
        find_unused: bool,
        skips_unused: bool,
        static_graph: bool,
        as_views: bool,
    ) -> None:
        self.params = params
        self.names = names
        self.sparse = sparse
        self.group = group
        self.limits = limits
        self.find_unused = find_unused and not static_graph
        self.skips_unused = skips_unused
        self.as_views = as_views
        self.divisor: int | None = None  # of sums; None is the number of processes
        self.comm_hook: Callable[[Any, GradBucket], Future] | None = None
        self.hook_state: Any = None

        # How often the gradient of each parameter arrives in a backward, and is still to arrive.
        self.calls = [0 if static_graph else 1] * len(params)
        self.calls_left = list(self.calls)
        self.expects = False  # between a forward and the end of its backward
        self.records = static_graph  # counts the calls in the backward that comes
        self.is_swept = False  # whether parameters that are left out have been marked
        self.is_used: list[int] | None = None  # by some process; None stands for all
        self.agrees_on_use = static_graph or (self.find_unused and not skips_unused)
        device = params[0].device if params else None
        self.used_here = rl.ones(len(params), dtype=rl.int32, device=device)
        self.rounds = 0
        self.order: list[int] | None = None if find_unused else []
        self.arrange(range(len(params) - 1, -1, -1))
        self.handles = [
            param.register_post_accumulate_grad_hook(self.hook_of(i))
            for i, param in enumerate(params)
        ]
        weakref.finalize(self, _remove_all, self.handles).atexit = False
        self.stepping = put_off(params)

    def arrange(self, order: Iterable[int]) -> None:
        """Makes the buckets for gradients that arrive in this order."""
        found: list[tuple[list[int], bool]] = []  # positions, and whether they are sparse
        filling: dict[Any, tuple[list[int], int]] = {}  # by kind: positions, bytes left
        for i in order:
            param = self.params[i]
            if self.sparse[i]:
                found.append(([i], True))
                continue
            kind = param.dtype, param.device
            if kind not in filling:
                filling[kind] = [], self.limits[min(len(found), len(self.limits) - 1)]
                found.append((filling[kind][0], False))
            positions, left = filling.pop(kind)
            positions.append(i)
            left -= param.nbytes
            if left > 0:
                filling[kind] = positions, left
        self.buckets = [
            Bucket(positions, [self.params[i] for i in positions], is_sparse)
            for positions, is_sparse in found
        ]
        self.bucket_of: dict[int, Bucket] = {
            i: bucket for bucket in self.buckets for i in bucket.positions
        }
        self.next = 0  # the bucket that is reduced next
        self.count_expected()

    def count_expected(self) -> None:
        for bucket in self.buckets:
            bucket.expected = sum(self.calls[i] > 0 for i in bucket.positions)

    def rearrange_if_due(self) -> None:
        """Before the second round: arranges buckets by when gradients arrived in process 0."""
        if self.order is None or self.rounds != 1:
            return
        order, self.order = self.order, None
        if len(self.buckets) == 1:
            return
        count = len(self.params)
        if order:  # a process that only stood by knows none
            order += sorted(set(range(count)) - set(order))
        agreed = rl.tensor(order or [-1] * count, device=self.params[0].device)
        dist.broadcast(agreed, dist.get_global_rank(self.group, 0), self.group)
        if agreed[0].item() >= 0:
            self.arrange(agreed.tolist())

    # Backward

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        """Expects a backward from the outputs of a forward that expected none."""
        self.check_finished()
        self.rearrange_if_due()
        self.prepare(outputs, iter)

    def prepare(self, outputs: Any, tensors_in: Callable[[Any], Iterable[Tensor]]) -> None:
        """Expects a backward from the outputs of a forward."""
        self.calls_left[:] = self.calls
        self.expects = True
        self.is_swept = False
        self.next = 0
        for bucket in self.buckets:
            bucket.missing = bucket.expected
        if self.find_unused or self.records:
            for output in tensors_in(outputs):
                if output.requires_grad:
                    output.register_hook(self.sweep)

    def hook_of(self, i: int) -> Callable[[Tensor], None]:
        """What is called when the gradient of a parameter has arrived."""
        left = self.calls_left
        itself = weakref.ref(self)

        def arrived(_: Tensor) -> None:
            reducer = itself()
            if reducer is None or not reducer.expects:
                return
            missing = left[i] = left[i] - 1
            if missing == 0:
                reducer.mark_ready(i)
            elif missing < 0:
                reducer.note_extra(i)

        return arrived

    def mark_ready(self, i: int) -> None:
        if self.order is not None:
            self.order.append(i)
        bucket = self.bucket_of[i]
        bucket.missing -= 1
        if bucket.missing == 0:
            self.reduce_ready()

    def note_extra(self, i: int) -> None:
        if not self.records:
            raise RuntimeError(
                "DistributedDataParallel: Expected to mark a variable ready only once, but the "
                f"gradient of {self.names[i]} arrived again after it was taken to be complete. "
                "It is used outside of forward, in several reentrant backward passes "
                "(checkpoint with use_reentrant=True), or the outputs went through backward "
                "twice. Use static_graph=True if each iteration is like the first one, or "
                "checkpoint with use_reentrant=False."
            )
        if self.order is not None and self.calls_left[i] == -1:
            self.order.append(i)

    def sweep(self, _: Tensor) -> None:
        """Called at the outputs: finds out which parameters this backward leaves out."""
        if self.is_swept or not self.expects:
            return
        self.is_swept = True
        if self.records:
            _C._queue_callback(self.reduce_recorded)
            return
        running = _C._running_leaves(self.params)
        # A gradient that is there already came from backwards under no_sync.
        used = [comes or p.grad is not None for comes, p in zip(running, self.params, strict=True)]
        self.used_here = self.used_here.new_tensor(used)
        for i, comes in enumerate(running):
            if not comes and self.calls_left[i] > 0:
                self.calls_left[i] = 0
                self.mark_ready(i)

    def reduce_recorded(self) -> None:
        """Ends the first backward of a static graph: every later one is like it."""
        self.records = False
        self.calls = [-left for left in self.calls_left]
        self.used_here = self.used_here.new_tensor(self.calls).clamp_(max=1)
        self.count_expected()
        for bucket in self.buckets:
            bucket.missing = 0
        self.reduce_ready()

    def reduce_ready(self) -> None:
        """Starts the collectives of the buckets whose turn it is."""
        while self.next < len(self.buckets) and self.buckets[self.next].missing == 0:
            self.start(self.next)
            self.next += 1
        if self.next == len(self.buckets):
            _C._queue_callback(self.finish)

    def start(self, index: int) -> None:
        bucket = self.buckets[index]
        if bucket.is_sparse:
            return  # takes several collectives, the later ones after the results of the first
        if self.is_left_out(bucket):
            return
        with rl.no_grad():
            bucket.gather()
            bucket.pending = self.begin(index, bucket.flat)

    def is_left_out(self, bucket: Bucket) -> bool:
        """Whether all processes know that no parameter of the bucket is used."""
        return self.skips_unused and not any(self.used_here[i] for i in bucket.positions)

    def begin(self, index: int, flat: Tensor) -> Any:
        """Begins to average what lies in `flat`; returns a Work or a Future."""
        is_last = index == len(self.buckets) - 1
        if self.comm_hook is not None:
            bucket = GradBucket(index, flat, self.buckets[index].params, is_last)
            result = self.comm_hook(self.hook_state, bucket)
            if not isinstance(result, Future):
                raise RuntimeError(
                    "Communication hook: callback must return a torch.futures.Future object, but "
                    f"got {type(result).__name__}."
                )
            return result
        op = dist.ReduceOp.AVG
        if self.divisor is not None:
            flat.div_(self.divisor)
            op = dist.ReduceOp.SUM
        # On the CPU nothing is left to do meanwhile, and going to another thread and back takes
        # time. On a GPU it is finish, perhaps on another stream, that has to wait.
        is_async = not is_last or flat.is_cuda
        return dist.all_reduce(flat, op, self.group, async_op=is_async) or _DONE

    def finish(self) -> None:
        """Ends a backward: waits for the collectives and hands the averages out."""
        self.expects = False
        if self.agrees_on_use:
            dist.all_reduce(self.used_here, group=self.group)
        if self.agrees_on_use or self.find_unused:
            self.is_used = self.used_here.tolist()
        self.agrees_on_use = self.agrees_on_use and self.find_unused
        with rl.no_grad():
            for bucket in self.buckets:
                if bucket.is_sparse:
                    self.average_sparse(bucket.params[0])
                elif bucket.pending is not None:
                    self.complete(bucket)
                    bucket.hand_out(self.as_views, self.is_used)
        for param in self.stepping:
            if param.grad is not None:
                step(param)
        self.rounds += 1

    def average_sparse(self, param: Tensor) -> None:
        """Averages a gradient that has one sparse dim; none stands for zeros."""
        grad = rl.zeros_like(param).to_sparse(1) if param.grad is None else param.grad
        divisor = self.divisor or dist.get_world_size(self.group)
        param.grad = sum_sparse(grad / divisor, self.group)

    def complete(self, bucket: Bucket) -> None:
        pending, bucket.pending = bucket.pending, None
        result = pending.wait()
        if self.comm_hook is not None:
            reduced = result[0] if isinstance(result, list | tuple) else result
            if reduced is not bucket.flat:
                bucket.flat.copy_(reduced.view_as(bucket.flat))

    def stand_by(self) -> None:
        """Takes part in the backward of the others with zeros, and gets their averages."""
        if not self.skips_unused:
            self.used_here = rl.zeros_like(self.used_here)
        with rl.no_grad():
            for index, bucket in enumerate(self.buckets):
                if bucket.is_sparse:
                    bucket.params[0].grad = None
                elif not self.is_left_out(bucket):
                    bucket.pending = self.begin(index, bucket.flat.zero_())
        self.finish()

    def check_finished(self) -> None:
        """Raises RuntimeError if a backward has not brought all gradients."""
        if not self.expects or self.calls_left == self.calls:
            return
        absent = [
            name
            for name, left, calls in zip(self.names, self.calls_left, self.calls, strict=True)
            if left > 0 and calls > 0
        ]
        shown = ", ".join(absent[:20]) + (", ..." if len(absent) > 20 else "")
        raise RuntimeError(
            "DistributedDataParallel: Expected to have finished reduction in the prior iteration "
            "before starting a new one, but these parameters got no gradient in the last "
            f"backward: {shown}. Gradients are only averaged when all have arrived. Make sure that "
            "all parameters and all outputs take part in the loss, or pass "
            "find_unused_parameters=True."
        )


class DelayedReduction:
    """Averages gradients that a reducer leaves out, when that of another parameter arrives.

    Args:
        params: dense parameters of one dtype, whose gradients are there by then.
        until: the other parameter.
        reducer: says whether this backward averages.
    """

    def __init__(self, params: Sequence[Tensor], until: Tensor, reducer: Reducer) -> None:
        self.bucket = Bucket(range(len(params)), params, False)
        self.reducer = weakref.ref(reducer)
        reducer.handles.append(until.register_post_accumulate_grad_hook(self.average))

    def average(self, _: Tensor) -> None:
        reducer = self.reducer()
        if reducer is None or not reducer.expects:
            return
        with rl.no_grad():
            self.bucket.gather()
            dist.all_reduce(self.bucket.flat, dist.ReduceOp.AVG, reducer.group)
            self.bucket.hand_out(reducer.as_views, None)
