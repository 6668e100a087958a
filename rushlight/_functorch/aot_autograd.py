"""A function as two graphs, of its results and of its gradients, each for a compiler of its own.

The function runs once on copies of its arguments, and make_fx notes its ops and those of its
gradients. Invariant: the graphs are used for arguments like those of the recording only; others
are recorded anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight._dynamo._state import describe
from rushlight._functorch.partitioners import BACKWARD, default_partition
from rushlight.autograd.function import Function, once_differentiable
from rushlight.func import functional_call
from rushlight.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = [
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "make_boxed_compiler",
    "make_boxed_func",
]

Compiler = Callable[[GraphModule, list[Any]], Callable[..., Any]]


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """Returns a function that takes the arguments of `f` in one list.

    Example:
        >>> from rushlight._functorch.aot_autograd import make_boxed_func
        >>> make_boxed_func(max)([3, 5])
        5
    """

    def boxed(args: list[Any]) -> Any:
        return f(*args)

    boxed._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return boxed


def make_boxed_compiler(compiler: Compiler) -> Compiler:
    """Returns a compiler whose functions take their arguments in one list."""

    @functools.wraps(compiler)
    def boxed(fx_g: GraphModule, inps: list[Any]) -> Callable[..., Any]:
        return make_boxed_func(compiler(fx_g, inps))

    return boxed


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., tuple[GraphModule, GraphModule]] = default_partition,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Compiler | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Returns a function that runs by what compilers make of two graphs of `fn`.

    Its control flow is that of the recording, and its gradients cannot be differentiated again.
    Tensors that are not among the arguments are constants, without a gradient.

    Args:
        fn: the function; tensors among its arguments may be nested.
        fw_compiler: gets the graph of the results and a list of example inputs, and returns what is
            called with such inputs: with a list, if it came from make_boxed_func.
        bw_compiler: the same for the graph of the gradients; by default fw_compiler.
        partition_fn: makes two graphs of the one that has all, see partitioners.default_partition.
        decompositions: functions to call in place of operators, by torch.ops.aten's names.
        inference_compiler: for calls where no gradient is wanted; by default fw_compiler.
        num_params_buffers, keep_inference_input_mutations, options: accepted for PyTorch's sake.

    Example:
        >>> from rushlight._functorch.aot_autograd import aot_function
        >>> def show(module, inputs):
        ...     print([node.name for node in module.graph.nodes])
        ...     return module.forward
        >>> x = torch.zeros(2, requires_grad=True)
        >>> y = aot_function(torch.exp, show)(x)
        ['primals_1', 'exp', 'output']
        ['exp', 'tangents_1', 'mul', 'output']
        >>> y.sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """
    compiled: dict[Any, Callable[[list[Tensor]], Any]] = {}

    def compile_for(leaves: list[Any], spec: Any) -> Callable[[list[Tensor]], Any]:
        recording = _Recording(fn, leaves, spec, decompositions)
        if not recording.wanted:
            module = recording.results_module()
            run = _unboxed((inference_compiler or fw_compiler)(module, recording.primals()))
            return lambda primals: recording.unflatten(run(primals))
        return _Plan(recording, fw_compiler, bw_compiler or fw_compiler, partition_fn)

    @functools.wraps(fn, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        key = (repr(spec), rl.is_grad_enabled(), *map(describe, leaves))
        if key not in compiled:
            compiled[key] = compile_for(leaves, spec)
        return compiled[key]([leaf for leaf in leaves if isinstance(leaf, Tensor)])

    return call


class _Recording:
    """A function for arguments like these, as graphs.

    Attributes:
        wanted: the places of the tensors among the arguments whose gradients are wanted.
        differentiable: the places of the results that have a gradient.
    """

    def __init__(
        self, fn: Callable[..., Any], leaves: list[Any], spec: Any, decompositions: Any
    ) -> None:
        self._fn, self._leaves, self._spec, self._table = fn, leaves, spec, decompositions
        grad = rl.is_grad_enabled()
        self.wanted = [i for i, p in enumerate(self.primals()) if grad and p.requires_grad]
        self.differentiable: list[int] = []

    def primals(self) -> list[Tensor]:
        """The tensors among the arguments, copied, as a function may write to them."""
        tensors = [leaf for leaf in self._leaves if isinstance(leaf, Tensor)]
        return [each.detach().clone().requires_grad_(each.requires_grad) for each in tensors]

    def unflatten(self, results: Sequence[Any]) -> Any:
        """What the function returns, made of its parts."""
        return tree_unflatten(list(results), self._out_spec)

    def results_module(self) -> GraphModule:
        """The graph of the results alone."""
        return self._trace(self._results, self.primals())

    def joint_module(self) -> tuple[GraphModule, list[Tensor]]:
        """The graph of results and gradients, and examples of the gradients that it takes."""
        primals = self.primals()
        with rl.random.fork_rng(), rl.enable_grad():
            results = self._results(*primals)
        self.differentiable = [
            i for i, each in enumerate(results) if isinstance(each, Tensor) and each.requires_grad
        ]
        tangents = [rl.ones_like(results[i]) for i in self.differentiable]
        count, early = len(primals), 0

        def joint(*inputs: Tensor) -> list[Any]:
            nonlocal early
            with rl.enable_grad():
                results = self._results(*inputs[:count])
            mode = get_proxy_mode()
            assert mode is not None
            early = len(mode.graph.nodes)
            outputs = [results[i] for i in self.differentiable]
            sources = [inputs[i] for i in self.wanted]
            grads = rl.autograd.grad(outputs, sources, inputs[count:], allow_unused=True)
            return [*results, *grads]

        module = self._trace(joint, self.primals(), tangents)
        for node in list(module.graph.nodes)[early:-1]:
            node.meta["partitioner_tag"] = BACKWARD
        return module, tangents

    def _results(self, *tensors: Tensor) -> list[Any]:
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, Tensor) else leaf for leaf in self._leaves]
        args, kwargs = tree_unflatten(leaves, self._spec)
        results, self._out_spec = tree_flatten(self._fn(*args, **kwargs))
        return results

    def _trace(
        self, fn: Callable[..., Any], primals: list[Tensor], tangents: Sequence[Tensor] = ()
    ) -> GraphModule:
        with rl.random.fork_rng():
            traced = make_fx(fn, self._table)(*primals, *tangents)
        names = [f"primals_{i + 1}" for i in range(len(primals))]
        names += [f"tangents_{i + 1}" for i in range(len(tangents))]
        graph, copies = Graph(), dict[Node, Node]()
        for node in traced.graph.nodes:
            if node.op == "placeholder":
                copies[node] = graph.placeholder(names[len(copies)])
            elif node.op != "output":
                copies[node] = graph.node_copy(node, copies.__getitem__)
        results = traced.graph.output_node().args[0]
        results = results if isinstance(results, Sequence) else [results]
        graph.output(tuple(copies[each] if isinstance(each, Node) else each for each in results))
        return GraphModule(traced, graph)


class _Plan:
    """A recorded function that computes gradients."""

    def __init__(
        self,
        recording: _Recording,
        fw_compiler: Compiler,
        bw_compiler: Compiler,
        partition_fn: Callable[..., tuple[GraphModule, GraphModule]],
    ) -> None:
        self.recording = recording
        joint, tangents = recording.joint_module()
        primals = recording.primals()
        output = joint.graph.output_node().args[0]
        assert isinstance(output, Sequence)
        self.count = len(output) - len(recording.wanted)
        self.strides = [tangent.stride() for tangent in tangents]
        forward, backward = partition_fn(joint, [*primals, *tangents], num_fwd_outputs=self.count)
        with rl.random.fork_rng(), rl.no_grad():
            saved = forward(*recording.primals())[self.count :]
        self.forward = _unboxed(fw_compiler(forward, primals))
        self.backward = _unboxed(bw_compiler(backward, [*saved, *tangents]))

    def __call__(self, primals: list[Tensor]) -> Any:
        return self.recording.unflatten(CompiledFunction.apply(self, *primals))


class CompiledFunction(Function):
    """Runs the graph of the results, and in backward that of the gradients."""

    @staticmethod
    def forward(ctx: Any, plan: _Plan, *primals: Tensor) -> tuple[Any, ...]:
        values = plan.forward(list(primals))
        results = values[: plan.count]
        ctx.plan = plan
        ctx.save_for_backward(*values[plan.count :])
        fixed = set(range(plan.count)).difference(plan.recording.differentiable)
        ctx.mark_non_differentiable(*(results[i] for i in fixed if isinstance(results[i], Tensor)))
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        plan: _Plan = ctx.plan
        outputs = [grads[i] for i in plan.recording.differentiable]
        tangents = map(_in_order, outputs, plan.strides)
        values = plan.backward([*ctx.saved_tensors, *tangents])
        found = dict(zip(plan.recording.wanted, values, strict=True))
        return (None, *map(found.get, range(len(ctx.needs_input_grad) - 1)))


def _in_order(tensor: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The tensor in the memory order that the graph was recorded with."""
    if tensor.stride() == strides:
        return tensor
    ordered = rl.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return ordered.copy_(tensor)


def _unboxed(compiled: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """What a compiler returned, called with a list."""
    is_boxed = getattr(compiled, "_boxed_call", False)
    return compiled if is_boxed else lambda inputs: compiled(*inputs)


def aot_module(mod: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """Returns a module that runs by graphs of another, which it has as orig_module.

    Args:
        mod: the module; its parameters get gradients.
        args, kwargs: those of aot_function after the function.

    Example:
        >>> from rushlight._functorch.aot_autograd import aot_module
        >>> linear = torch.nn.Linear(2, 1)
        >>> compiled = aot_module(linear, lambda module, inputs: module.forward)
        >>> compiled(torch.ones(3, 2)).sum().backward()
        >>> linear.weight.grad
        tensor([[3., 3.]])
    """
    return _AOTModule(mod, aot_function(_call_of(mod), *args, **kwargs))


class _AOTModule(nn.Module):
    def __init__(self, mod: nn.Module, compiled: Callable[..., Any]) -> None:
        super().__init__()
        self.orig_module = mod
        self._compiled = compiled

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(_tensors_of(self.orig_module), args, kwargs)


def aot_module_simplified(
    mod: nn.Module, args: Sequence[Any], fw_compiler: Compiler, *others: Any, **options: Any
) -> Callable[..., Any]:
    """Returns a function of the arguments that runs by graphs of a module, as back ends call it.

    Args:
        mod: the module.
        args: has no effect: the graphs are made in the first call.
        fw_compiler, others, options: those of aot_function.
    """
    compiled = aot_function(_call_of(mod), fw_compiler, *others, **options)
    return lambda *inputs: compiled(_tensors_of(mod), inputs, {})


def _call_of(mod: nn.Module) -> Callable[..., Any]:
    def call(tensors: dict[str, Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return functional_call(mod, tensors, args, kwargs)

    return call


def _tensors_of(mod: nn.Module) -> dict[str, Tensor]:
    return {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
