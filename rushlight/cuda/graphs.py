"""CUDA graphs: work of a GPU that is recorded once and replayed as a whole.

Owns the classes and make_graphed_callables; what a capture allows and what it keeps is in
Note [CUDA graphs] of core/device/cuda_capture.h.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Generator, Tensor
from rushlight.cuda.memory import empty_cache
from rushlight.cuda.streams import Stream, StreamContext
from rushlight.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

PoolHandle = tuple[int, int]

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]

_MODES = ("global", "thread_local", "relaxed")


def is_current_stream_capturing() -> bool:
    """Returns whether work of this thread is recorded for a graph instead of being done."""
    return _C._cuda_is_initialized() and _C._cuda_is_capturing(_C._cuda_current_device())


def graph_pool_handle() -> PoolHandle:
    """Returns the name of a pool of memory that graphs can share.

    Graphs that share one must be replayed in the order in which they were captured, and never at
    once.
    """
    _C._cuda_require()
    return _C._cuda_new_pool(False)


class CUDAGraph:
    """Recorded work, which replay() does again: with the same memory, and new random numbers.

    Args:
        keep_graph: leave out making the graph ready to run when the capture ends; instantiate(), or
            the first replay, does that.

    Raises:
        RuntimeError: when CUDA cannot be used.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._keeps = keep_graph
        self._graph = _C._CudaGraph()

    def register_generator_state(self, generator: Generator) -> None:
        """Lets ops in the coming capture draw from a generator other than the default one."""
        self._graph.register_generator(generator)

    def capture_begin(
        self, pool: PoolHandle | None = None, capture_error_mode: str = "global"
    ) -> None:
        """Starts to record the work of the current stream, which must not be the default one.

        Args:
            pool: the memory to use: graph_pool_handle(), or pool() of another graph.
            capture_error_mode: "global", "thread_local" or "relaxed": which threads must not call
                what could disturb a capture, as the driver defines it.

        Raises:
            RuntimeError: when the stream cannot record, or the graph holds a capture already.
        """
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got "
                f"{capture_error_mode}"
            )
        self._graph.capture_begin(pool, _MODES.index(capture_error_mode))

    def capture_end(self) -> None:
        """Ends the recording.

        Raises:
            RuntimeError: when none goes on, on another stream, and when streams that took part do
                not lead back to this one.
        """
        self._graph.capture_end(self._keeps)
        if self._graph.nodes() == 0:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be "
                "captured on wrong device or stream.",
                stacklevel=2,
            )

    def instantiate(self) -> None:
        """Makes the graph ready to run; again, after raw_cuda_graph() was changed."""
        self._graph.instantiate()

    def replay(self) -> None:
        """Queues the recorded work on the current stream."""
        self._graph.replay()

    def reset(self) -> None:
        """Forgets the capture and gives its memory back, once no tensor uses it."""
        self._graph.reset()

    def pool(self) -> PoolHandle:
        """Returns the name of the memory that the capture uses."""
        return self._graph.pool()

    def enable_debug_mode(self) -> None:
        """Keeps the graph, for debug_dump; it is kept anyway."""

    def debug_dump(self, debug_path: str) -> None:
        """Writes the graph to a file in the language of Graphviz."""
        self._graph.debug_dump(str(debug_path))

    def raw_cuda_graph(self) -> int:
        """Returns the driver's handle of the graph; see keep_graph."""
        return self._graph.handle()

    def raw_cuda_graph_exec(self) -> int:
        """Returns the driver's handle of the graph that is ready to run."""
        return self._graph.exec_handle()


class graph:
    """A context whose work on the GPU is captured into a CUDAGraph, and not done.

    An error inside ends the capture, and the stream can be used as before.

    Args:
        cuda_graph: where to.
        pool: see CUDAGraph.capture_begin.
        stream: the stream that records; without it one that all captures of the process share.
        capture_error_mode: see CUDAGraph.capture_begin.
        enable_annotations: must be False.
        check_input_liveness: must be False.

    Example:
        >>> x = torch.ones(3, device="cuda")  # doctest: +SKIP
        >>> g = torch.cuda.CUDAGraph()  # doctest: +SKIP
        >>> with torch.cuda.graph(g):  # doctest: +SKIP
        ...     y = x * 2
        >>> _ = x.fill_(4)  # doctest: +SKIP
        >>> g.replay()  # doctest: +SKIP
        >>> y.tolist()  # doctest: +SKIP
        [8.0, 8.0, 8.0]
    """

    default_capture_stream: Stream | None = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: PoolHandle | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        if enable_annotations or check_input_liveness:
            raise NotImplementedError(
                "graph: enable_annotations and check_input_liveness are not supported. Leave them "
                "out."
            )
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.capture_stream = stream
        self.stream_ctx = StreamContext(stream)
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> None:
        rl.cuda.synchronize()
        gc.collect()  # so that no tensor of before is freed in the capture
        empty_cache()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.stream_ctx.__exit__()
            raise

    def __exit__(self, exc_type: object = None, *exc_info: object) -> None:
        try:
            if exc_type is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph._graph.abandon()
        finally:
            self.stream_ctx.__exit__()


# Graphed callables


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolHandle | None = None,
) -> Any:
    """Returns functions or modules that replay graphs of their forward and backward.

    Each call copies its arguments to where those of the capture lay, so they must have the same
    shapes and dtypes. A module is changed in place: in the mode, of training or not, that it was
    captured in, it replays, and in the other it computes as before.

    Args:
        callables: a function or module, or a tuple of them in the order in which they are called.
            Modules must have neither hooks nor buffers that require grad.
        sample_args: the tuple of its arguments, tensors that require grad as those of later calls;
            a tuple of tuples for several callables.
        num_warmup_iters: calls before the capture, on a stream of their own.
        allow_unused_input: whether some arguments or parameters may get no gradient.
        pool: see CUDAGraph.capture_begin; without it all graphs here share a new one.

    Raises:
        RuntimeError: inside of autocast with its cache, for modules with hooks, and when a gradient
            is missing.
        TypeError: for arguments that are not tensors.
    """
    if rl.is_autocast_enabled() and rl.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set "
            "`cache_enabled=False`."
        )
    if not isinstance(callables, tuple):
        return make_graphed_callables(
            (callables,), (sample_args,), num_warmup_iters, allow_unused_input, pool
        )[0]
    pool = graph_pool_handle() if pool is None else pool
    graphed = [
        _Graphed(each, tuple(args), allow_unused_input)
        for each, args in zip(callables, sample_args, strict=True)
    ]
    # Other streams see nothing of warming up, and its memory is given back.
    stream = Stream()
    rl.cuda.synchronize()
    with StreamContext(stream):
        for each in graphed:
            each.warm_up(num_warmup_iters)
    rl.cuda.synchronize()
    # Graphs that share memory are captured in the order of their replays.
    for each in graphed:
        each.capture_forward(pool)
    for each in reversed(graphed):
        each.capture_backward(pool)
    return tuple(each.replacement() for each in graphed)


class _Graphed:
    """One callable with its graphs, and the tensors that they read and write."""

    def __init__(self, function: Any, args: tuple[Any, ...], allow_unused: bool) -> None:
        if not all(isinstance(arg, rl.Tensor) for arg in tree_leaves(args)):
            raise TypeError(
                "make_graphed_callables: sample_args must hold tensors, in lists, tuples or dicts."
            )
        self.function = function
        self.args = args
        self.allow_unused = allow_unused
        self.parameters: tuple[Tensor, ...] = ()
        if isinstance(function, rl.nn.Module):
            _refuse_hooks(function)
            self.parameters = tuple(p for p in function.parameters() if p.requires_grad)
        self.inputs = (*tree_leaves(args), *self.parameters)
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()
        self.outputs: list[Tensor] = []
        self.structure: Any = None
        self.output_grads: list[Tensor | None] = []
        self.input_grads: list[Tensor | None] = []

    def _grads(self, outputs: Sequence[Tensor], output_grads: Sequence[Any]) -> list[Tensor | None]:
        wanted = [tensor for tensor in self.inputs if tensor.requires_grad]
        pairs = [(o, g) for o, g in zip(outputs, output_grads, strict=True) if g is not None]
        if not wanted or not pairs:
            return [None] * len(self.inputs)
        found = iter(
            rl.autograd.grad(
                [output for output, _ in pairs],
                wanted,
                [grad for _, grad in pairs],
                allow_unused=self.allow_unused,
            )
        )
        return [next(found) if tensor.requires_grad else None for tensor in self.inputs]

    def warm_up(self, count: int) -> None:
        """Compiles kernels and takes handles, which a capture cannot."""
        for _ in range(count):
            outputs = tree_leaves(self.function(*self.args))
            self._grads(outputs, [_grad_like(output) for output in outputs])

    def capture_forward(self, pool: PoolHandle) -> None:
        with graph(self.forward_graph, pool):
            outputs = self.function(*self.args)
        self.outputs, self.structure = tree_flatten(outputs)

    def capture_backward(self, pool: PoolHandle) -> None:
        self.output_grads = [_grad_like(output) for output in self.outputs]
        if any(grad is not None for grad in self.output_grads):
            with graph(self.backward_graph, pool):
                self.input_grads = self._grads(self.outputs, self.output_grads)
        else:
            self.input_grads = [None] * len(self.inputs)
        self.outputs = [output.detach() for output in self.outputs]

    def replacement(self) -> Any:
        """Returns the callable with its forward replaced, for modules, or a function."""
        replay = self._replaying()
        function = self.function
        if not isinstance(function, rl.nn.Module):
            return replay
        captured_in_training, forward = function.training, function.forward

        def forward_of_mode(*args: Any, **kwargs: Any) -> Any:
            same = function.training == captured_in_training
            return replay(*args, **kwargs) if same else forward(*args, **kwargs)

        function.forward = forward_of_mode
        return function

    def _replaying(self) -> Callable[..., Any]:
        graphed = self
        count = len(self.inputs) - len(self.parameters)

        class Replay(rl.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Tensor) -> Any:
                for static, given in zip(graphed.inputs[:count], inputs[:count], strict=True):
                    if static.data_ptr() != given.data_ptr():
                        static.detach().copy_(given)
                graphed.forward_graph.replay()
                return tuple(output.detach() for output in graphed.outputs)

            @staticmethod
            def backward(ctx: Any, *grads: Tensor | None) -> Any:
                for static, given in zip(graphed.output_grads, grads, strict=True):
                    if static is None:
                        continue
                    if given is None:
                        static.zero_()
                    elif static.data_ptr() != given.data_ptr():
                        static.copy_(given)
                graphed.backward_graph.replay()
                return tuple(g if g is None else g.detach() for g in graphed.input_grads)

        def replay(*args: Any) -> Any:
            given = tree_leaves(args)
            if len(given) != count:
                raise TypeError(
                    f"make_graphed_callables: the graph takes {count} tensors, got {len(given)}."
                )
            outputs = Replay.apply(*given, *graphed.parameters)
            return tree_unflatten(outputs, graphed.structure)

        return replay


def _grad_like(output: Tensor) -> Tensor | None:
    return rl.empty_like(output).fill_(1) if output.requires_grad else None


def _refuse_hooks(module: Any) -> None:
    if any(
        m._forward_hooks or m._forward_pre_hooks or m._backward_hooks or m._backward_pre_hooks
        for m in module.modules()
    ):
        raise RuntimeError(
            "Modules must not have hooks registered at the time they are passed. However, "
            "registering hooks on modules after passing them through make_graphed_callables is "
            "allowed."
        )
    if any(buffer.requires_grad for buffer in module.buffers()):
        raise RuntimeError(
            "In any Module passed to make_graphed_callables, only parameters may be trainable. "
            "All buffers must have ``requires_grad=False``."
        )
