"""A recorded program with its tensors: what export, jit.trace and onnx.export share.

Owns the way from a module and an example to the graph, sizes that may change included.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight._signatures import signature
from rushlight._storage import memory_of
from rushlight.export._calling import Calling, Constant, Input
from rushlight.export._recording import Recording, RefusedError, record
from rushlight.export._sizes import merge, resized, trial_sizes
from rushlight.export.dynamic_shapes import Dim, resolve
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.nn.parameter import is_lazy
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["Program", "bind", "leaf_names", "record_again", "record_program"]


@dataclass
class Program:
    """What a module does, and with which tensors.

    Attributes:
        name: the module's class.
        graph: its steps; the codegen is a Calling.
        tensors: parameters, buffers and constants by path: all that the module has, and what the
            graph uses besides.
        temporary: the paths of those that state_dict leaves out.
        constants: the paths of those that are neither parameters nor buffers.
        training: whether the module was training.
    """

    name: str
    graph: Graph
    tensors: dict[str, Tensor]
    temporary: set[str]
    constants: set[str]
    training: bool

    @property
    def calling(self) -> Calling:
        """How the program is called."""
        calling = self.graph._codegen
        assert isinstance(calling, Calling)
        return calling

    def check_has_elements(self, caller: str) -> None:
        """Raises RuntimeError if there is nothing to write of a tensor."""
        for path, tensor in self.tensors.items():
            if tensor.is_meta:
                raise RuntimeError(
                    f"{caller}: {path} is on meta, without elements. Call to_empty on the module "
                    "and fill it before it is recorded."
                )

    def module(self, base: type[GraphModule] = GraphModule) -> GraphModule:
        """Returns a module that runs a copy of the graph, on the same tensors."""
        root = nn.Module()
        for path, tensor in self.tensors.items():
            install(root, path, tensor, path not in self.temporary)
        made = base(root, copy.deepcopy(self.graph), self.name)
        for path, tensor in self.tensors.items():  # also those that the graph does not use
            install(made, path, tensor, path not in self.temporary)
        made.training = self.training
        return made


def install(root: nn.Module, path: str, tensor: Tensor, persistent: bool) -> None:
    """Puts a tensor at a path below a module, with empty modules on the way."""
    *prefix, last = path.split(".")
    owner = root
    for name in prefix:
        if name not in dict(owner.named_children()):
            owner.add_module(name, nn.Module())
        owner = owner.get_submodule(name)
    if isinstance(tensor, nn.Parameter):
        owner.register_parameter(last, tensor)
    else:
        if last in owner.__dict__:
            delattr(owner, last)
        owner.register_buffer(last, tensor, persistent)


def record_program(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    on_read: Callable[[str, str], None],
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    is_checked: bool = True,
    is_live: bool = False,
) -> Program:
    """Runs a module or function on an example, at three sizes if some may change.

    Args:
        function: what is recorded.
        args: its arguments.
        kwargs: its keyword arguments.
        on_read: see record.
        dynamic_shapes: which sizes may change.
        is_checked: whether the program refuses what it was not recorded for.
        is_live: see record.
    """
    module = function if isinstance(function, nn.Module) else nn.Module()
    for path, tensor in (*module.named_parameters(), *module.named_buffers()):
        if is_lazy(tensor):
            raise RefusedError(
                f"export: {path} of the module gets its shape when it first runs. Run it before."
            )
    arguments = bind(function, args, kwargs or {})
    leaves, in_spec = tree_flatten(list(arguments.values()))
    dims = resolve(arguments, dynamic_shapes)
    names = leaf_names(arguments)
    roots = {
        dim.root: dim.root_at(leaf.shape[place]) or 0
        for leaf, found in zip(leaves, dims, strict=True)
        for place, dim in found.items()
    }
    out_specs = []

    def run(sizes: dict[Dim, int]) -> Recording:
        copies: dict[int, Tensor] = {}
        if is_live:
            copies = {id(leaf): _live_copy(leaf) for leaf in leaves if isinstance(leaf, Tensor)}
            values = [copies.get(id(leaf), leaf) for leaf in leaves]
        else:
            values = [
                _fresh(leaf, found, sizes) if isinstance(leaf, Tensor) else leaf
                for leaf, found in zip(leaves, dims, strict=True)
            ]

        attributes = [_attributes(copied) for copied in copies.values()]

        def program() -> list[Any]:
            given = dict(zip(arguments, tree_unflatten(values, in_spec), strict=True))
            args, kwargs = _as_call(given)
            results, spec = tree_flatten(function(*args, **kwargs))
            out_specs.append(spec)
            now = tree_flatten(list(given.values()))[0] if is_live else values
            is_changed = len(now) != len(values) or any(map(operator.is_not, now, values))
            if is_changed or [_attributes(v) for v in copies.values()] != attributes:
                raise RefusedError("export: the program changes what is in its arguments.")
            return results

        inputs = [(n, v) for n, v in zip(names, values, strict=True) if isinstance(v, Tensor)]
        return record(program, inputs, module, on_read, is_live)

    trials = trial_sizes(roots) if roots else [{}]
    recordings = [_recorded(run, sizes, roots) for sizes in trials]
    if any(spec != out_specs[0] for spec in out_specs):
        raise ValueError("export: how results are nested depends on sizes. Let them be static.")
    merge(recordings, {dim.__name__: tuple(sizes[dim] for sizes in trials) for dim in roots})
    graph = recordings[0].graph
    described = [_described(*leaf) for leaf in zip(names, leaves, dims, strict=True)]
    graph.set_codegen(Calling(list(arguments), in_spec, described, out_specs[0], is_checked))
    own = _all_tensors(module)
    constants = recordings[0].tensors.keys() - own.keys()
    return Program(
        getattr(function, "__name__", type(function).__name__),
        graph,
        own | recordings[0].tensors,
        _temporary(module) | constants,
        constants,
        module.training,
    )


def _recorded(
    run: Callable[[dict[Dim, int]], Recording], sizes: dict[Dim, int], given: dict[Dim, int]
) -> Recording:
    """The recording at some sizes; an error at others than those given says which."""
    try:
        return run(sizes)
    except Exception as error:
        if sizes == given or isinstance(error, RefusedError):
            raise
        shown = ", ".join(f"{dim.__name__} = {size}" for dim, size in sizes.items())
        raise ValueError(
            f"export: the program fails with {shown}: {error} Let the size be static, or "
            "compute with x.shape instead of numbers."
        ) from error


def _described(name: str, leaf: Any, dims: Mapping[int, Dim]) -> Input | Constant:
    if not isinstance(leaf, Tensor):
        return Constant(leaf)
    return Input(name, leaf.dtype, tuple(dims.get(i, size) for i, size in enumerate(leaf.shape)))


def bind(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by the names of the parameters, *args and **kwargs with stars."""
    called = function.forward if isinstance(function, nn.Module) else function
    try:
        found = signature(called)
    except ValueError:  # ops tell none
        found = signature(lambda *args, **kwargs: None)
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    try:
        given = found.bind(*args, **kwargs).arguments
    except TypeError as error:
        name = getattr(called, "__qualname__", type(called).__name__)
        raise TypeError(
            f"export: {error}. The program is {name}({', '.join(found.parameters)})."
        ) from None
    return {stars.get(found.parameters[n].kind, "") + n: value for n, value in given.items()}


def _fresh(leaf: Tensor, dims: dict[int, Dim], sizes: dict[Dim, int]) -> Tensor:
    """An example that the program may write to."""
    with rl.inference_mode(False), rl.no_grad():
        return resized(leaf, dims, sizes).clone()


def _live_copy(leaf: Tensor) -> Tensor:
    """What a program cannot tell from a tensor without looking at its memory."""
    with rl.no_grad():
        if leaf.layout is rl.strided:
            steps = zip(leaf.shape, leaf.stride(), strict=True)
            extent = 1 + sum((size - 1) * stride for size, stride in steps) if leaf.numel() else 0
            memory = leaf.as_strided((extent,), (1,)).clone()
            copied = memory.as_strided(leaf.shape, leaf.stride())
        else:
            copied = leaf.clone()
        copied = copied.detach()
    if isinstance(leaf, nn.Parameter):
        return nn.Parameter(copied, leaf.requires_grad)
    copied.requires_grad_(leaf.requires_grad)
    with rl.enable_grad():
        return copied if leaf.is_leaf else copied.view_as(copied)


def _attributes(tensor: Tensor) -> tuple[Any, ...]:
    """What a program may set of a tensor by other ways than ops."""
    own = tensor.requires_grad if tensor.is_leaf else None, tensor.grad is None
    return *own, memory_of(tensor), len(vars(tensor))


def _as_call(given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by name as those of a call: positional up to *args, if there are any."""
    names = list(given)
    stars = [place for place, name in enumerate(names) if name[0] == "*" != name[1]]
    args: list[Any] = []
    for name in names[: stars[0] + 1] if stars else ():
        args += given[name] if name.startswith("*") else [given[name]]
    kwargs: dict[str, Any] = {}
    for name in names[stars[0] + 1 :] if stars else names:
        kwargs |= given[name] if name.startswith("**") else {name: given[name]}
    return args, kwargs


def record_again(program: Program, on_read: Callable[[str, str], None]) -> Program:
    """A program with the shapes of its results, which it has not if it comes from a file."""
    calling = program.calling
    if all("tensor_meta" in node.meta for node in program.graph.find_nodes(op="placeholder")):
        return program
    values, dims = [], []
    for leaf in calling.leaves:
        if isinstance(leaf, Constant):
            values.append(leaf.value)
            dims.append(None)
        else:
            sizes = [s if isinstance(s, int) else s.at(max(s.root.min, 2)) for s in leaf.shape]
            values.append(rl.zeros(sizes, dtype=leaf.dtype))
            dims.append({i: s for i, s in enumerate(leaf.shape) if not isinstance(s, int)} or None)
    given, shapes = (tree_unflatten(parts, calling.in_spec) for parts in (values, dims))
    args, kwargs = _as_call(dict(zip(calling.names, given, strict=True)))
    return record_program(program.module(), args, kwargs, on_read, shapes, calling.is_checked)


def leaf_names(arguments: dict[str, Any]) -> list[str]:
    """Names of the leaves: the argument's, numbered where it has several or the name is taken."""
    names: dict[str, None] = {}
    for argument, value in arguments.items():
        argument = argument.lstrip("*")
        leaves, spec = tree_flatten(value)
        for place in range(len(leaves)):
            wanted = name = argument if spec.is_leaf() else f"{argument}_{place}"
            numbers = itertools.count(1)
            while name in names:
                name = f"{wanted}_{next(numbers)}"
            names[name] = None
    return list(names)


def _all_tensors(module: nn.Module) -> dict[str, Tensor]:
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _temporary(module: nn.Module) -> set[str]:
    """The paths of buffers that are not in state_dict."""
    return {name for name, _ in module.named_buffers(remove_duplicate=False)} - set(
        module.state_dict()
    )
